"""TD3 and SAC with the interface of Stable-Baselines3: learn, predict, save, load."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewirl.agents.methods import METHODS, Method, algorithms
from rewirl.agents.options import WiringOptions
from rewirl.envs.environment import EnvLike, Source
from rewirl.envs.task_names import full_name, import_module_of
from rewirl.errors import Refused
from rewirl.policies.policy import Policy
from rewirl.storage import inspect_run, resume, start
from rewirl.storage.resumed_run import set_steps
from rewirl.topology import Dense, DropAndGrow, Rule
from rewirl.topology._checks import whole_number
from rewirl.training import Episode, Evaluation, EvaluationRow, Observer, Run, evaluate_policy
from rewirl.training.config import RunConfig

Callback = Callable[[Any, int], "bool | None"]
"""Called with the learner and its step after every episode; False stops."""


class Learner:
    """Base class of TD3 and SAC."""

    algorithm: ClassVar[str]

    def __init__(
        self,
        env: EnvLike,
        *,
        wiring: Rule | type[Rule] = Dense,
        seed: int = 0,
        run_dir: str | Path | None = None,
        **options: Any,
    ) -> None:
        """Creates an untrained agent.

        `env` is the name of a Gymnasium task, an environment, or a function that creates one. `wiring` is Dense(),
        Static(), SET(eta, every), RigL(eta, every) or your own rule; the class alone, as in wiring=SET, uses the
        paper's settings for this algorithm. `options` are those of `rewirl train --help`, with underscores: sparsity,
        lambdas, hidden, lr and so on. Everything stays in memory, unless `run_dir` names a run folder; an existing one
        is resumed.
        """
        method, numbers = self._method(wiring)
        for name in numbers.keys() & options.keys():
            raise Refused(f"{name} is given twice: it is already set by the wiring {wiring}")
        self._env = env
        self._folder = None if run_dir is None else Path(run_dir)
        given = {"keep_replay": True, **numbers, **options}
        try:
            config = RunConfig.resolve(method=method.name, task=_task_of(env), seed=seed, **given)
        except ValueError as error:
            raise Refused(str(error)) from None
        if isinstance(wiring, Rule) and type(wiring) is not method.rule:
            if self._folder is not None:
                raise Refused(f"a run folder cannot store your own rule ({type(wiring).__name__}): leave out run_dir")
            config = _OwnRule(**vars(config), rule=wiring)
        self.config: RunConfig = config
        """The complete config of the run."""
        self._rng = np.random.default_rng(seed)
        self._watch = _Watch(self)
        self._open_end = options.get("steps") is None
        """Whether the calls of `learn` determine the number of steps."""
        self._run: Run | None = None
        self._policy: tuple[int, Policy] | None = None

    @classmethod
    def _method(cls, wiring: Rule | type[Rule]) -> tuple[Method, dict[str, Any]]:
        rule = wiring if isinstance(wiring, type) else type(wiring)
        if not issubclass(rule, Rule):
            raise Refused(f"wiring must be a rule such as SET(), Static() or Dense(), not {wiring!r}")
        named = {method.rule: method for method in METHODS.values() if method.algorithm == cls.algorithm}
        fallback = METHODS[
            f"ds-{cls.algorithm}" if rule.sparse else cls.algorithm
        ]  # only used to name a user's own rule
        numbers = {"eta": wiring.eta, "adapt_every": wiring.every} if isinstance(wiring, DropAndGrow) else {}
        if isinstance(wiring, type) and rule not in named:
            raise Refused(f"wiring must be an instance of your own rule: {rule.__name__}()")
        return named.get(rule, fallback), numbers

    # ------------------------------------------------------------------ verbs

    def learn(self, steps: int, callback: Callback | None = None) -> Self:
        """Trains for this many environment steps; a second call continues where the first one ended.

        `callback(agent, step)` is called after every episode and stops training by returning False.
        """
        steps = _whole(steps)
        if self._run is not None and self._run.closed:
            if self._folder is None:
                raise Refused("this agent was closed and has no run_dir to resume from: call learn before close()")
            self._run = None  # its folder is opened again
        run = self._started()
        until = run.step + steps
        if self._folder is not None and (self._open_end or until > run.config.steps):
            set_steps(run, until)  # the config of a folder contains the number of steps
            self.config = run.config
        self._watch.callback = callback
        run.train(until)
        if self._folder is not None:
            self.save(self._folder / "policy.safetensors")
        return self

    def predict(
        self, observation: ArrayLike, *, deterministic: bool = True, state: None = None, episode_start: object = None
    ) -> tuple[NDArray[np.float32], None]:
        """The action for one observation, or the actions for several as rows, in the environment's units."""
        return self.policy().predict(observation, deterministic=deterministic, rng=self._rng)

    def save(self, path: str | Path) -> None:
        """Saves the policy as one safetensors file."""
        self.policy().save(path)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a file written by `save`, or the latest one of a run folder. It needs only NumPy.

        To continue training, pass the run folder as `run_dir` instead.
        """
        file = Path(path)
        if file.is_dir():
            file = file / "policy.safetensors"
        try:
            policy = Policy.load(file)
        except FileNotFoundError:
            raise Refused(f"there is no policy at {path}") from None
        if policy.algorithm != algorithms()[cls.algorithm].agent.policy_kind:
            raise Refused(
                f"{path} contains a policy of {policy.algorithm.upper()}: load it with {policy.algorithm.upper()}.load"
            )
        return policy

    # -------------------------------------------------------------- properties

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self._run.step if self._run else 0

    @property
    def evaluations(self) -> list[EvaluationRow]:
        """All evaluations so far, in the order of their steps."""
        return list(self._run.evaluations) if self._run else []

    @property
    def run(self) -> Run:
        """The underlying run, with networks, costs and episodes."""
        return self._started()

    def policy(self) -> Policy:
        """The current policy."""
        run = self._started()
        if self._policy is None or self._policy[0] != run.agent.updates:
            self._policy = (run.agent.updates, run.policy())
        return self._policy[1]

    def evaluate(self, episodes: int = 10, seed: int = 0) -> Evaluation:
        """Returns of complete episodes without exploration noise, in a separate environment."""
        env = Source(self.config.task, self._env).another()  # an instance is in the middle of an episode of training
        try:
            return evaluate_policy(self.policy(), env, episodes=episodes, seed=seed)
        finally:
            env.close()

    def close(self) -> None:
        """Closes the environments and releases the run folder."""
        if self._run is not None:
            self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> Run:
        if self._run is None:
            if self._folder is not None and (self._folder / "config.toml").exists():
                self._run = self._resumed(self._folder)
            else:
                try:
                    self._run = start(self.config, self._folder, env=self._env, observers=[self._watch])
                except ValueError as error:  # a wiring that the options allow but the sizes of the task do not
                    raise Refused(str(error)) from None
        return self._run

    def _resumed(self, folder: Path) -> Run:
        """The number of steps so far, unless more are requested."""
        info = inspect_run(folder)
        if info.config:
            steps = info.config.steps if self._open_end else max(self.config.steps, info.step)
            self.config = replace(self.config, steps=steps)
        self._open_end = False
        return resume(folder, config=self.config, env=self._env, observers=[self._watch])


class TD3(Learner):
    """TD3, dense or sparse by its wiring.

    >>> from rewirl import SET
    >>> agent = TD3("Pendulum-v1", wiring=SET(eta=0.1), sparsity=0.8, hidden=(32, 32), random_steps=50, eval_every=0)
    >>> agent.learn(100).learn(20).step
    120
    """

    algorithm: ClassVar[str] = "td3"


class SAC(Learner):
    """SAC, dense or sparse by its wiring; alpha="auto" learns the temperature.

    >>> agent = SAC("Pendulum-v1", hidden=(32, 32), alpha="auto", random_steps=50, eval_every=0)
    >>> agent.learn(100).predict([1.0, 0.0, 0.0], deterministic=False)[0].shape
    (1,)
    """

    algorithm: ClassVar[str] = "sac"


class _Watch(Observer):
    """Passes the events of the run to the user's code."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self.callback: Callback | None = None

    def on_episode(self, run: Run, episode: Episode) -> None:
        if self.callback is not None and self.callback(self._learner, run.step) is False:
            run.stop()

    def on_notice(self, run: Run, text: str) -> None:
        warnings.warn(text, stacklevel=2)


