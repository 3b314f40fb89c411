"""A multi-layer perceptron that stores links only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rewirl import _core
from rewirl._core import Batch
from rewirl.nn._checks import entry, kind_of, not_a_batch, same_kind
from rewirl.nn.adam import Adam
from rewirl.nn.batch_norm import BatchNorm
from rewirl.nn.initial_weights import initial_weights
from rewirl.topology import DenseGradient, Links, Rule, estimated_moments, moved_births

Floats = NDArray[np.float32]
Kind = TypeVar("Kind", bound=np.generic)

_FLAT = ("parameters", "first_moments", "second_moments")
"""The flat arrays in a network's state."""


class Network:
    """Layers of links with ReLU between them; the last layer is linear.

    `parameters`, `gradients`, `first_moments` and `second_moments` are flat arrays in the same order: for each layer
    the weights of its links, then its biases, then γ and β if its inputs are normalised. They are views of the core's
    memory: they stay valid, and change as the network learns. `slots(layer)` gives the index of each link in them.

    >>> from rewirl.nn import batch_of
    >>> from rewirl.topology import SET, wire
    >>> rng = np.random.default_rng(0)
    >>> net = Network(wire((3, 8, 8, 2), rng, rule=SET(), sparsity=0.5), rng)
    >>> net.forward(batch_of(np.ones((3, 5), dtype=np.float32))).array.shape
    (2, 5)
    >>> net.count, net.dense_count
    (52, 104)
    """

    def __init__(
        self,
        links: Sequence[Links],
        rng: np.random.Generator,
        *,
        layer_norm: bool = False,
        batch_norm: BatchNorm | None = None,
        sparse_init: bool = False,
    ) -> None:
        """With `layer_norm` the outputs of hidden layers are normalised sample by sample before their ReLU. With
        `batch_norm` the inputs of every layer are normalised feature by feature. With `sparse_init` the scale of a
        neuron's initial weights follows from its number of links."""
        self._core = _core.Network(
            [(layer.n_in, layer.n_out, layer.block, layer.places) for layer in links],
            layer_norm,
            astuple(batch_norm) if batch_norm else None,
        )
        self.layer_norm, self.batch_norm, self.sparse_init = layer_norm, batch_norm, sparse_init
        self.sizes = (links[0].n_in, *(layer.n_out for layer in links))
        """Widths: inputs, hidden layers, outputs."""
        self._blocks = [layer.block for layer in links]
        self._counts = [layer.count for layer in links]
        self._births = [np.zeros(layer.blocks, dtype=np.int64) for layer in links]
        self._act_out = np.empty(self.sizes[-1], dtype=np.float32)
        values = []
        for layer in links:
            values.append(initial_weights(layer, rng, sparse_init))
            if batch_norm:
                values += [np.ones(layer.n_in, dtype=np.float32), np.zeros(layer.n_in, dtype=np.float32)]
        self._set_by_position(np.concatenate(values), self._by_position())

    # ------------------------------------------------------------- computing

    def forward(self, x: Batch, *, training: bool = False) -> Batch:
        """Outputs for a batch, in memory of the network that its next forward overwrites.

        With `training`, batch normalisation uses the statistics of the batch and updates the running ones; otherwise
        it uses the running ones.
        """
        try:
            return self._core.forward(x, training)
        except TypeError:
            raise not_a_batch("forward", x) from None

    def backward(self, dy: Batch, *, weights: bool = True, inputs: tuple[int, int] = (0, 0)) -> Batch:
        """Backward pass, from the gradient of the loss with respect to the outputs of the last forward. Writes the
        gradient of the weights into `gradients`, and returns that of the input features `inputs[0]` to `inputs[1]`.
        Computes only what is requested."""
        begin, end = inputs
        try:
            return self._core.backward(dy, weights, begin, end)
        except TypeError:
            if isinstance(dy, Batch):
                raise
            raise not_a_batch("backward", dy) from None

    def step(self, adam: Adam) -> None:
        """One step of Adam along `gradients`."""
        self._core.step(*adam)

    def act(self, x: Floats) -> Floats:
        """Outputs for one observation, in memory that the next call overwrites."""
        try:
            self._core.act(x, self._act_out)
        except TypeError:
            raise TypeError(f"an observation is {self.sizes[0]} contiguous float32 numbers, not {kind_of(x)}") from None
        return self._act_out

    # ---------------------------------------------------------------- wiring

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.sizes) - 1

    @property
    def counts(self) -> tuple[int, ...]:
        """Links of each layer: constant."""
        return tuple(self._counts)

    @property
    def count(self) -> int:
        """Links of all layers: what the paper calls #params."""
        return sum(self._counts)

    @property
    def dense_count(self) -> int:
        """Links of a dense network of these widths."""
        return sum(n_in * n_out for n_in, n_out in pairwise(self.sizes))

    def _read(
        self, layer: int, kind: type[Kind], read: Callable[[int, NDArray[np.int64], NDArray[Kind]], None]
    ) -> tuple[Links, NDArray[Kind]]:
        """The links of a layer, and the values that the core's `read` gives for them by position: (blocks, block)."""
        self._core.ranges(layer)  # refuses a layer that does not exist
        block = self._blocks[layer]
        values = np.empty((self._counts[layer] // block, block), dtype=kind)
        positions = np.empty(len(values), dtype=np.int64)
        read(layer, positions, values.reshape(-1))
        return Links._known(self.sizes[layer], self.sizes[layer + 1], block, positions), values

    def _wired(self, layer: int) -> tuple[Links, NDArray[np.int64]]:
        return self._read(layer, np.int64, self._core.by_position)

    def _weighted(self, layer: int) -> tuple[Links, Floats]:
        return self._read(layer, np.float32, self._core.weights_by_position)

    def links(self, layer: int) -> Links:
        """The current wiring of a layer."""
        return self._wired(layer)[0]

    def weights(self, layer: int) -> Floats:
        """A copy of a layer's weights in the order of `links(layer)`, shape (blocks, block)."""
        return self._weighted(layer)[1]

    def biases(self, layer: int) -> Floats:
        """A layer's biases."""
        return self.parameters[self.bias_slots(layer)]

    def slots(self, layer: int) -> NDArray[np.int64]:
        """Indices of a layer's links in the flat arrays, in the order of `links(layer)`: (blocks, block)."""
        return self._wired(layer)[1]

    def bias_slots(self, layer: int) -> slice:
        """Indices of a layer's biases in the flat arrays."""
        _, start = self._core.ranges(layer)
        return slice(start, start + self.sizes[layer + 1])

    def norm_slots(self, layer: int) -> tuple[slice, slice]:
        """Indices of γ and β of a layer's inputs in the flat arrays; empty without batch normalisation."""
        start = self.bias_slots(layer).stop
        n = self.sizes[layer] if self.batch_norm else 0
        return slice(start, start + n), slice(start + n, start + 2 * n)

    def statistics(self, layer: int) -> tuple[Floats, Floats]:
        """Running means and variances of a layer's inputs, read-only. For networks with batch normalisation."""
        return self._core.statistics(layer)

    def set_statistics(self, layer: int, mean: Floats, variance: Floats) -> None:
        """Overwrites the running statistics of a layer's inputs."""
        self._core.set_statistics(layer, mean, variance)

    def plain(self, layer: int) -> tuple[Floats, Floats]:
        """Weights, in the order of `links(layer)`, and biases of a network without normalisation that gives the same
        outputs: copies. Equal to `weights` and `biases` without batch normalisation."""
        if not self.batch_norm:
            return self.weights(layer), self.biases(layer).copy()
        flat = self._core.folded()
        return flat[self.slots(layer)], flat[self.bias_slots(layer)]

    def rewire(self, layer: int, links: Links) -> None:
        """Replaces the wiring of a layer by one with as many links. Links that stay keep weight and moments; new ones
        get 0."""
        now = self.links(layer)
        if (now.n_in, now.n_out, now.block) != (links.n_in, links.n_out, links.block):
            raise ValueError(
                f"layer {layer} is {now.n_in} → {now.n_out} with block {now.block}, the new wiring is for "
                f"{links.n_in} → {links.n_out} with block {links.block}"
            )
        if now.count != links.count:
            raise ValueError(f"rewiring keeps the number of links: the layer has {now.count}, not {links.count}")
        dropped = np.setdiff1d(now.places, links.places, assume_unique=True)
        grown = np.setdiff1d(links.places, now.places, assume_unique=True)
        self._core.rewire(layer, dropped, grown)
        self._births[layer] = moved_births(self._births[layer], now.places, dropped, grown, self._core.steps)

    def adapt(self, rule: Rule, rng: np.random.Generator) -> int:
        """TopologicalAdaptation (Algorithm 2) of every layer; returns the number of replaced links.

        New links start with weight 0 and second moments from `estimated_moments`.
        """
        changes = {}
        for layer in range(self.layers):
            if self._counts[layer] == self.sizes[layer] * self.sizes[layer + 1]:
                continue
            links, weights = self._weighted(layer)
            read = self._dense_gradient if rule.takes_panels else self.dense_gradient
            gradients = read(layer) if rule.wants_gradients else None
            change = rule.rewire(links, weights, rng, gradients)
            if len(change.grown):
                changes[layer] = change
        # All changes are known now, and none was refused.
        for layer, change in changes.items():
            moments = self.second_moments[self.slots(layer)]
            fresh = estimated_moments(change.before, moments, change.grown)
            self._core.rewire(layer, change.dropped, change.grown, fresh)
            self._births[layer] = moved_births(
                self._births[layer], change.before.places, change.dropped, change.grown, self._core.steps
            )
        return sum(len(change.grown) * change.before.block for change in changes.values())

    def dense_gradient(self, layer: int) -> Floats:
        """The dense gradient of a layer from the last backward, for rules that grow by it: (outputs, inputs)."""
        return self._dense_gradient(layer).whole()

    def _dense_gradient(self, layer: int) -> DenseGradient:
        self._core.ranges(layer)  # refuses a layer that does not exist
        n_in, n_out = self.sizes[layer : layer + 2]

        def read(begin: int, end: int) -> Floats:
            panel = np.empty((end - begin, n_out), dtype=np.float32)
            self._core.dense_gradient(layer, begin, end, panel)
            return panel

        return DenseGradient(n_in, n_out, read)

    def hidden_outputs(self) -> list[Floats]:
        """Outputs of each hidden layer in the last forward, after its ReLU: (neurons, samples), in memory of the
        network."""
        return [self._core.layer_input(layer).array for layer in range(1, self.layers)]

    def link_ages(self, layer: int) -> NDArray[np.int64]:
        """Ages of a layer's links in steps of Adam, by position; a block has one age."""
        return self._core.steps - self._births[layer]

    def gradient_norm(self, layer: int, beta2: float) -> float | None:
        """Root mean square of the norm of a layer's gradient over about the last 1 / (1 - beta2) steps of Adam,
        computed from second moments: √(Σ v / (1 - beta2^t)). None before the first step."""
        begin, biases = self._core.ranges(layer)
        moments = self.second_moments[begin : biases + self.sizes[layer + 1]]
        if not self._core.steps:
            return None
        return math.sqrt(moments.sum(dtype=np.float64) / (1 - beta2**self._core.steps))

    # ----------------------------------------------------------------- state

    @property
    def parameters(self) -> Floats:
        """Weights and biases, read-only (see `set_parameters`)."""
        return self._core.parameters

    @property
    def gradients(self) -> Floats:
        """Gradients of the last backward with weights."""
        return self._core.gradients

    @property
    def first_moments(self) -> Floats:
        """Adam's m."""
        return self._core.first_moments

    @property
    def second_moments(self) -> Floats:
        """Adam's v."""
        return self._core.second_moments

    def set_parameters(self, values: Floats) -> None:
        """Overwrites weights and biases; the order is that of `parameters`."""
        try:
            self._core.set_parameters(values)
        except TypeError:
            raise TypeError(
                f"parameters are {len(self.parameters)} contiguous float32 numbers, not {kind_of(values)}"
            ) from None

    def _by_position(self, slots: Sequence[NDArray[np.int64]] | None = None) -> NDArray[np.int64]:
        """Indices in the flat arrays of, layer by layer, the links by position, then the biases: an order that does not
        depend on the core's."""
        flat = np.arange(len(self.parameters))
        slots = slots or [self.slots(layer) for layer in range(self.layers)]
        parts = []
        for layer, links in enumerate(slots):
            parts += [links.ravel(), flat[self.bias_slots(layer)]]
            parts += [flat[slots] for slots in self.norm_slots(layer)]
        return np.concatenate(parts)

    def _set_by_position(self, values: Floats, order: NDArray[np.int64]) -> None:
        flat = np.empty_like(values)
        flat[order] = values
        self.set_parameters(flat)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything that the next update depends on: copies, ordered by position."""
        wired = [self._wired(layer) for layer in range(self.layers)]
        order = self._by_position([slots for _, slots in wired])
        out: dict[str, NDArray[np.generic]] = {name: getattr(self, name)[order] for name in _FLAT}
        out["steps"] = np.array(self._core.steps, dtype=np.int64)
        for layer, (links, _) in enumerate(wired):
            out[f"places.{layer}"] = links.places
            out[f"births.{layer}"] = self._births[layer].copy()
            if self.batch_norm:
                mean, variance = self.statistics(layer)
                out |= {f"mean.{layer}": mean.copy(), f"variance.{layer}": variance.copy()}
        if self.batch_norm:
            out["batches"] = np.array(self._core.batches, dtype=np.int64)
        return out

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Restores what `state` returned; everything is checked before anything changes."""
        flat = {name: same_kind(name, state, getattr(self, name)) for name in _FLAT}
        steps = same_kind("steps", state, np.array(0, dtype=np.int64))
        if steps < 0:
            raise ValueError(f"steps must not be negative, and are {steps}")
        wiring = []
        for layer, (n_in, n_out) in enumerate(pairwise(self.sizes)):
            links = Links(n_in, n_out, self._blocks[layer], entry(f"places.{layer}", state))  # type: ignore[arg-type]
            if links.count != self._counts[layer]:
                raise ValueError(f"layer {layer} has {self._counts[layer]} links, the state has {links.count}")
            wiring.append(links)
        births = [self._births_in(state, layer, int(steps)) for layer in range(self.layers)]
        norm = self._norm_in(state) if self.batch_norm else None
        for layer, links in enumerate(wiring):
            self.rewire(layer, links)
        order = self._by_position()
        self._set_by_position(flat["parameters"], order)
        self.first_moments[order] = flat["first_moments"]
        self.second_moments[order] = flat["second_moments"]
        self._core.steps = int(steps)
        self._births = births
        if norm:
            for layer, statistics in enumerate(norm[0]):
                self.set_statistics(layer, *statistics)
            self._core.batches = norm[1]

    def _norm_in(self, state: Mapping[str, NDArray[np.generic]]) -> tuple[list[tuple[Floats, Floats]], int]:
        statistics = []
        for layer, n_in in enumerate(self.sizes[:-1]):
            like = np.empty(n_in, dtype=np.float32)
            mean, variance = (same_kind(f"{name}.{layer}", state, like) for name in ("mean", "variance"))
            if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance >= 0).all()):
                raise ValueError(f"mean.{layer} and variance.{layer} must be finite, and variances not negative")
            statistics.append((mean, variance))
        batches = same_kind("batches", state, np.array(0, dtype=np.int64))
        if batches < 0:
            raise ValueError(f"batches must not be negative, and are {batches}")
        return statistics, int(batches)

    def _births_in(self, state: Mapping[str, NDArray[np.generic]], layer: int, steps: int) -> NDArray[np.int64]:
        """States of older versions have no ages: their links count as old as the network."""
        name, like = f"births.{layer}", self._births[layer]
        if name not in state:
            return np.zeros_like(like)
        births = same_kind(name, state, like).astype(np.int64)
        if len(births) and not (births.min() >= 0 and births.max() <= steps):
            raise ValueError(f"{name} must be steps from 0 to {steps}")
        return births

    def bytes(self) -> dict[str, int]:
        """Memory of the network by purpose, without activations of batches."""
        return self._core.bytes()
