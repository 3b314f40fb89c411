"""The gradient at every position of a layer, for rules that grow where it is large."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

PANEL = 2**18
"""Numbers that are in memory at a time."""


class DenseGradient:
    """The gradient at every position of a layer of `n_in` inputs and `n_out` outputs, of which a part is computed at a
    time: that of a wide layer is many times as large as the layer.

    >>> whole = np.arange(6, dtype=np.float32).reshape(3, 2)  # (inputs, outputs)
    >>> [panel.tolist() for _, panel in DenseGradient(3, 2, lambda begin, end: whole[begin:end]).panels()]
    [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]
    """

    def __init__(self, n_in: int, n_out: int, read: Callable[[int, int], Floats]) -> None:
        """`read(begin, end)` gives the gradients of some inputs, (inputs, outputs)."""
        self.n_in, self.n_out, self._read = n_in, n_out, read

    def panels(self) -> Iterator[tuple[int, Floats]]:
        """Input by input, in order: the first input of a panel, and its gradients, (inputs, outputs)."""
        inputs = max(PANEL // self.n_out, 1)
        for begin in range(0, self.n_in, inputs):
            yield begin, self._read(begin, min(begin + inputs, self.n_in))

    def whole(self) -> Floats:
        """The matrix: (outputs, inputs)."""
        return self._read(0, self.n_in).T
