"""The actions of a task, as an agent, the replay and the environment see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]


class Actions(ABC):
    """The actions of a task. An action is `size` numbers in units of the policy."""

    size: int

    @classmethod
    @abstractmethod
    def of_size(cls, size: int) -> Self:
        """Placeholder actions of this size, for an agent that only loads a state."""

    @abstractmethod
    def to_env(self, action: Floats) -> Any:
        """From units of the policy to units of the environment."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Floats:
        """A uniformly random action, in units of the policy."""

    @abstractmethod
    def bounds(self) -> dict[str, Any]:
        """The fields of a `Policy` that describe its actions."""

    @property
    @abstractmethod
    def phrase(self) -> str:
        """A description for messages."""


class ActionBox(Actions):
    """Maps a policy's actions, -1 to 1 in each dimension, onto [low, high], and back.

    >>> box = ActionBox([-2.0, 0.0], [2.0, 10.0])
    >>> box.to_env(np.array([-1.0, 0.5], dtype=np.float32))
    array([-2. ,  7.5], dtype=float32)
    >>> box.from_env(np.array([2.0, 7.5], dtype=np.float32))
    array([1. , 0.5], dtype=float32)
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = _inward(low, np.inf), _inward(high, -np.inf)
        if self.low.ndim != 1 or self.low.shape != self.high.shape or self.low.size == 0:
            raise ValueError(f"an action box has one low and one high per dimension, not {self.low} and {self.high}")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise ValueError(
                f"the action box is unbounded (low {self.low}, high {self.high}): a squashed policy needs finite bounds"
            )
        if not (self.low < self.high).all():
            raise ValueError(f"every low of the action box must be below its high: low {self.low}, high {self.high}")
        self.size = len(self.low)
        self._low, self._high = self.low.astype(np.float64), self.high.astype(np.float64)
        self._is_unit = bool((self.low == -1).all() and (self.high == 1).all())

    @classmethod
    def of_size(cls, size: int) -> Self:
        return cls(-np.ones(size), np.ones(size))

    def to_env(self, action: Floats) -> Floats:
        if self._is_unit:  # as in most tasks: nothing to compute
            return action.copy()  # the environment may change it in place, and the replay needs it as it was
        # A weighted mean in float64: at -1 and 1 one weight is 0, so the ends are met exactly.
        return (0.5 * (1.0 - action) * self._low + 0.5 * (1.0 + action) * self._high).astype(np.float32)

    def from_env(self, action: Floats) -> Floats:
        """From units of the environment to units of the policy."""
        scaled = ((action - self._low) + (action - self._high)) / (self._high - self._low)
        return np.minimum(np.maximum(scaled, -1.0), 1.0).astype(np.float32)

    def draw(self, rng: np.random.Generator) -> Floats:
        return rng.uniform(-1, 1, self.size).astype(np.float32)

    def bounds(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @property
    def phrase(self) -> str:
        return f"{self.size} continuous action{'s' * (self.size > 1)}"


class Choices(Actions):
    """Discrete actions `first` to `first + size - 1`. In units of the policy an action is one-hot, so that
    replay records and network outputs have one number for each choice.

    >>> Choices(3, first=-1).to_env(np.array([0, 0, 1], dtype=np.float32))
    np.int64(1)
    """

    def __init__(self, size: int, first: int = 0) -> None:
        if size < 1:
            raise ValueError(f"there must be at least one action to choose from, not {size}")
        self.size, self.first = size, first

    @classmethod
    def of_size(cls, size: int) -> Self:
        return cls(size)

    def to_env(self, action: Floats) -> np.int64:
        return np.int64(action.argmax() + self.first)

    def one_hot(self, index: int | np.intp) -> Floats:
        """The action with this index, from 0, in units of the policy."""
        action = np.zeros(self.size, dtype=np.float32)
        action[index] = 1
        return action

    def draw(self, rng: np.random.Generator) -> Floats:
        return self.one_hot(int(rng.integers(self.size)))

    def bounds(self) -> dict[str, Any]:
        return {"first": self.first}

    @property
    def phrase(self) -> str:
        return f"{self.size} discrete action{'s' * (self.size > 1)}"


def _inward(bound: ArrayLike, towards: float) -> Floats:
    """In float32, and inside the box: the float32 next to 0.1 is above it, and no action of a box that ends there."""
    given = np.array(bound)
    with np.errstate(over="ignore"):  # a bound that overflows float32 is refused as unbounded
        rounded = given.astype(np.float32)
    outside = (rounded < given) if towards > 0 else (rounded > given)
    return np.where(outside, np.nextafter(rounded, np.float32(towards)), rounded)
