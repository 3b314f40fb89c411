"""Data types of exported weights, and their effect on accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.export.errors import ExportError
from rewirl.policies.layer import Floats, PolicyLayer
from rewirl.policies.policy import Policy

BYTES = {"f32": 4, "f16": 2, "int8": 1}
"""Data types, with bytes per weight."""
LARGEST_F16 = 65504.0


@dataclass(frozen=True, eq=False)
class Stored:
    """A layer's stored weights."""

    codes: NDArray[Any]
    """One for each link: float32, the bits of a half (uint16), or int8."""
    scale: Floats | None
    """int8 only: scale of each output's codes."""
    values: Floats
    """The weights that the stored ones represent."""


def stored(layer: PolicyLayer, dtype: str) -> Stored:
    """The layer's weights in `dtype`, each rounded to the nearest value."""
    check_dtype(dtype)
    if dtype == "f32":
        return Stored(layer.weights, None, layer.weights)
    if dtype == "f16":
        if layer.links and (largest := float(np.abs(layer.weights).max())) > LARGEST_F16:
            raise ExportError(
                f"a weight of {largest:g} does not fit f16, whose largest value is {LARGEST_F16:g}: use f32 or int8"
            )
        half = layer.weights.astype(np.float16)
        return Stored(half.view(np.uint16), None, half.astype(np.float32))
    rows = layer.rows()
    largest_of_row = np.zeros(layer.n_out, dtype=np.float32)
    np.maximum.at(largest_of_row, rows, np.abs(layer.weights))
    scale = largest_of_row / np.float32(127)
    scale[scale == 0] = 1  # a row of zeros (or of numbers next to it) is stored as zeros
    codes = np.clip(np.rint(layer.weights / scale[rows]), -127, 127).astype(np.int8)
    return Stored(codes, scale, codes * scale[rows])


def as_stored(policy: Policy, dtype: str) -> Policy:
    """The policy with weights rounded to `dtype`."""
    layers = [replace(layer, weights=stored(layer, dtype).values) for layer in policy.layers]
    return replace(policy, layers=layers)


@dataclass(frozen=True)
class Loss:
    """Change of the actions by a data type, in half-ranges of the action."""

    largest: float
    """Over all observations and dimensions of the action."""
    mean: float
    """Maximum over the same."""
    observations: int
    """Number of observations."""
    discrete: bool = False
    """Whether `mean` is the share of observations for which another action is chosen."""

    def __str__(self) -> str:
        tried = f"{self.observations} observations"
        if self.discrete:
            return f"another one is chosen for {self.mean:.1%} of {tried}"
        return f"at most {self.largest:.3%}, {self.mean:.3%} on average, of half the range ({tried})"


def accuracy_loss(policy: Policy, dtype: str, observations: Floats | None = None) -> Loss:
    """Effect of `dtype` on the actions, for `observations` or else for `some_observations`."""
    if observations is None:
        observations = some_observations(policy)
    if observations.ndim != 2 or observations.shape[1] != policy.n_obs or not len(observations):
        raise ExportError(f"observations must be rows of {policy.n_obs} numbers, not of shape {observations.shape}")
    policy = policy.acting()
    found = apart(policy, as_stored(policy, dtype).predict(observations)[0], policy.predict(observations)[0])
    return Loss(float(found.max()), float(found.mean()), len(observations), policy.is_discrete)


def some_observations(policy: Policy) -> Floats:
    """1000 standard normal ones; of the mean and standard deviation that the policy knows, if it does."""
    drawn = np.random.default_rng(0).standard_normal((1000, policy.n_obs), dtype=np.float32)
    return drawn * policy.obs_std + policy.obs_mean if policy.is_normalised else drawn


def apart(policy: Policy, some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Distance between actions, in half-ranges; 1 for another discrete action."""
    if policy.is_discrete:
        return np.asarray(some != others, dtype=np.float64)
    half = (policy.high.astype(np.float64) - policy.low) / 2
    return np.asarray(np.abs(some.astype(np.float64) - others) / half)


def check_dtype(dtype: str) -> None:
    """Refuses an unknown data type."""
    if dtype not in BYTES:
        raise ExportError(f"dtype must be {', '.join(list(BYTES)[:-1])} or {list(BYTES)[-1]}, not {dtype!r}")
