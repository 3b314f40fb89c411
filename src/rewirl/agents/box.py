"""The box that actions live in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]


class ActionBox:
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

    def to_env(self, action: Floats) -> Floats:
        """From units of the policy to units of the environment."""
        if self._is_unit:  # most tasks: nothing to compute, on every step
            return action.copy()  # the environment may change it in place, and the replay needs it as it was
        # A weighted mean in float64: at -1 and 1 one weight is 0, so the ends are met exactly.
        return (0.5 * (1.0 - action) * self._low + 0.5 * (1.0 + action) * self._high).astype(np.float32)

    def from_env(self, action: Floats) -> Floats:
        """From units of the environment to units of the policy."""
        scaled = ((action - self._low) + (action - self._high)) / (self._high - self._low)
        return np.minimum(np.maximum(scaled, -1.0), 1.0).astype(np.float32)


def _inward(bound: ArrayLike, towards: float) -> Floats:
    """In float32, and inside the box: the float32 next to 0.1 is above it, and no action of a box that ends there."""
    given = np.array(bound)
    with np.errstate(over="ignore"):  # what becomes infinite is refused as unbounded
        rounded = given.astype(np.float32)
    outside = (rounded < given) if towards > 0 else (rounded > given)
    return np.where(outside, np.nextafter(rounded, np.float32(towards)), rounded)
