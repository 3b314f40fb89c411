"""Changes of a run's wiring, from its links at each evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewirl.storage.folder import RunFolder
from rewirl.storage.logs import wiring_log
from rewirl.storage.logs.tables import parse, whole_lines
from rewirl.storage.logs.wiring_log import Bits
from rewirl.topology import DropAndGrow
from rewirl.training.config import RunConfig
from rewirl.training.measurements import EvaluationRow
from rewirl.untrusted import read_bytes

Ints = NDArray[np.int64]
Shares = NDArray[np.float64]
Layer = tuple[str, int]
"""The network's name and the number of its layer."""


def layer_name(layer: Layer) -> str:
    """Name of the layer, counted from 1.

    >>> layer_name(("actor", 0))
    'actor, layer 1'
    """
    network, number = layer
    return f"{network}, layer {number + 1}"


@dataclass(frozen=True, eq=False)
class Movement:
    """The wiring of the sparse layers at the steps of the evaluations."""

    steps: tuple[int, ...]
    wiring: Mapping[Layer, Bits]
    """(evaluations, inputs, outputs) of each layer."""
    adaptations: int
    """Rewirings until the last of the steps."""
    replaced: int
    """Links that they replaced, in all networks together."""

    def __str__(self) -> str:
        """The speed of change in one sentence."""
        if not self.adaptations:
            return "The wiring has not been changed yet."
        links = sum(int(bits[-1].sum()) for bits in self.wiring.values())
        each = self.replaced / self.adaptations
        return (
            f"{self.adaptations:,} rewirings replaced {each:,.0f} links each, {each / links:.1%} of the {links:,} in "
            f"sparse layers: {self.replaced:,} in all."
        )

    def survived(self, layer: Layer) -> Shares:
        """Share of the initial links that still exist, at each step.

        A link that was dropped and grew again counts.

        >>> wiring = np.array([[[True, True]], [[True, False]]])
        >>> Movement((0, 10), {("actor", 0): wiring}, 1, 1).survived(("actor", 0))
        array([1. , 0.5])
        """
        bits = self.wiring[layer]
        shared: Shares = (bits & bits[0]).sum(axis=(1, 2)) / bits[0].sum()
        return shared

    def without_input(self, layer: Layer) -> Ints:
        """Neurons of the layer without incoming links, at each step.

        >>> wiring = np.array([[[True, True]], [[True, False]]])
        >>> Movement((0, 10), {("actor", 0): wiring}, 1, 1).without_input(("actor", 0))
        array([0, 1])
        """
        neurons: Ints = np.count_nonzero(~self.wiring[layer].any(axis=1), axis=1)
        return neurons

    def tried(self, layer: Layer) -> float:
        """Share of the layer's positions that had a link at some evaluation."""
        return float(self.wiring[layer].any(axis=0).mean())

    def ages(self, layer: Layer) -> Ints:
        """Age of each current link in steps: how long it existed without interruption, as seen at evaluations.

        >>> wiring = np.array([[[True, True]], [[True, False]], [[True, True]]])
        >>> Movement((0, 10, 20), {("actor", 0): wiring}, 2, 2).ages(("actor", 0))
        array([20,  0])
        """
        bits = self.wiring[layer]
        absent = ~bits[:, bits[-1]]
        # Counted from the evaluation after the last one without the link, or from the first evaluation.
        since = np.where(absent.any(axis=0), len(bits) - np.argmax(absent[::-1], axis=0), 0)
        steps = np.array(self.steps, dtype=np.int64)
        ages: Ints = steps[-1] - steps[since]
        return ages

    def per_input(self, layer: Layer) -> Ints:
        """Links of each input: (evaluations, inputs)."""
        links: Ints = self.wiring[layer].sum(axis=2)
        return links


def movement_of(place: RunFolder, config: RunConfig, until: int) -> Movement | None:
    """The history of a run up to a step; None if the wiring log is missing or empty. ValueError if it is damaged."""
    if not place.wiring.exists() or not place.evaluations.exists():
        return None
    rows = parse(EvaluationRow, whole_lines(read_bytes(place.evaluations)))
    log = wiring_log.read(place.wiring)
    rows = [row for row in rows[: min(len(bits) for bits in log.values())] if row.step <= until]
    logged = {layer: bits[: len(rows)] for layer, bits in log.items()}
    sparse = {layer: bits for layer, bits in logged.items() if not bits.all(axis=(1, 2)).any()}
    whole = _whole(list(sparse.values()), len(rows))
    if not sparse or not len(whole):
        return None
    return Movement(
        steps=tuple(rows[number].step for number in whole),
        wiring={layer: bits[whole] for layer, bits in sparse.items()},
        adaptations=rows[-1].updates // config.adapt_every if isinstance(config.wiring().rule, DropAndGrow) else 0,
        replaced=round(sum(row.links_replaced or 0 for row in rows)),
    )


def _whole(layers: Sequence[Bits], rows: int) -> Ints:
    """Evaluations with an undamaged row: every layer has links."""
    kept = np.ones(rows, dtype=np.bool_)
    for bits in layers:
        kept &= bits.any(axis=(1, 2))
    return np.flatnonzero(kept)
