"""A minimum number of inputs per neuron: what a rewiring must not drop, and what it must grow first.

With blocks, a block of neurons shares its inputs: it counts as one neuron here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.topology.links import Links

Indices = NDArray[np.int64]


def attainable(links: Links, least: int) -> int:
    """`least` inputs per neuron, or as many as the layer has inputs, or links for each neuron, if those are fewer.

    >>> attainable(Links(n_in=8, n_out=2, block=1, places=np.arange(6)), 4)
    3
    """
    return min(least, links.n_in, links.blocks // _neurons(links))


def leaves(links: Links, drops: Indices, least: int) -> bool:
    """Whether each neuron has `least` inputs or more without these links. Mostly so: then nothing needs to be sorted.

    >>> links = Links(n_in=4, n_out=2, block=1, places=np.array([0, 2, 3, 4]))
    >>> leaves(links, np.array([1]), 1), leaves(links, np.array([2]), 1)
    (True, False)
    """
    if not least:
        return True
    neurons = links.output_blocks
    before, gone = (np.bincount(each, minlength=_neurons(links)) for each in (neurons, neurons[drops]))
    return bool((before - gone >= least).all())


def droppable(links: Links, magnitudes: NDArray[np.floating[Any]], least: int) -> Indices:
    """Indices of the links that may go: all but the `least` largest magnitudes of each neuron.

    >>> links = Links(n_in=4, n_out=2, block=1, places=np.array([0, 2, 3, 4]))
    >>> droppable(links, np.array([0.3, 0.1, 0.1, 0.2]), 2)
    array([1])
    """
    neurons = links.output_blocks
    order = np.lexsort((-magnitudes, neurons))  # neuron by neuron, the largest first; of equals the lowest place
    first = np.searchsorted(neurons[order], neurons[order])
    return np.sort(order[np.arange(len(order)) - first >= least])


def missing(links: Links, least: int, most: int, rng: np.random.Generator) -> Indices:
    """Free places, ascending, for the links that neurons with fewer than `least` inputs need; at most `most`, those of
    the neurons with fewest inputs first.

    Uniform over the neuron's free inputs: a neuron without inputs has no gradient that could say which are best.
    """
    counts = np.bincount(links.output_blocks, minlength=_neurons(links))
    places, levels = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for neuron in np.flatnonzero(counts < least):
        free = np.setdiff1d(np.arange(links.n_in), links.inputs[links.output_blocks == neuron], assume_unique=True)
        inputs = rng.choice(free, least - counts[neuron], replace=False)
        places.append(inputs * _neurons(links) + neuron)
        levels.append(np.arange(counts[neuron], least))
    first = np.argsort(np.concatenate(levels), kind="stable")[:most]
    return np.sort(np.concatenate(places)[first])


def _neurons(links: Links) -> int:
    return links.n_out // links.block
