"""One layer of a policy: its links, weights and biases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewirl.topology import Links

if TYPE_CHECKING:
    from rewirl.nn import Network  # for its type only: a policy must load where the core does not

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

DENSE_FROM = 1 / 32
"""Density from which a matrix product is faster than a sum over links (BLAS against NumPy's reduceat)."""


@dataclass(frozen=True, eq=False)
class PolicyLayer:
    """The links into each output, in order: output o has the columns (inputs) `columns[indptr[o] : indptr[o + 1]]`.

    Arrays are copied, checked and read-only.

    >>> layer = PolicyLayer(3, 2, indptr=np.array([0, 2, 3], np.int32), columns=np.array([0, 2, 1], np.int32),
    ...                     weights=np.array([1, 2, 3], np.float32), bias=np.array([0.5, 0], np.float32))
    >>> layer.dense()
    array([[1., 0., 2.],
           [0., 3., 0.]], dtype=float32)
    >>> layer(np.ones(3, np.float32))
    array([3.5, 3. ], dtype=float32)
    """

    n_in: int
    """Inputs of the layer."""
    n_out: int
    """Outputs of the layer."""
    indptr: Ints
    """Start of each output's links, and the end of the last one's."""
    columns: Ints
    """Input of each link, ascending within an output."""
    weights: Floats
    """Weight of each link."""
    bias: Floats
    """Bias of each output."""

    def __post_init__(self) -> None:
        for name, dtype in (("indptr", np.int32), ("columns", np.int32), ("weights", np.float32), ("bias", np.float32)):
            object.__setattr__(self, name, _owned(name, getattr(self, name), np.dtype(dtype)))
        links = Links.from_csr(self.n_in, self.n_out, self.indptr, self.columns)
        object.__setattr__(self, "n_in", links.n_in)
        object.__setattr__(self, "n_out", links.n_out)
        for name, count in (("weights", self.links), ("bias", self.n_out)):
            values = getattr(self, name)
            if len(values) != count:
                raise ValueError(
                    f"{name} has {len(values)} numbers: {self.links} links and {self.n_out} outputs need {count}"
                )
            if not np.isfinite(values).all():
                at = int(np.argmin(np.isfinite(values)))
                raise ValueError(f"{name}[{at}] is {values[at]}: every number must be finite")

    @classmethod
    def from_network(cls, network: Network, layer: int) -> PolicyLayer:
        """A copy of a layer of `network`. Batch normalisation becomes part of its weights and biases."""
        links = network.links(layer)
        weights, biases = network.plain(layer)
        indptr, columns = links.csr()
        # the network's weights are ordered by input: in a stable sort by output, inputs stay ascending
        rows = (links.output_blocks[:, None] * links.block + np.arange(links.block)).ravel()
        weights = weights.ravel()[np.argsort(rows, kind="stable")]
        return cls(links.n_in, links.n_out, indptr, columns, weights, biases)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.columns)

    @property
    def density(self) -> float:
        """Share of positions that have a link."""
        return self.links / (self.n_in * self.n_out)

    def head(self, n: int) -> PolicyLayer:
        """The layer with only its first `n` outputs."""
        end = self.indptr[n]
        return PolicyLayer(self.n_in, n, self.indptr[: n + 1], self.columns[:end], self.weights[:end], self.bias[:n])

    def rows(self) -> Ints:
        """Output of each link."""
        return np.repeat(np.arange(self.n_out, dtype=np.int32), np.diff(self.indptr))

    def dense(self) -> Floats:
        """The layer as a matrix (outputs, inputs), with zeros elsewhere."""
        matrix = np.zeros((self.n_out, self.n_in), dtype=np.float32)
        matrix[self.rows(), self.columns] = self.weights
        return matrix

    def __call__(self, x: Floats) -> Floats:
        """Outputs for one input (n_in,) or for several (n, n_in)."""
        if self._matrix is not None:
            product: Floats = x @ self._matrix
            product += self.bias
            return product
        if x.ndim == 1:
            return self._by_links(x)
        out = np.empty((len(x), self.n_out), dtype=np.float32)
        for row, y in zip(x, out, strict=True):
            y[...] = self._by_links(row)
        return out

    @cached_property
    def _matrix(self) -> Floats | None:
        """(inputs, outputs), for layers dense enough that multiplying by zeros is faster."""
        return np.ascontiguousarray(self.dense().T) if self.density >= DENSE_FROM else None

    @cached_property
    def _wired(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Outputs with at least one link, and the start of each one's links: reduceat has no empty sums."""
        wired = np.flatnonzero(np.diff(self.indptr))
        return wired, self.indptr[wired].astype(np.intp)

    def _by_links(self, x: Floats) -> Floats:
        wired, starts = self._wired
        out: Floats = self.bias.copy()
        if len(wired):
            out[wired] += np.add.reduceat(x[self.columns] * self.weights, starts)
        return out


def _owned(name: str, values: object, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A read-only copy of `values`, which must have this dtype: a silent cast would hide a mistake."""
    if not isinstance(values, np.ndarray) or values.dtype != dtype or values.ndim != 1:
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(f"{name} must be a one-dimensional array of {dtype}, not {kind}")
    copy = np.array(values, dtype=dtype)
    copy.flags.writeable = False
    return copy
