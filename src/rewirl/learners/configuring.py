"""An agent's config from environment, wiring and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from rewirl.agents.methods import METHODS, Method
from rewirl.agents.options import WiringOptions
from rewirl.envs.creation import EnvLike, Source, close
from rewirl.envs.task_names import full_name, import_module_of
from rewirl.envs.vector_rows import Row
from rewirl.errors import Refused
from rewirl.topology import Dense, DropAndGrow, Rule
from rewirl.topology._checks import whole_number
from rewirl.training.config import RunConfig, overlay


@dataclass(frozen=True, kw_only=True)
class OwnRule(RunConfig):
    """A run with a rule that cannot be stored in a file."""

    rule: Rule

    def wiring(self) -> WiringOptions:
        return replace(super().wiring(), rule=self.rule)

    def items(self) -> dict[str, Any]:
        return {name: value for name, value in super().items().items() if name != "rule"}


def new_config(
    algorithm: str, env: EnvLike, wiring: Rule | type[Rule] | None, seed: int | None, options: Mapping[str, Any]
) -> RunConfig:
    """The config that an environment, options and a wiring describe."""
    wiring = Dense if wiring is None else wiring
    method, numbers = _method(algorithm, wiring)
    for name in numbers.keys() & options.keys():
        raise Refused(f"{name} is given twice: it is already set by the wiring {wiring}")
    given = {"keep_replay": True, "seed": 0 if seed is None else seed, **numbers, **options}
    config = _resolved({"method": method.name, **described(env), **given})
    if isinstance(wiring, Rule) and type(wiring) is not method.rule:
        return OwnRule(**vars(config), rule=wiring)
    return config


def known_config(
    algorithm: str, known: RunConfig, wiring: Rule | type[Rule] | None, seed: int | None, options: Mapping[str, Any]
) -> RunConfig:
    """The config of an existing run, overridden by the given options."""
    if METHODS[known.method].algorithm != algorithm:
        right = METHODS[known.method].title
        raise Refused(f"the run in run_dir is one of {right}: open it with {right}(run_dir=...)")
    given = dict(options) if seed is None else {**options, "seed": seed}
    if wiring is not None:
        method, numbers = _method(algorithm, wiring)
        given |= {"method": method.name, **numbers}
    return _resolved(overlay(known.items(), given))


def _resolved(words: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig.resolve(**words)
    except ValueError as error:
        raise Refused(str(error)) from None


def _method(algorithm: str, wiring: Rule | type[Rule]) -> tuple[Method, dict[str, Any]]:
    rule = wiring if isinstance(wiring, type) else type(wiring)
    if not issubclass(rule, Rule):
        raise Refused(f"wiring must be a rule such as SET(), Static() or Dense(), not {wiring!r}")
    named = {m.rule: m for m in METHODS.values() if m.algorithm == algorithm and not m.defaults}
    # Only the name of a user's rule.
    fallback = METHODS[f"ds-{algorithm}" if rule.sparse else algorithm]
    numbers: dict[str, Any] = {}
    if isinstance(wiring, DropAndGrow):
        numbers = {"eta": wiring.eta, "adapt_every": wiring.every, "min_links": wiring.min_links}
    if isinstance(wiring, type) and rule not in named:
        raise Refused(f"wiring must be an instance of your own rule: {rule.__name__}()")
    return named.get(rule, fallback), numbers


def described(env: EnvLike) -> dict[str, Any]:
    """The task of an environment, its own name or that of its class; and how many there are in a vector environment."""
    if isinstance(env, str):
        import_module_of(env)
        return {"task": env}
    if not isinstance(env, gymnasium.Env | VectorEnv) and not callable(env):
        raise Refused(f"env must be the name of a task, a gymnasium.Env or a function that creates one, not {env!r}")
    source = Source("the environment", env)
    first, *others = source.make_all()
    own = type(first.unwrapped)
    name = first.task if isinstance(first, Row) else first.spec.id if first.spec else own.__name__
    if full_name(name) != name:  # its name is that of a Gymnasium task, but it is another environment
        name = f"{own.__module__}.{name}"
    if not source.is_given:
        for made in (first, *others):
            close(made)
    return {"task": name, "envs": 1 + len(others)} if others else {"task": name}


def whole_steps(steps: object) -> int:
    """A number of steps; accepts 1e5."""
    try:
        number = whole_number("steps", int(steps) if isinstance(steps, float) and steps.is_integer() else steps)
    except TypeError as error:
        raise Refused(str(error)) from None
    if number < 1:
        raise Refused(f"steps must be at least 1, not {number}")
    return number
