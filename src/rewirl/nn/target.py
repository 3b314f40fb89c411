"""A target network: follows a network slowly, and keeps its sparsity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rewirl import _core
from rewirl._core import Batch
from rewirl.nn._checks import entry, not_a_batch, same_kind
from rewirl.nn.network import Network
from rewirl.topology import Links


class Target:
    """The target θ' of a network θ: a copy at first, then changed by `update`.

    The target has links of its own. It keeps a link that θ drops while it is among the k largest (Algorithm 3), and
    takes over a link that θ grows once that is large enough.

    >>> from rewirl.topology import Dense, wire
    >>> rng = np.random.default_rng(0)
    >>> net = Network(wire((3, 8, 2), rng, rule=Dense()), rng)
    >>> target = Target(net)
    >>> target.update(tau=0.005)
    >>> target.follows(0)
    1.0
    """

    def __init__(self, online: Network) -> None:
        self.online = online
        self._core = _core.Target(online._core)

    def forward(self, x: Batch) -> Batch:
        """Outputs for a batch, in memory that the next call overwrites."""
        try:
            return self._core.forward(x)
        except TypeError:
            raise not_a_batch("forward", x) from None

    def update(self, tau: float) -> None:
        """θ' ← τθ + (1-τ)θ', then MaintainSparsity: each layer keeps its k largest magnitudes, k being its number of
        links."""
        self._core.update(tau)

    def follows(self, layer: int) -> float:
        """Share of the layer's non-zero links that the network also has."""
        shared, extra = self._core.alive(layer)
        return shared / (shared + extra) if shared + extra else 1.0

    def alive(self, layer: int) -> int:
        """Number of non-zero links of the layer."""
        return sum(self._core.alive(layer))

    def dense(self, layer: int) -> NDArray[np.float32]:
        """The layer as a matrix (outputs, inputs), with zeros elsewhere: for inspection, not for computing."""
        links = self.online.links(layer)
        extra_positions, extra_weights = self._core.extra(layer)
        by_position = np.zeros((links.n_places, links.block), dtype=np.float32)
        by_position[links.places] = self._core.weights(layer)[self._order(layer)].reshape(-1, links.block)
        by_position[extra_positions] = extra_weights.reshape(-1, links.block)
        return np.ascontiguousarray(by_position.reshape(links.n_in, links.n_out).T)

    def biases(self, layer: int) -> NDArray[np.float32]:
        """A layer's biases."""
        return self._core.bias(layer)

    def take(self, layer: int, neurons: NDArray[np.bool_]) -> None:
        """Takes over what the network has of some neurons of a hidden layer: their biases, and the links into them and
        out of them."""
        for at, side in ((layer, "outputs"), (layer + 1, "inputs")):
            links = self.online.links(at)
            mine = links.touching(**{side: neurons})
            self._core.weights(at)[self._order(at).reshape(mine.shape)[mine]] = self.online.weights(at)[mine]
            places, weights = self._core.extra(at)
            if len(places):
                extra = Links(links.n_in, links.n_out, links.block, places)
                weights[extra.touching(**{side: neurons}).ravel()] = 0
                self._core.set_extra(at, places, weights)
        self._core.bias(layer)[neurons] = self.online.biases(layer)[neurons]

    def _order(self, layer: int) -> NDArray[np.int64]:
        """Indices of the layer's weights in the core, by position."""
        start, _ = self.online._core.ranges(layer)
        return self.online.slots(layer).ravel() - start

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything that the next update depends on, as copies. To be saved with the state of the network."""
        out: dict[str, NDArray[np.generic]] = {}
        for layer in range(self.online.layers):
            places, weights = self._core.extra(layer)
            out[f"weights.{layer}"] = self._core.weights(layer)[self._order(layer)]
            out[f"bias.{layer}"] = self._core.bias(layer).copy()
            out[f"extra_places.{layer}"] = places
            out[f"extra_weights.{layer}"] = weights
        return out

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Restores what `state` returned. Load the network's state first: it defines the links of the weights."""
        layers = range(self.online.layers)
        weights = [same_kind(f"weights.{layer}", state, self._core.weights(layer)) for layer in layers]
        biases = [same_kind(f"bias.{layer}", state, self._core.bias(layer)) for layer in layers]
        extras = []
        for layer in layers:
            places = entry(f"extra_places.{layer}", state)
            if places.dtype != np.int64 or places.ndim != 1:
                raise ValueError(f"extra_places.{layer} must be one-dimensional int64, and is {places.dtype}")
            links = self.online.links(layer)
            try:
                extra = Links(links.n_in, links.n_out, links.block, places).places  # type: ignore[arg-type]
            except ValueError as error:
                raise ValueError(f"extra_places.{layer}: {error}") from None
            if (also := np.isin(extra, links.places, assume_unique=True)).any():
                raise ValueError(f"extra_places.{layer} has {extra[also][0]}, which is also a link of the network")
            like = np.empty(len(extra) * links.block, dtype=np.float32)
            extras.append((extra, same_kind(f"extra_weights.{layer}", state, like)))
        for layer in layers:
            self._core.set_extra(layer, *extras[layer])
            self._core.weights(layer)[self._order(layer)] = weights[layer]
            self._core.bias(layer)[...] = biases[layer]

    def bytes(self) -> dict[str, int]:
        """Memory of the target by purpose, without activations of batches."""
        return self._core.bytes()
