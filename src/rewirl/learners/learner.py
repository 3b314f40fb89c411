"""TD3, SAC, CrossQ and DQN from Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewirl.agents.methods import method
from rewirl.envs.creation import EnvLike, close
from rewirl.errors import Refused
from rewirl.learners import sb3_names
from rewirl.learners.agent_file import load_agent, read_agent, save_agent
from rewirl.learners.callbacks import CallbackLike, observers_of
from rewirl.learners.configuring import OwnRule, known_config, new_config, whole_steps
from rewirl.learners.progress import progress_of
from rewirl.policies.policy import Policy
from rewirl.storage import inspect_run, resume, start
from rewirl.storage.checkpoint import newest_step
from rewirl.storage.folder import RunFolder
from rewirl.storage.resumed_run import lengthen
from rewirl.topology import Rule
from rewirl.training import Evaluation, EvaluationRow, Observer, Run, evaluate_policy
from rewirl.training.config import BY_LENGTH, RunConfig
from rewirl.training.first_steps import few_updates, no_rate_left
from rewirl.training.observers.loggers import Logger, LogTo, check_logger


class Learner:
    """Base class of TD3, SAC, CrossQ and DQN."""

    algorithm: ClassVar[str]

    def __init__(
        self,
        *given: EnvLike,
        env: EnvLike | None = None,
        wiring: Rule | type[Rule] | None = None,
        seed: int | None = None,
        run_dir: str | Path | None = None,
        log: str | Logger | Iterable[str | Logger] = (),
        **options: Any,
    ) -> None:
        """Creates an untrained agent, or opens that of a run folder.

        `env` is the name of a Gymnasium task, an environment (also a gymnasium.vector one), or a function that creates
        one. `wiring` is Dense() (the
        default), Static(), SET(eta, every), RigL(eta, every) or your own rule; the class alone, as in wiring=SET, uses
        the paper's settings for this algorithm. `options` are listed by `rewirl train --help` (here with underscores):
        sparsity, lambdas, hidden, lr and so on; the names of Stable-Baselines3 are accepted too. Everything stays in
        memory, unless `run_dir` names a run folder. An existing one is resumed; `env` and options may then be left out.
        `log` is "tensorboard", "wandb", an object with log(step, numbers), or several of these.
        """
        env = sb3_names.environment(given, env, options.pop("policy", None))
        words = sb3_names.translate(options)
        self._given = frozenset(words.options)
        self._folder = None if run_dir is None else Path(run_dir)
        self._env = env
        known = inspect_run(self._folder).config if env is None and self._exists() and self._folder else None
        if env is None and known is None:
            raise Refused("which task? Give its name, an environment, or the run_dir of a run that exists")
        self.config: RunConfig = (
            new_config(self.algorithm, env, wiring, seed, words.options)
            if env is not None
            else known_config(self.algorithm, known, wiring, seed, words.options)  # type: ignore[arg-type]
        )
        """The complete config of the run."""
        if self._folder is not None and isinstance(self.config, OwnRule):
            own = type(self.config.rule).__name__
            raise Refused(f"a run folder cannot store your own rule ({own}): leave out run_dir")
        self._progress = words.progress
        self._log = _log(log, words.tensorboard_log)
        self._rng = np.random.default_rng(self.config.seed)
        self._open_end = words.options.get("steps") is None
        """Whether the calls of `learn` determine the number of steps."""
        self._run: Run | None = None
        self._policy: tuple[int, Policy] | None = None

    # ------------------------------------------------------------------ verbs

    def learn(
        self, steps: int | None = None, callback: CallbackLike = None, *, progress: bool | None = None, **words: Any
    ) -> Self:
        """Trains for this many environment steps; a second call continues where the first one ended.

        `callback` is a rewirl.Callback, a function that is called with agent and step after every episode, or a list of
        these; returning False ends training. `progress` shows a live line: always, never, or (None) in
        terminals and notebooks. The first call decides how many steps are random, unless random_steps is given: the
        paper's number for runs of its length, a tenth of the steps of shorter ones.
        """
        progress = words.pop("progress_bar", progress)
        steps = whole_steps(sb3_names.steps_of(steps, words))
        if self._run is not None and self._run.closed:
            if self._folder is None:
                raise Refused("this agent was closed and has no run_dir to resume from: call learn before close()")
            self._run = None  # its folder is opened again
        run = self._started(steps)
        until = run.step + steps
        if self._open_end or until > run.config.steps:
            lengthen(run, run.config.of_length(until, self._given if run.step == 0 else BY_LENGTH))
            self.config = run.config
        if run.step < run.config.random_steps and (wrong := few_updates(run.config, until)):
            warnings.warn(
                f"{wrong}: give a smaller random_steps than {run.config.random_steps:,}, or learn longer", stacklevel=2
            )
        if wrong := no_rate_left(run.config, until):
            warnings.warn(wrong, stacklevel=2)
        shown = progress_of(self._progress if progress is None else progress)
        run.observers[:] = [Warn(), *shown, *self._log, *observers_of(self, callback)]
        run.train(until)
        if self._folder is not None:
            self.policy().save(self._folder / "policy.safetensors")
        return self

    def predict(
        self, observation: ArrayLike, *, deterministic: bool = True, state: None = None, episode_start: object = None
    ) -> tuple[NDArray[Any], None]:
        """The action for one observation, or the actions for several as rows, in the environment's units."""
        return self.policy().predict(observation, deterministic=deterministic, rng=self._rng)

    def save(self, path: str | Path, *, replay: bool = False) -> None:
        """Writes the whole agent as one safetensors file, from which `load` continues; with its replay if asked for.

        Policy.load reads the file too. For a device, `agent.policy().save(path)` writes the policy alone.
        """
        save_agent(self._started(), path, replay=replay)

    @classmethod
    def load(cls, path: str | Path, env: EnvLike | None = None, *, wiring: Rule | None = None) -> Self:
        """The agent in a file that `save` wrote, or in a run folder: it predicts, evaluates and keeps learning.

        `env` is needed if the agent was trained in an environment without a name, `wiring` if with a rule of your own.
        Without a saved replay, `learn` first refills it with the policy, and warns that it does.
        """
        if Path(path).is_dir():
            agent = cls(run_dir=path)
            agent._env = env
            return agent
        try:
            file = read_agent(path)
        except FileNotFoundError:
            raise Refused(f"there is no agent at {path}") from None
        config, own = file.config, file.policy.metadata.get("own_rule")
        if config.algorithm != cls.algorithm:
            found = method(config.method).title
            raise Refused(f"{path} holds an agent of {found}: load it with {found}.load")
        if (own is None) != (wiring is None):
            right = f"give your own rule, wiring={own}()" if own else "leave out wiring, which the file has"
            raise Refused(f"{path}: {right}")
        agent = cls(env=config.task if env is None else env, **config.items())
        agent.config = OwnRule(**vars(config), rule=wiring) if wiring else config
        agent._run = load_agent(file, config=agent.config, env=env)
        return agent

    # -------------------------------------------------------------- properties

    @property
    def step(self) -> int:
        """Environment steps so far."""
        if self._run is not None:
            return self._run.step
        return newest_step(RunFolder(self._folder).checkpoints) if self._folder else 0

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
        env = self.config.source(self._env).another()  # an instance is in the middle of an episode of training
        try:
            return evaluate_policy(self.policy(), env, episodes=episodes, seed=seed)
        finally:
            close(env)

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

    def __repr__(self) -> str:
        config, run = self.config, self._run
        widths = "-".join(map(str, config.options.hidden))
        facts = [config.task, config.method, f"{widths} hidden"]
        if run is not None:
            facts.append(f"{run.costs.links:,} links")
        facts.append(f"step {self.step:,}")
        if run is not None and run.evaluations:
            facts.append(f"return {run.evaluations[-1].return_mean:,.1f}")
        return f"{type(self).__name__}({', '.join(facts)})"

    # ------------------------------------------------------------------ the run

    def _exists(self) -> bool:
        return self._folder is not None and RunFolder(self._folder).config.exists()

    def _started(self, steps: int | None = None) -> Run:
        if self._run is None:
            if self._folder is not None and self._exists():
                self._run = self._resumed(self._folder)
            else:
                if steps is not None and self._open_end:
                    self.config = self.config.of_length(steps, self._given)
                try:
                    self._run = start(self.config, self._folder, env=self._env)
                except ValueError as error:  # a wiring that is impossible for the sizes of the task
                    raise Refused(str(error)) from None
        return self._run

    def _resumed(self, folder: Path) -> Run:
        """The number of steps so far, unless more are requested."""
        info = inspect_run(folder)
        if info.config:
            steps = info.config.steps if self._open_end else max(self.config.steps, info.step)
            self.config = replace(self.config, steps=steps).as_begun(info.config, self._given)
        self._open_end, self._given = False, self._given | set(BY_LENGTH)
        return resume(folder, config=self.config, env=self._env)


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