@dataclass(frozen=True, kw_only=True)
class _OwnRule(RunConfig):
    """A run with a rule that cannot be stored in a file."""

    rule: Rule

    def wiring(self) -> WiringOptions:
        return replace(super().wiring(), rule=self.rule)

    def items(self) -> dict[str, Any]:
        return {name: value for name, value in super().items().items() if name != "rule"}


def _task_of(env: EnvLike) -> str:
    """Name for display: its own, or that of its class."""
    if isinstance(env, str):
        import_module_of(env)
        return env
    if not isinstance(env, gymnasium.Env) and not callable(env):
        raise Refused(f"env must be the name of a task, a gymnasium.Env or a function that creates one, not {env!r}")
    made = Source("the environment", env).make()
    own = type(made.unwrapped)
    name = made.spec.id if made.spec else own.__name__
    if full_name(name) != name:  # it has the name of a Gymnasium task without being one
        name = f"{own.__module__}.{name}"
    if made is not env:
        made.close()
    return name


def _whole(steps: object) -> int:
    """A number of steps; accepts 1e5."""
    try:
        number = whole_number("steps", int(steps) if isinstance(steps, float) and steps.is_integer() else steps)
    except TypeError as error:
        raise Refused(str(error)) from None
    if number < 1:
        raise Refused(f"steps must be at least 1, not {number}")
    return number
