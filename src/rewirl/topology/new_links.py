"""New links: their initial second moments, and the step at which they grew."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewirl.topology.links import Links

Floats = NDArray[np.float32]


def estimated_moments(links: Links, moments: Floats, grown: NDArray[np.int64]) -> Floats:
    """Second moments for links that grow at the positions `grown`, estimated from the links that a layer has.

    With both moments 0 Adam's first steps are up to 6.5 times the learning rate, since its bias correction is that of
    a network that has learned for long. The second moment of a new link is similar to that of its neighbours: the mean
    over its input's links, times the mean over its output's links, divided by the mean of the layer (the rank-one
    estimate of Adafactor; Shazeer and Stern 2018). A neuron without links counts as average.

    `moments` has the shape (blocks, block), in the order of `links.places`; the result is flat, block by block.

    >>> links = Links(n_in=2, n_out=2, block=1, places=np.array([0, 1, 2]))
    >>> estimated_moments(links, np.array([[8.0], [2.0], [2.0]], dtype=np.float32), np.array([3]))
    array([1.], dtype=float32)
    """
    blocks_out = links.n_out // links.block
    mean = moments.mean(dtype=np.float64)
    if mean == 0:
        return np.zeros(len(grown) * links.block, dtype=np.float32)
    of_input = _means(links.inputs, moments.mean(axis=1, dtype=np.float64), links.n_in, mean)
    of_output = np.stack(
        [_means(links.output_blocks, moments[:, row], blocks_out, mean) for row in range(links.block)], axis=1
    )
    estimates = of_input[grown // blocks_out, None] * of_output[grown % blocks_out] / mean
    return np.asarray(estimates, dtype=np.float32).ravel()


def moved_births(
    births: NDArray[np.int64],
    places: NDArray[np.int64],
    dropped: NDArray[np.int64],
    grown: NDArray[np.int64],
    step: int,
) -> NDArray[np.int64]:
    """The steps at which a layer's links grew, by position, after a rewiring.

    >>> moved_births(np.array([0, 5, 0]), np.array([1, 4, 6]), np.array([4]), np.array([3]), step=9)
    array([0, 9, 0])
    """
    gone = np.searchsorted(places, dropped)
    kept = np.delete(places, gone)
    return np.insert(np.delete(births, gone), np.searchsorted(kept, grown), step)


def _means(
    neuron: NDArray[np.int64], values: NDArray[np.floating], neurons: int, otherwise: float
) -> NDArray[np.float64]:
    """The mean of the values that belong to each neuron."""
    counts = np.bincount(neuron, minlength=neurons)
    sums = np.bincount(neuron, weights=values, minlength=neurons)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)
