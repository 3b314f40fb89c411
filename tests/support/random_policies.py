"""Policies to try things on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from rewirl.policies import Policy, PolicyLayer


def random_layer(n_in: int, n_out: int, density: float, rng: np.random.Generator) -> PolicyLayer:
    links = rng.random((n_out, n_in)) < density
    rows, columns = np.nonzero(links)
    indptr = np.searchsorted(rows, np.arange(n_out + 1)).astype(np.int32)
    weights = rng.standard_normal(len(columns)) / np.sqrt(max(1.0, density * n_in))
    bias = rng.standard_normal(n_out) * 0.1
    return PolicyLayer(
        n_in, n_out, indptr, columns.astype(np.int32), weights.astype(np.float32), bias.astype(np.float32)
    )


def random_policy(
    sizes: Sequence[int] = (3, 5, 4, 2),
    density: float | Sequence[float] = 0.5,
    algorithm: str = "td3",
    seed: int = 0,
    **fields: object,
) -> Policy:
    """`sizes` ends with the number of actions; discrete ones begin at -3. The box is neither symmetric nor the same in
    any two dimensions."""
    rng = np.random.default_rng(seed)
    *hidden, n_act = sizes
    shapes = list(pairwise([*hidden, n_act * (2 if algorithm == "sac" else 1)]))
    densities = [density] * len(shapes) if isinstance(density, float) else density
    low = rng.uniform(-3, -0.5, n_act).astype(np.float32)
    high = rng.uniform(0.25, 5, n_act).astype(np.float32)
    layers = [random_layer(*shape, d, rng) for shape, d in zip(shapes, densities, strict=True)]
    actions = {"first": -3} if algorithm == "dqn" else {"low": low, "high": high}
    return Policy(**{"layers": layers, **actions, "algorithm": algorithm, "task": "Toy-v0", **fields})


@pytest.fixture(scope="session")
def make_policy() -> Callable[..., Policy]:
    return random_policy


@pytest.fixture(scope="session")
def make_layer() -> Callable[..., PolicyLayer]:
    return random_layer
