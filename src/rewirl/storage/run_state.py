"""The content of a checkpoint, and its validation: numbers in JSON, arrays in safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from typing import Any, get_type_hints

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from rewirl.errors import Refused
from rewirl.files import from_json, to_json
from rewirl.storage.checkpoint import Damaged
from rewirl.storage.provenance import versions

FORMAT = 2
"""Version of the format: 2 since weights are ordered by position."""
NEEDS = "0.1.0"
"""The first version of rewirl that reads this format."""

UNFIT = (Damaged, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)
"""Errors from loading a checkpoint with valid hashes and invalid content."""

Arrays = dict[str, NDArray[np.generic]]
JSON = dict[str, Any]


@dataclass(kw_only=True)
class Saved:
    """The state of a run between two steps."""

    step: int
    """Environment steps so far."""
    episodes: int
    """Training episodes that have ended."""
    seconds: float
    """Seconds of training, over all sessions."""
    acted: int
    """Actions that the policy chose in training."""
    evaluation_steps: int
    """Steps of all evaluations that have a row."""
    row_step: int
    """Start of the last row, in steps and in seconds."""
    row_seconds: float
    episode_length: int
    """Steps of the current episode; 0 between episodes."""
    episode_return: float
    agent_generator: JSON
    loop_generator: JSON
    """Draws random actions and batches."""
    environment_generator: JSON | None
    """State before the current (or next) episode; none before the first."""
    n_obs: int
    n_act: int
    replay_slots: int
    replay_count: int
    replay_hashes: dict[str, str]
    pending: list[JSON]
    """Rows whose evaluation was pending; their actors are in the arrays."""
    versions: dict[str, str] = field(default_factory=versions)
    format: int = FORMAT
    needs: str = NEEDS

    def to_json(self) -> bytes:
        return to_json(asdict(self))

    @classmethod
    def from_json(cls, name: str, content: bytes) -> Saved:
        """Checks every field; `name` is the file's, for messages."""
        try:
            given = from_json(content)
        except ValueError as error:
            raise Damaged(f"{name} is not valid JSON: {error}") from None
        if not isinstance(given, dict):
            raise Damaged(f"{name} is not a JSON object")
        if isinstance(given.get("format"), int) and given["format"] > FORMAT:
            raise Refused(
                f"{name} needs rewirl ≥ {str(given.get('needs'))[:20]}: this is {version('rewirl')}, which reads up to "
                f"format {FORMAT}"
            )
        if isinstance(given.get("format"), int) and given["format"] < FORMAT:
            raise Refused(
                f"{name} has the checkpoint format {given['format']} of an older rewirl, this one reads {FORMAT}: "
                "resume it with the version that trained it, or train again (policy and evaluations can still be read)"
            )
        hints = get_type_hints(cls)
        if set(given) != {f.name for f in fields(cls)}:
            raise Damaged(f"{name} has other fields than a checkpoint: {sorted(set(given) ^ set(hints))}")
        for key, value in given.items():
            if not _fits(value, str(hints[key])):
                raise Damaged(f"{name} has {key} = {str(value)[:50]!r}, which is not {hints[key]}")
        return cls(**given)

    def differing_versions(self) -> list[str]:
        """Versions that differ; an older rewirl did not record all of them."""
        now = versions()
        names = [name for name in self.versions if self.versions[name] != now.get(name)]
        return [f"{name} {self.versions[name]} → {now.get(name, 'none')}" for name in names]


def _fits(value: object, hint: str) -> bool:
    if hint == "<class 'int'>":
        return type(value) is int and 0 <= value < 2**63
    if hint == "<class 'float'>":
        return type(value) is float
    if hint == "<class 'str'>":
        return isinstance(value, str)
    if hint.startswith("list"):
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    if hint == "dict[str, str]":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, dict) or (value is None and "None" in hint)


def pack(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def unpack(name: str, content: bytes) -> Arrays:
    """Arrays of a safetensors file; its header is checked against the file's length before anything is allocated."""
    try:
        return dict(safetensors.numpy.load(content))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise Damaged(f"{name} is not a safetensors file: {error}") from None


def part(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> Arrays:
    """Arrays whose name begins with a prefix, without it."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def named(prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    return {f"{prefix}{name}": array for name, array in arrays.items()}
