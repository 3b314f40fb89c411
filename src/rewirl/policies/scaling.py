"""Normalisation as networks and policies use it: statistics of one moment, applied to observations and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

CLIP = np.float32(10)
"""Normalised observations and rewards are clipped to ± this, as VecNormalize of Stable-Baselines3 does."""


def _none() -> Floats:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Scaling:
    """(x - mean) / std of observations, clipped to ±10; rewards divided by `reward_std`. All in float32.

    >>> scaling = Scaling(np.array([1, 0], np.float32), np.array([2, 0.01], np.float32))
    >>> scaling.observation(np.array([2, 5], np.float32))
    array([ 0.5, 10. ], dtype=float32)
    >>> Scaling().observation(np.array([2, 5], np.float32))
    array([2., 5.], dtype=float32)
    """

    mean: Floats = field(default_factory=_none)
    """Of each feature; empty if observations are used as they are."""
    std: Floats = field(default_factory=_none)
    """Of each feature, above 0; empty if observations are used as they are."""
    reward_std: Floats | None = None
    """Of discounted returns, above 0; None if rewards are used as they are."""

    def observation(self, obs: Floats) -> Floats:
        """One observation (n_obs,) or several (n, n_obs), as networks see them."""
        if not len(self.mean):
            return obs
        scaled: Floats = (obs - self.mean) / self.std
        return np.minimum(np.maximum(scaled, -CLIP), CLIP)

    def rewards(self, rewards: Floats, steps: int = 1) -> None:
        """Rewards, or sums of `steps` of them, in place."""
        if self.reward_std is not None:
            rewards /= self.reward_std
            np.minimum(rewards, CLIP * np.float32(steps), out=rewards)
            np.maximum(rewards, -CLIP * np.float32(steps), out=rewards)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it holds, by name; empty if nothing is normalised."""
        found: dict[str, NDArray[Any]] = {"mean": self.mean, "std": self.std} if len(self.mean) else {}
        return found if self.reward_std is None else {**found, "reward_std": np.array([self.reward_std])}

    @classmethod
    def with_arrays(cls, arrays: Mapping[str, NDArray[Any]], like: Scaling) -> Scaling:
        """From what `arrays` gave, for a scaling of the kind and sizes of `like`; anything else is a ValueError."""
        expected = like.arrays()
        if arrays.keys() != expected.keys():
            raise ValueError(f"a normalisation has {sorted(expected)}, and here are {sorted(arrays)}")
        for name, known in expected.items():
            check_statistic(name, arrays[name], known.shape)
        reward_std = np.float32(arrays["reward_std"][0]) if "reward_std" in arrays else None
        return cls(arrays.get("mean", _none()), arrays.get("std", _none()), reward_std)  # type: ignore[arg-type]


def check_statistic(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> None:
    """ValueError unless these are finite float32 numbers of that shape; above 0 if they are standard deviations."""
    if values.dtype != np.float32 or values.shape != shape:
        raise ValueError(f"{name} must be float32 of shape {shape}, not {values.dtype} of shape {values.shape}")
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name}[{at}] is {values[at]}: every number must be finite")
    if name.endswith("std") and not (values > 0).all():
        at = int(np.argmin(values))
        raise ValueError(f"{name}[{at}] is {values[at]}: a standard deviation must be above 0")