class CrossQ(Learner):
    """CrossQ, dense or sparse by its wiring: critics with batch normalisation and no targets.

    >>> from rewirl import SET
    >>> widths = {"hidden": (32, 32), "critic_hidden": (64, 64)}
    >>> agent = CrossQ("Pendulum-v1", wiring=SET(), sparsity=0.8, **widths, random_steps=50, eval_every=0)
    >>> agent.learn(100).step
    100
    """

    algorithm: ClassVar[str] = "crossq"


class DQN(Learner):
    """Double DQN for discrete actions, dense or sparse by its wiring.

    >>> agent = DQN("CartPole-v1", hidden=(32, 32), random_steps=50, eval_every=0)
    >>> int(agent.learn(100).predict([0.0, 0.0, 0.1, 0.0])[0]) in (0, 1)
    True
    """

    algorithm: ClassVar[str] = "dqn"


def _log(log: str | Logger | Iterable[str | Logger], tensorboard_log: str | None) -> list[Observer]:
    wanted: list[str | Logger] = list(log) if isinstance(log, Iterable) and not isinstance(log, str) else [log]
    if tensorboard_log is not None and "tensorboard" not in wanted:
        wanted.append("tensorboard")
    for logger in wanted:
        if isinstance(logger, str):
            check_logger(logger)
        elif not callable(getattr(logger, "log", None)):
            raise Refused(f"log must be 'tensorboard', 'wandb' or an object with log(step, numbers), not {logger!r}")
    return [LogTo(wanted, None if tensorboard_log is None else Path(tensorboard_log))] if wanted else []


class Warn(Observer):
    """Passes notices of the run on as warnings."""

    def on_notice(self, run: Run, text: str) -> None:
        warnings.warn(text, stacklevel=2)
