"""The catalogue of methods by name. A method is an algorithm with a wiring rule.

Other packages add methods with `register_method`, in a module that they list as an entry point:

    [project.entry-points."rewirl.methods"]
    mine = "my_package.methods"
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from rewirl.agents.agent import Agent
from rewirl.agents.costs import Costs
from rewirl.agents.crossq import CrossQAgent
from rewirl.agents.dqn import DQNAgent
from rewirl.agents.options import Options, WiringOptions
from rewirl.agents.sac import SACAgent
from rewirl.agents.td3 import TD3Agent
from rewirl.errors import nearest
from rewirl.topology import SET, Dense, RigL, Rule, Static

ENTRY_POINTS = "rewirl.methods"
"""Group of the entry points that are loaded when methods are first used."""


@dataclass(frozen=True)
class Method:
    """`ds-td3` is TD3 with SET, `static-sac` SAC with Static, and so on: no class per combination."""

    name: str
    agent: type[Agent]
    rule: type[Rule]
    eta: float = 0.05
    """Default of η; here the paper's for the algorithm."""
    random_steps: int = 25_000
    """Steps of uniformly random actions before learning begins."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options that have another default in this method, by name."""
    phrase: str = ""
    """What it is, for people, where algorithm and rule do not say it all."""

    @property
    def algorithm(self) -> str:
        return self.agent.algorithm

    @property
    def title(self) -> str:
        """The name of the algorithm in texts."""
        return self.agent.title or self.algorithm.upper()

    @property
    def options(self) -> type[Options]:
        """The options class of the algorithm."""
        return self.agent.options_class

    @property
    def about(self) -> str:
        """A description in one line."""
        return f"{self.title} with {self.phrase or self.rule.phrase}"


class Catalogue(Mapping[str, Method]):
    """All methods by name: those below, those of installed packages, and those registered later."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}
        self._loaded = False

    def __getitem__(self, name: str) -> Method:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def add(self, method: Method) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", method.name):
            raise ValueError(f"{method.name!r} cannot be a method's name: use small letters, digits and hyphens")
        if self._methods.get(method.name, method) != method:
            raise ValueError(f"there is a method {method.name!r} already: take another name")
        self._methods[method.name] = method

    def _all(self) -> dict[str, Method]:
        if not self._loaded:
            self._loaded = True
            for entry in entry_points(group=ENTRY_POINTS):
                try:
                    entry.load()
                except Exception as error:  # another package: everything else works without it
                    warnings.warn(f"the methods of {entry.value} could not be loaded: {error}", stacklevel=3)
        return self._methods


METHODS = Catalogue()
"""All methods by name."""


def register_method(method: Method) -> Method:
    """Adds a method for use in flags, config files, sweeps, checkpoints and policies.

    Registering the same method again changes nothing; another method of the same name is refused.
    """
    METHODS.add(method)
    return method


register_method(
    Method(
        "lean-td3",
        TD3Agent,
        SET,
        defaults={
            "sparsity": 0.9,
            "recycle": 0.0,
            "updates_per_step": 2.0,
            "lr_schedule": "linear",
            # Initial weights and rates by a neuron's links: see docs/learning.md.
            "sparse_init": True,
            "sparse_rate": 1.0,
        },
        phrase="a tenth of the links, learning rates to suit, and two updates per step",
    )
)
for _prefix, _rule in {"": Dense, "static-": Static, "ds-": SET, "rigl-": RigL}.items():
    register_method(Method(f"{_prefix}td3", TD3Agent, _rule, eta=0.05, random_steps=25_000))
    register_method(Method(f"{_prefix}sac", SACAgent, _rule, eta=0.1, random_steps=10_000))
    register_method(Method(f"{_prefix}dqn", DQNAgent, _rule, eta=0.05, random_steps=1_000))
    register_method(Method(f"{_prefix}crossq", CrossQAgent, _rule, eta=0.1, random_steps=5_000))


def method(name: str) -> Method:
    """The method of this name.

    >>> method("ds-td3").about
    "TD3 with sparse networks that rewire themselves (SET: the paper's method)"
    """
    if name not in METHODS:
        raise ValueError(f"there is no method {name!r}{nearest(name, METHODS)}; methods are {', '.join(METHODS)}")
    return METHODS[name]


def algorithms() -> dict[str, Method]:
    """Each algorithm with its first method, which has its options and defaults.

    >>> list(algorithms())
    ['td3', 'sac', 'dqn', 'crossq']
    """
    found: dict[str, Method] = {}
    for each in METHODS.values():
        found.setdefault(each.algorithm, each)
    return found


def costs(n_obs: int, n_act: int, options: Options, wiring: WiringOptions) -> Costs:
    """What the agent that has such options will cost, before it exists."""
    agent = next(each.agent for each in algorithms().values() if each.options is type(options))
    return agent.costs(n_obs, n_act, options, wiring)
