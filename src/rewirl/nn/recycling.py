"""Neurons that do nothing: which they are, and how they start anew (ReDo; Sokar et al., ICML 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rewirl.nn.initial_weights import initial_weights
from rewirl.nn.network import Network
from rewirl.nn.target import Target


def dormant(outputs: NDArray[np.float32], threshold: float) -> NDArray[np.bool_]:
    """Which neurons of a layer have a mean output of at most `threshold` times the layer's; with 0, the dead ones.

    `outputs` are those after ReLU, (neurons, samples).

    >>> outputs = np.array([[0, 0], [4, 4], [0, 0.05]], dtype=np.float32)
    >>> dormant(outputs, 0), dormant(outputs, 0.025)
    (array([ True, False, False]), array([ True, False,  True]))
    """
    activity = outputs.mean(axis=1, dtype=np.float64)
    found: NDArray[np.bool_] = activity <= threshold * activity.mean()
    return found


def recycle(network: Network, targets: Sequence[Target], threshold: float, rng: np.random.Generator) -> int:
    """Starts the neurons anew that were dormant in the last forward; the number of them.

    Weights into a neuron and its bias are drawn as at first, weights out of it are 0, and so are the moments of all of
    them. Batch normalisation of its output starts anew, too. The targets take these over. Left alone they would move
    the weights into the neuron towards those that were drawn, and only as slowly those out of it towards 0: the neuron
    would come to life with weights that no longer mean anything.
    """
    layers = [dormant(outputs, threshold) for outputs in network.hidden_outputs()]
    parameters = network.parameters.copy()
    for layer, neurons in enumerate(layers):
        if neurons.any():
            links, biases = network.links(layer), network.bias_slots(layer)
            into, slots = links.touching(outputs=neurons), network.slots(layer)
            drawn = initial_weights(links, rng, network.sparse_init)
            parameters[slots[into]] = drawn[: links.count].reshape(into.shape)[into]
            parameters[biases][neurons] = drawn[links.count :][neurons]
            flat = network.first_moments, network.second_moments
            for moments in flat:
                moments[slots[into]] = 0
                moments[biases][neurons] = 0
            for at, first in zip(network.norm_slots(layer + 1), (1, 0), strict=True) if network.batch_norm else ():
                parameters[at][neurons] = first
                for moments in flat:
                    moments[at][neurons] = 0
    for layer, neurons in enumerate(layers):
        if neurons.any():
            out = network.slots(layer + 1)[network.links(layer + 1).touching(inputs=neurons)]
            for values in (parameters, network.first_moments, network.second_moments):
                values[out] = 0
    count = sum(int(neurons.sum()) for neurons in layers)
    if count:
        network.set_parameters(parameters)
    for layer, neurons in enumerate(layers if network.batch_norm else ()):
        mean, variance = network.statistics(layer + 1)
        network.set_statistics(layer + 1, np.where(neurons, 0, mean), np.where(neurons, 1, variance))
    for layer, neurons in enumerate(layers):
        for target in targets if neurons.any() else ():
            target.take(layer, neurons)
    return count
