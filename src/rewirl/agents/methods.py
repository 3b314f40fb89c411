"""Methods by name: an algorithm times a rule of wiring, with the paper's numbers for its tasks."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rewirl.agents.actor_critic import ActorCritic
from rewirl.agents.options import Options, SACOptions, TD3Options
from rewirl.agents.sac import SACAgent
from rewirl.agents.td3 import TD3Agent
from rewirl.topology import SET, Dense, RigL, Rule, Static


@dataclass(frozen=True)
class Method:
    """`ds-td3` is TD3 with SET, `static-sac` SAC with Static, and so on: no class per combination."""

    name: str
    agent: type[ActorCritic]
    options: type[Options]
    rule: type[Rule]
    eta: float
    """The paper's η for this algorithm."""
    random_steps: int
    """Steps of uniformly random actions before learning begins."""

    @property
    def algorithm(self) -> str:
        return self.agent.algorithm

    @property
    def about(self) -> str:
        """One line for people."""
        wiring = {
            "dense": "dense networks",
            "static": "sparse networks that never change",
            "set": "sparse networks that rewire themselves (SET: the paper's method)",
            "rigl": "sparse networks that rewire themselves by gradients (RigL)",
        }
        return f"{self.algorithm.upper()} with {wiring[self.rule.name]}"

    def lambdas(self, task: str) -> tuple[float, float] | None:
        """The paper's λ for a task, whatever its version; None where it has none."""
        return _LAMBDAS.get(self.algorithm, {}).get(re.sub(r"-v\d+$", "", task))


def _all_methods() -> Iterable[Method]:
    for prefix, rule in {"": Dense, "static-": Static, "ds-": SET, "rigl-": RigL}.items():
        yield Method(f"{prefix}td3", TD3Agent, TD3Options, rule, eta=0.05, random_steps=25_000)
        yield Method(f"{prefix}sac", SACAgent, SACOptions, rule, eta=0.1, random_steps=10_000)


METHODS: dict[str, Method] = {method.name: method for method in _all_methods()}
"""All methods by the name that users type."""
KINDS: tuple[type[Options], ...] = tuple(dict.fromkeys(method.options for method in METHODS.values()))
"""What has the numbers of each algorithm."""

# (λ¹, λ²) of the paper's appendices, chosen there for the -v3 tasks.
_LAMBDAS: dict[str, dict[str, tuple[float, float]]] = {
    "td3": {
        "HalfCheetah": (7, 64),
        "Hopper": (7, 64),
        "Walker2d": (7, 64),
        "Ant": (40, 64),
        "Humanoid": (61, 64),
    },
    "sac": {
        "HalfCheetah": (12, 80),
        "Walker2d": (12, 80),
        "Hopper": (7, 20),
        "Ant": (30, 64),
        "Humanoid": (61, 64),
    },
}


def method(name: str) -> Method:
    """The method of that name.

    >>> method("ds-td3").about
    "TD3 with sparse networks that rewire themselves (SET: the paper's method)"
    """
    if name not in METHODS:
        raise ValueError(f"there is no method {name!r}{nearest(name, METHODS)}; methods are {', '.join(METHODS)}")
    return METHODS[name]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name, or nothing.

    >>> nearest("HalfCheeta-v5", ["HalfCheetah-v5", "Hopper-v5"])
    ', did you mean HalfCheetah-v5?'
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f", did you mean {found[0]}?" if found else ""
