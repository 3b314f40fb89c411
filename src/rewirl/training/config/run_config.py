"""The complete config of a run: method, task and all options."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from rewirl.agents import Actions, Agent, Costs
from rewirl.agents.methods import METHODS, Method, algorithms, method
from rewirl.agents.options import Options, WiringOptions
from rewirl.envs.catalogue import paper_lambdas
from rewirl.envs.creation import EnvLike, Source
from rewirl.envs.task_names import full_name
from rewirl.limits import MAX_THREADS, MAX_WIDTH
from rewirl.nn.cores import available_cores
from rewirl.topology import DEFAULT_SPARSITY, DropAndGrow
from rewirl.training.config.fields import coerce, default_of, hints, meanings_of
from rewirl.training.config.option_names import BY_LENGTH, LINKS, RETIRED, check_known, overlay, rewiring
from rewirl.training.config.toml_values import shown, toml
from rewirl.training.first_steps import default_random_steps, updates_until
from rewirl.untrusted import from_json, from_toml, printable

SEEDS = 2**32
"""Seeds are below this."""
_COUNTS = (
    "envs",
    "steps",
    "adapt_every",
    "eval_episodes",
    "replay_size",
    "threads",
    "checkpoint_every",
)
MAX_ENVS = 1024
"""Each has an episode of its own in the checkpoint."""
_EXAMPLES = {"method": "ds-td3", "task": "HalfCheetah-v5"}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The config of a run. Create it with `resolve`, which fills in defaults, or read it with `from_toml`.

    >>> config = RunConfig.resolve(method="ds-td3", task="HalfCheetah-v5", seed=1, lr=3e-4)
    >>> config.lambdas, config.sparsity, config.eta, config.options.lr
    ((7.0, 64.0), None, 0.05, 0.0003)
    >>> RunConfig.from_toml(config.to_toml()) == config
    True
    """

    method: str
    """An algorithm, alone (dense) or with static-, ds- or rigl- before it; see `rewirl methods`."""
    task: str
    """A Gymnasium task with flat Box observations and Box or Discrete actions; see `rewirl tasks`."""
    seed: int = 0
    """Random seed, 0 to 4294967295."""
    steps: int = 1_000_000
    """Environment steps, including random ones."""
    sparsity: float | None = None
    """Share of all weights that are absent, from 0 (dense) to below 1, spread over the layers."""
    lambdas: tuple[float, ...] | None = None
    """λ of each layer except the last, instead of sparsity: round(λ (n_in + n_out)) links."""
    actor_sparsity: float | None = None
    """Sparsity of the actor, if it differs from that of the critics."""
    critic_sparsity: float | None = None
    """Sparsity of each critic, if it differs from that of the actor."""
    eta: float = 0.05
    """η: share of the links that one rewiring replaces."""
    adapt_every: int = 1000
    """e: updates between two rewirings."""
    adapt_until: int | None = None
    """Update after which links no longer change."""
    anneal_eta: bool = False
    """Let η fall to 0 along a cosine until adapt_until, which is 80% of all updates unless given."""
    min_links: int = 0
    """Minimum links into a neuron after a rewiring; neurons with fewer get new links first. At least 1 with recycle."""
    recycle: float | None = None
    """Recycle hidden neurons every adapt_every updates if their activity is at most this share of their layer's mean;
    0 recycles dead neurons only. Off unless given."""
    block: int = 1
    """Size of blocks of neighbouring outputs that share an input: 1 (the paper's wiring), 2 or 4 (fastest)."""
    updates_per_step: float = 1.0
    """Updates per environment step; 0.5 makes one every second step. e counts updates, so more of them also rewire
    more often."""
    envs: int = 1
    """Environments that take turns, a step each; one step of all is that many steps and updates."""
    env_processes: bool = True
    """Let several environments step in other processes on spare cores; results do not change."""
    random_steps: int = 25_000
    """Steps of uniformly random actions before learning begins."""
    initial_samples: str | None = None
    """Run folder or policy file whose policy acts in these steps instead of random actions."""
    eval_every: int = 5000
    """Steps between evaluations, starting at step 0; 0 disables them."""
    eval_episodes: int = 10
    """Episodes per evaluation."""
    replay_size: int = 1_000_000
    """Capacity of the replay in transitions."""
    threads: int = 1
    """Threads of the kernels; more than the available cores only cost time. Results do not depend on it."""
    checkpoint_every: int = 25_000
    """Maximum steps between checkpoints; written at the end of an episode if possible."""
    keep_replay: bool = False
    """Keep the replay in the run folder after the last step, so that the run can be extended."""
    eval_process: bool = False
    """Evaluate in another process on a spare core; results do not change."""
    env_kwargs: tuple[str, ...] | None = None
    """Arguments for gymnasium.make, as name=value. Values are read as JSON if possible, otherwise as text."""
    options: Options
    """Hyper-parameters of the algorithm."""

    FREE: ClassVar[frozenset[str]] = frozenset(
        {"steps", "threads", "checkpoint_every", "keep_replay", "eval_process", "env_processes"}
    )
    """Fields that may change when a run is resumed: results do not depend on them."""

    @classmethod
    def resolve(cls, *, method: str, task: str, **given: Any) -> RunConfig:
        """The run that these options describe; defaults are the paper's.

        `given` may contain any field and any option of the algorithm; None means not given.
        """
        chosen = _method(method)
        _text("task", task)
        if not task or ".." in task or task.startswith("/"):
            raise ValueError(f"{task!r} is not a task: give the name of a Gymnasium task, e.g. HalfCheetah-v5")
        task = full_name(task)  # without a version, the name could mean another task in the next Gymnasium
        given = overlay(chosen.defaults, {name: value for name, value in given.items() if value is not None})
        check_known(given, FIELDS, chosen)
        if isinstance(arguments := given.get("env_kwargs"), Mapping):
            given["env_kwargs"] = [f"{name}={json.dumps(value)}" for name, value in arguments.items()]
        if isinstance(what := given.get("normalize"), list | tuple):
            given["normalize"] = ",".join(sorted(map(str, what)))
        values = {name: coerce(name, hint, given[name]) for name, hint in hints(cls).items() if name in given}
        numbers = {n: coerce(n, hint, given[n]) for n, hint in hints(chosen.options).items() if n in given}
        random_steps = default_random_steps(chosen.random_steps, values.get("steps", cls.steps))
        values = {"eta": chosen.eta, "random_steps": random_steps, **values}
        steps, per_step = values.get("steps", cls.steps), values.get("updates_per_step", cls.updates_per_step)
        updates = updates_until(steps, values["random_steps"], per_step)
        if values.get("anneal_eta") and "adapt_until" not in values:
            values["adapt_until"] = max(updates * 4 // 5, 1)
        if numbers.get("lr_schedule", "constant") != "constant":
            numbers.setdefault("lr_until", max(updates, 1))
        options = chosen.options(**numbers)
        each = {"actor_sparsity", "critic_sparsity"} <= values.keys()
        if chosen.rule.sparse and not each and "sparsity" not in values and "lambdas" not in values:
            # The paper chose its λ for its own widths.
            preset = paper_lambdas(task, chosen.algorithm) if options.hidden == Options.hidden else None
            values.update({"lambdas": preset} if preset else {"sparsity": DEFAULT_SPARSITY})
        if values.get("lambdas") is not None:
            values["lambdas"] = tuple(map(float, values["lambdas"]))
        return cls(method=method, task=task, options=options, **values)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"seed must be from 0 to {SEEDS - 1}, not {self.seed}")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.updates_per_step > 0:
            raise ValueError(f"updates_per_step must be above 0, not {self.updates_per_step}")
        if self.threads > MAX_THREADS:
            raise ValueError(f"threads must be from 1 to {MAX_THREADS}, not {self.threads}")
        if self.envs > MAX_ENVS:
            raise ValueError(f"envs must be from 1 to {MAX_ENVS}, not {self.envs}")
        for name in ("random_steps", "eval_every"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.initial_samples is not None and not (self.initial_samples and self.random_steps):
            raise ValueError(
                "initial_samples must be a run folder or policy file, and random_steps the number of samples"
            )
        for argument in self.env_kwargs or ():
            if not re.fullmatch(r"[A-Za-z_]\w*=.*", argument, re.DOTALL):
                raise ValueError(f"env_kwargs must be arguments such as g=9.81, not {argument!r}")
        chosen = _method(self.method)
        if not isinstance(self.options, chosen.options):
            raise ValueError(f"{self.method} needs {chosen.options.__name__}, not {type(self.options).__name__}")
        if self.sparsity is not None and self.lambdas is not None:
            raise ValueError("give either sparsity or lambdas, not both: each determines the number of links")
        for names, possible, why in (
            (LINKS, chosen.rule.sparse, "is dense"),
            (rewiring(self.recycle is not None), issubclass(chosen.rule, DropAndGrow), "never rewires"),
        ):
            used = [name for name in names if getattr(self, name) not in (0, _unused(chosen, name))]
            if used and not possible:
                *most, last = names
                raise ValueError(f"{self.method} {why}: for {', '.join(most)} or {last} use ds-{chosen.algorithm}")
        # Refuses wirings that are impossible for every task: the widest input has the most positions.
        chosen_wiring, o = self.wiring(), self.options
        for wiring, widths in ((chosen_wiring.actor, o.hidden), (chosen_wiring.critic, o.critic_widths)):
            wiring.counts((MAX_WIDTH, *widths, 1))

    def wiring(self) -> WiringOptions:
        """Which links the networks have and how they change."""
        rule = _method(self.method).rule
        changes: dict[str, Any] = {}
        if issubclass(rule, DropAndGrow):
            changes = {"eta": self.eta, "every": self.adapt_every, "until": self.adapt_until, "anneal": self.anneal_eta}
            # A recycled neuron needs at least one input.
            changes["min_links"] = self.min_links or int(self.recycle is not None)
        links = {name: getattr(self, name) for name in LINKS}
        return WiringOptions(rule=rule(**changes), **links, recycle=self.recycle, recycle_every=self.adapt_every)

    def build_agent(self, n_obs: int, actions: Actions, rng: np.random.Generator) -> Agent:
        """The agent before its first step."""
        return _method(self.method).agent(n_obs, actions, self.options, self.wiring(), rng)

    @property
    def updates(self) -> int:
        """Updates of the whole run."""
        return updates_until(self.steps, self.random_steps, self.updates_per_step)

    @property
    def workers(self) -> int:
        """Processes in which environments step: as many as there are spare cores, 0 if in this one."""
        return max(min(available_cores() - self.threads, self.envs), 0) if self.envs > 1 and self.env_processes else 0

    def empty_agent(self, n_obs: int, n_act: int) -> Agent:
        """An agent of these sizes, to load a state into."""
        actions = _method(self.method).agent.actions_class.of_size(n_act)
        return self.build_agent(n_obs, actions, np.random.default_rng(0))

    def costs(self, n_obs: int, actions: Actions) -> Costs:
        """Costs of the agent; ValueError if it does not support these actions, or if networks of these sizes cannot
        have this wiring."""
        chosen = _method(self.method)
        if not isinstance(actions, chosen.agent.actions_class):
            fitting = [m for m in METHODS.values() if isinstance(actions, m.agent.actions_class)]
            names = [m.name for m in fitting if m.rule is chosen.rule] or [m.name for m in fitting]
            raise ValueError(f"{self.method} cannot learn a task with {actions.phrase}: use {' or '.join(names)}")
        return chosen.agent.costs(n_obs, actions.size, self.options, self.wiring())

    def of_length(self, steps: int, given: Container[str] = BY_LENGTH) -> Self:
        """The same config with this many steps. Options whose defaults depend on it change too, except those in
        `given`."""
        words = {name: value for name, value in self.items().items() if name not in BY_LENGTH or name in given}
        return replace(self, steps=steps)._with_lengths_of(RunConfig.resolve(**{**words, "steps": steps}))

    def as_begun(self, known: RunConfig, given: Container[str]) -> Self:
        """The same config with the options that depend on the number of steps from a known run, except those in
        `given`."""
        return self._with_lengths_of(known, given)

    def _with_lengths_of(self, other: RunConfig, given: Container[str] = ()) -> Self:
        values: dict[str, Any] = {name: other.items().get(name) for name in BY_LENGTH if name not in given}
        options: dict[str, Any] = {name: values.pop(name) for name in list(values) if hasattr(self.options, name)}
        return replace(self, options=replace(self.options, **options), **values)

    def source(self, env: EnvLike | None = None) -> Source:
        """The source of its environments: the task by name, or `env`."""
        if env is not None and not isinstance(env, str) and self.env_kwargs:
            raise ValueError("env_kwargs needs a task by its name: give the arguments to your own environment instead")
        arguments = dict(argument.split("=", 1) for argument in self.env_kwargs or ())
        return Source(self.task, self.task if env is None else env, {n: _json_or(v) for n, v in arguments.items()})

    @property
    def algorithm(self) -> str:
        """Name of the algorithm, such as td3."""
        return self._method.algorithm

    @property
    def _method(self) -> Method:
        return _method(self.method)

    def items(self) -> dict[str, Any]:
        """All settings that have an effect, by the names that `resolve`, flags and files use."""
        flat = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "options"}
        rule, idle = _method(self.method).rule, {"options"}
        idle |= {name for name in ("envs", "env_processes") if flat[name] == default_of(RunConfig, name)}
        if not issubclass(rule, DropAndGrow):
            idle |= set(rewiring(self.recycle is not None))
        if not rule.sparse:
            idle |= set(LINKS)
        return {n: value for n, value in (flat | asdict(self.options)).items() if value is not None and n not in idle}

    def by_length(self) -> set[str]:
        """Names of the settings that have their default for this number of steps."""
        items = self.items()
        defaults = {name: self.of_length(self.steps, {*BY_LENGTH} - {name}).items().get(name) for name in BY_LENGTH}
        return {name for name in BY_LENGTH if name in items and items[name] == defaults[name]}

    def differences(self, other: RunConfig) -> list[str]:
        """Differences that make `other` a different run, one line each; empty if it may resume this one."""
        mine, theirs = self.items(), other.items()
        names = [name for name in mine | theirs if name not in self.FREE and mine.get(name) != theirs.get(name)]
        return [f"{name}: {shown(mine.get(name))} is now {shown(theirs.get(name))}" for name in names]

    def to_toml(self) -> str:
        """A file for `from_toml`, with a comment on each line."""
        meanings = {**meanings_of(type(self)), **meanings_of(type(self.options))}
        lines = [f"{name} = {toml(value)}  # {meanings[name]}" for name, value in self.items().items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> RunConfig:
        """The run that a file describes."""
        given = parse_toml(text)
        for name in ("method", "task"):
            if name not in given:
                raise ValueError(f"the config has no {name}: add a line such as {name} = {_EXAMPLES[name]!r}")
        return cls.resolve(**given)


FIELDS = tuple(f.name for f in fields(RunConfig))


def _unused(chosen: Method, name: str) -> object:
    """The value of a field that has no effect."""
    return chosen.eta if name == "eta" else default_of(RunConfig, name)


def parse_toml(text: str) -> dict[str, Any]:
    """The options in a config file, checked by name: some or all of what `RunConfig.resolve` takes.

    >>> parse_toml("seed = 3")
    {'seed': 3}
    """
    try:
        given = from_toml(text)
    except ValueError as error:
        raise ValueError(f"the config is not TOML: {error}") from None
    chosen = _method(given["method"]) if "method" in given else None
    given = {name: value for name, value in given.items() if name not in RETIRED or value != RETIRED[name]}
    check_known(given, FIELDS, chosen)
    return given


def all_hints() -> dict[str, Any]:
    """Types of the fields of a run and of all algorithms."""
    kinds: list[type] = [RunConfig, *(each.options for each in algorithms().values())]
    return {name: hint for kind in kinds for name, hint in hints(kind).items()}


def _method(name: object) -> Method:
    return method(_text("method", name))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, e.g. {_EXAMPLES[name]!r}, not {value!r}")
    if printable(value) != value:
        raise ValueError(f"{name} must be plain text, and has a control character in {value[:50]!r}")
    return value


def _json_or(text: str) -> Any:
    try:
        return from_json(text.encode())
    except ValueError:
        return text
