"""Initial weights and biases of a layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewirl.topology import Links

Floats = NDArray[np.float32]


def initial_weights(links: Links, rng: np.random.Generator, sparse: bool) -> Floats:
    """Weights of the links and biases, uniform in ±1/√(inputs of the layer), as in a dense layer.

    If `sparse`, weights are uniform in ±1/√(links into the neuron), so that outputs have the scale of a dense layer's.
    """
    values = rng.uniform(-1, 1, links.count + links.n_out).astype(np.float32)
    values /= np.sqrt(np.float32(links.n_in))
    if sparse:
        fan_in = np.bincount(links.output_blocks, minlength=links.n_out // links.block)[links.output_blocks]
        values[: links.count] *= np.sqrt(links.n_in / np.repeat(fan_in, links.block), dtype=np.float32)
    return values
