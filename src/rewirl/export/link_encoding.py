"""Encodings of a layer's links in few bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.policies.layer import PolicyLayer


@dataclass(frozen=True, eq=False)
class Encoded:
    """A layer's links by input, and for each link the index of its weight in the layer's order."""

    way: str
    """`dense`: nothing, since all links exist. `bitmap`: a bit for each output; each input starts a new byte.
    `deltas`: 8 bits from each link to the next of the same input. `indices`: the output of each link in 16 bits."""
    links: NDArray[Any]
    """uint8, or uint16 for indices."""
    counts: NDArray[np.uint8]
    """Entries of each input, so that an input of 0 can be skipped: one byte each, or two (low, high) if `wide`."""
    wide: bool
    order: NDArray[np.int64]
    """Which of the layer's weights belongs to each entry; -1 is a weight of 0, an intermediate step to a distant
    link."""

    def bytes(self, weight_bytes: int) -> int:
        """Total bytes, with weights of this size."""
        return self.links.nbytes + self.counts.nbytes + len(self.order) * weight_bytes


def encode(layer: PolicyLayer, weight_bytes: int) -> Encoded:
    """The smallest encoding, including weights."""
    if layer.density == 1:
        return _dense(layer)
    ways = [_deltas(layer), _indices(layer)]
    if layer.n_in * ((layer.n_out + 7) // 8) <= 2 * layer.links:  # else indices are smaller, and it may be very large
        ways.append(_bitmap(layer))
    return min(ways, key=lambda way: way.bytes(weight_bytes))


def _by_input(layer: PolicyLayer) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Links sorted by input, then output: their indices in the layer's order, inputs, outputs."""
    order = np.argsort(layer.columns, kind="stable")
    return order, layer.columns[order].astype(np.int64), layer.rows()[order].astype(np.int64)


def _counts(inputs: NDArray[np.int64], n_in: int) -> tuple[NDArray[np.uint8], bool]:
    counts = np.bincount(inputs, minlength=n_in)
    wide = bool(counts.max() > 255)
    return counts.astype("<u2" if wide else np.uint8).view(np.uint8), wide


def _dense(layer: PolicyLayer) -> Encoded:
    order, _, _ = _by_input(layer)
    nothing = np.zeros(0, dtype=np.uint8)
    return Encoded("dense", nothing, nothing, False, order)


def _bitmap(layer: PolicyLayer) -> Encoded:
    order, inputs, outputs = _by_input(layer)
    bits = np.zeros((layer.n_in, layer.n_out), dtype=bool)
    bits[inputs, outputs] = True
    packed = np.packbits(bits, axis=1, bitorder="little").ravel()
    return Encoded("bitmap", packed, *_counts(inputs, layer.n_in), order)


def _deltas(layer: PolicyLayer) -> Encoded:
    order, inputs, outputs = _by_input(layer)
    first = np.diff(inputs, prepend=-1) > 0
    deltas = np.where(first, outputs, np.diff(outputs, prepend=0))
    steps = np.maximum(deltas - 1, 0) // 255  # steps of 255 each; the link is then 1 to 255 away
    ends = np.cumsum(steps + 1)
    entries = np.full(ends[-1] if len(ends) else 0, 255, dtype=np.uint8)
    entries[ends - 1] = deltas - 255 * steps
    padded = np.full(len(entries), -1, dtype=np.int64)
    padded[ends - 1] = order
    return Encoded("deltas", entries, *_counts(np.repeat(inputs, steps + 1), layer.n_in), padded)


def _indices(layer: PolicyLayer) -> Encoded:
    order, inputs, outputs = _by_input(layer)
    return Encoded("indices", outputs.astype(np.uint16), *_counts(inputs, layer.n_in), order)
