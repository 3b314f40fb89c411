"""Names of options: which a method has, and which override others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from rewirl.agents.methods import Method, algorithms
from rewirl.errors import nearest

RETIRED: Mapping[str, object] = {"mean_moments": False}
"""Options of older config files with their only value that is still accepted: the one without effect."""
LINKS = ("sparsity", "lambdas", "actor_sparsity", "critic_sparsity", "block")
"""Fields that define the links; dense methods do not have them."""
REWIRING = ("eta", "adapt_every", "adapt_until", "anneal_eta", "min_links")
"""Fields that define how links change; static methods do not have them, except adapt_every if they recycle."""
BY_LENGTH = ("random_steps", "adapt_until", "lr_until")
"""Fields whose default follows from the number of steps."""


def rewiring(recycles: bool) -> tuple[str, ...]:
    """Fields that a method has only if it rewires."""
    return tuple(name for name in REWIRING if not (recycles and name == "adapt_every"))


def check_known(names: Iterable[str], of_run: Iterable[str], chosen: Method | None) -> None:
    """Refuses a name that is neither among those `of_run` nor an option of the chosen method (of any if None)."""
    own = {name: {f.name for f in fields(each.options)} for name, each in algorithms().items()}
    known = set(of_run) - {"options"}
    known |= {f.name for f in fields(chosen.options)} if chosen else set().union(*own.values())
    for name in names:
        if name in known:
            continue
        others = [algorithms()[algorithm].title for algorithm, theirs in own.items() if name in theirs]
        if others and chosen:
            raise ValueError(f"{name} is an option of {others[0]}, which {chosen.name} is not")
        raise ValueError(f"there is no option {name!r}{nearest(name, sorted(known))}")


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` overridden by `above`; sparsity and lambdas replace each other.

    >>> overlay({"seed": 1, "lambdas": [7, 64]}, {"sparsity": 0.8})
    {'seed': 1, 'sparsity': 0.8}
    """
    pair = {"sparsity", "lambdas"}
    replaced = pair if pair & above.keys() else set()
    return {name: value for name, value in below.items() if name not in replaced} | dict(above)
