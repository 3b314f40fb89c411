"""Names of features where FlattenObservation made one array of a task's observations: kept in policy files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.spaces import Dict, Tuple
from gymnasium.spaces.utils import flatdim
from gymnasium.wrappers import FlattenObservation

from rewirl.envs.catalogue import observation_names
from rewirl.envs.creation import BY_NAME, Env
from rewirl.policies.policy import Policy
from rewirl.untrusted import from_json

NAMES = "observations"
"""Name of the names in a policy's metadata."""
LONGEST = 100_000
"""Characters of all names together: more are not kept."""


def flattened_names(env: Env) -> str | None:
    """JSON of the features' names, from the names in the space that was flattened; None if it had none.

    >>> from gymnasium.spaces import Box
    >>> list(_names(Dict({"arm": Box(0, 1, (2,)), "goal": Dict({"x": Box(0, 1, ())})})))
    ['arm 0', 'arm 1', 'goal x']
    """
    while isinstance(env, gymnasium.Wrapper) and type(env).__name__ in BY_NAME:
        env = env.env
    if not isinstance(env, FlattenObservation) or not isinstance(space := env.env.observation_space, Dict):
        return None
    names = json.dumps(list(_names(space)))
    return names if len(names) <= LONGEST else None


def policy_names(policy: Policy) -> tuple[str, ...]:
    """Names of the features that a policy observes: its own, or its task's, or numbers."""
    usual = observation_names(policy.task, policy.n_obs)
    try:
        own = from_json(policy.metadata.get(NAMES, "[]").encode())
    except ValueError:
        return usual
    fits = isinstance(own, list) and len(own) == policy.n_obs and all(map(_is_name, own))
    return tuple(own) if fits and len(set(own)) == len(own) else usual


def _is_name(text: object) -> bool:
    """Nothing that a terminal or a page would read as more than text."""
    return isinstance(text, str) and re.fullmatch(r"[\w .,:/-]{1,80}", text) is not None


def _names(space: gymnasium.Space[Any], before: str = "") -> Iterator[str]:
    if isinstance(space, Dict | Tuple):
        parts = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        for name, part in parts:
            yield from _names(part, f"{before} {name}".strip())
    elif (n := flatdim(space)) == 1:
        yield before
    else:
        yield from (f"{before} {number}" for number in range(n))
