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
        self.low = np.array(low, dtype=np.float32)
        self.high = np.array(high, dtype=np.float32)
        if self.low.ndim != 1 or self.low.shape != self.high.shape or self.low.size == 0:
            raise ValueError(f"an action box has one low and one high per dimension, not {self.low} and {self.high}")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise ValueError(
                f"the action box is unbounded (low {self.low}, high {self.high}): a squashed policy needs finite bounds"
            )
        if not (self.low < self.high).all():
            raise ValueError(f"every low of the action box must be below its high: low {self.low}, high {self.high}")
        self.size = len(self.low)
        # In float64, then rounded once: the ends of the box are met exactly (and clipped should rounding overshoot).
        self._center = (self.high.astype(np.float64) + self.low) / 2
        self._half = (self.high.astype(np.float64) - self.low) / 2

    def to_env(self, action: Floats) -> Floats:
        """From units of the policy to units of the environment."""
        mapped = (self._center + self._half * action).astype(np.float32)
        return np.minimum(np.maximum(mapped, self.low), self.high)

    def from_env(self, action: Floats) -> Floats:
        """From units of the environment to units of the policy."""
        scaled = ((action - self._center) / self._half).astype(np.float32)
        return np.minimum(np.maximum(scaled, np.float32(-1)), np.float32(1))
