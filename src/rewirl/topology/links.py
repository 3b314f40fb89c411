"""A layer's wiring: the positions of its links (`places`), sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.limits import BLOCKS
from rewirl.topology._checks import block_size, integer_array, kind_of, layer_width


@dataclass(frozen=True, eq=False)
class Links:
    """The immutable wiring of one layer; rewiring creates a new one.

    A link is a weight that exists. A *place* is a position for one link, or for one block of links (`block`
    neighbouring outputs that share an input): place = input * (n_out // block) + output block. Saved states are sorted
    by place; the core has an order of its own.

    >>> links = Links(n_in=3, n_out=2, block=1, places=np.array([0, 3, 4]))
    >>> links.count, links.density
    (3, 0.5)
    >>> links.inputs, links.output_blocks
    (array([0, 1, 2]), array([0, 1, 0]))
    """

    n_in: int
    """Inputs of the layer."""
    n_out: int
    """Outputs of the layer."""
    block: int
    """Outputs per block: 1 is the paper's unstructured wiring."""
    places: NDArray[np.int64]
    """Places with a link (or block of links): ascending, unique, read-only."""

    def __post_init__(self) -> None:
        # a frozen dataclass can set its own fields only by object.__setattr__
        object.__setattr__(self, "n_in", layer_width("n_in", self.n_in))
        object.__setattr__(self, "n_out", layer_width("n_out", self.n_out))
        object.__setattr__(self, "block", block_size(self.block, [self.n_out]))
        object.__setattr__(self, "places", _checked(self.places, self.n_places))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Links):
            return NotImplemented
        mine, theirs = (self.n_in, self.n_out, self.block), (other.n_in, other.n_out, other.block)
        return mine == theirs and np.array_equal(self.places, other.places)

    def __hash__(self) -> int:
        return hash((self.n_in, self.n_out, self.block, self.places.tobytes()))

    @classmethod
    def _known(cls, n_in: int, n_out: int, block: int, places: NDArray[np.int64]) -> Links:
        """The same without checks and without a copy, for `places` from the core; they become read-only."""
        links = object.__new__(cls)
        links.__dict__.update(n_in=n_in, n_out=n_out, block=block, places=_owned(places))
        return links

    @property
    def n_places(self) -> int:
        """Number of places, taken or free."""
        return self.n_in * (self.n_out // self.block)

    @property
    def blocks(self) -> int:
        """Number of taken places."""
        return len(self.places)

    @property
    def n_free(self) -> int:
        """Number of free places."""
        return self.n_places - self.blocks

    @property
    def count(self) -> int:
        """Number of links: the paper's number of parameters."""
        return self.blocks * self.block

    @property
    def density(self) -> float:
        """Share of weights that are links."""
        return self.blocks / self.n_places

    @property
    def sparsity(self) -> float:
        """Share of weights that are absent."""
        return self.n_free / self.n_places

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Input of each taken place."""
        return self.places // (self.n_out // self.block)

    @property
    def output_blocks(self) -> NDArray[np.int64]:
        """Block of outputs of each taken place; with block 1, its output."""
        return self.places % (self.n_out // self.block)

    def touching(
        self, *, outputs: NDArray[np.bool_] | None = None, inputs: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Which single links lead to one of `outputs` or from one of `inputs`, given as masks: (blocks, block).

        >>> links = Links(n_in=2, n_out=2, block=1, places=np.array([0, 1, 3]))
        >>> links.touching(outputs=np.array([True, False])).ravel()
        array([ True, False, False])
        """
        out = np.zeros((self.blocks, self.block), dtype=np.bool_)
        if outputs is not None:
            out |= outputs.reshape(-1, self.block)[self.output_blocks]
        if inputs is not None:
            out |= inputs[self.inputs, None]
        return out

    @classmethod
    def dense(cls, n_in: int, n_out: int) -> Links:
        """A dense layer, in the largest blocks that fit: the core has its fastest kernel for them.

        >>> Links.dense(3, 12).block, Links.dense(3, 12).count
        (4, 36)
        """
        n_in, n_out = layer_width("n_in", n_in), layer_width("n_out", n_out)
        block = max(b for b in BLOCKS if n_out % b == 0)
        return cls(n_in, n_out, block, _owned(np.arange(n_in * (n_out // block), dtype=np.int64)))

    def nth_free(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The free places at `ranks` (from 0) in ascending order, found without listing the free places.

        >>> Links(2, 3, 1, np.array([0, 1, 4])).nth_free(np.array([0, 1, 2]))
        array([2, 3, 5])
        """
        # Before places[i] there are places[i] - i free ones; that number never falls with i.
        free_before = np.arange(self.blocks)
        np.subtract(self.places, free_before, out=free_before)
        return ranks + np.searchsorted(free_before, ranks, side="right")

    def csr(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """CSR: single links by output row, columns ascending, as `(indptr, columns)`.

        >>> Links(3, 2, 1, np.array([0, 3, 4])).csr()
        (array([0, 2, 3], dtype=int32), array([0, 2, 1], dtype=int32))
        """
        if self.count > (most := np.iinfo(np.int32).max):
            raise ValueError(f"{self.count} links are too many for 32-bit CSR: at most {most} fit")
        inputs = self.inputs
        first_rows = (self.places - inputs * (self.n_out // self.block)) * self.block
        rows = (first_rows[:, None] + np.arange(self.block)).ravel()
        indptr = np.zeros(self.n_out + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=self.n_out), out=indptr[1:])
        # 16 bits hold any row (MAX_WIDTH), and make NumPy's stable sort a radix sort
        order = np.argsort(rows.astype(np.uint16), kind="stable")
        return indptr, np.repeat(inputs.astype(np.int32), self.block)[order]

    @classmethod
    def from_csr(cls, n_in: int, n_out: int, indptr: NDArray[Any], columns: NDArray[Any], block: int = 1) -> Links:
        """The wiring from `csr` arrays. Everything is checked, because they may come from a file.

        >>> Links.from_csr(3, 2, np.array([0, 2, 3]), np.array([0, 2, 1])).places
        array([0, 3, 4])
        """
        n_in, n_out = layer_width("n_in", n_in), layer_width("n_out", n_out)
        block = block_size(block, [n_out])
        starts = integer_array("indptr", indptr).astype(np.int64)
        columns = integer_array("columns", columns)
        _check_indptr(starts, n_out, len(columns))
        rows = np.repeat(np.arange(n_out), np.diff(starts))
        _check_columns(columns, rows, n_in)
        singles = columns.astype(np.int64) * n_out + rows
        places, shared = np.unique(singles // block, return_counts=True)
        if (shared != block).any():
            at = int(np.argmax(shared != block))
            i, o = divmod(int(places[at]), n_out // block)
            raise ValueError(
                f"input {i} reaches {shared[at]} of the outputs {o * block} to {(o + 1) * block - 1}: "
                f"with block {block} it must reach all of them or none"
            )
        return cls(n_in, n_out, block, _owned(places))


def _checked(places: object, n_places: int) -> NDArray[np.int64]:
    """A checked, read-only copy of `places`."""
    if not isinstance(places, np.ndarray) or places.dtype != np.int64:
        raise TypeError(f"positions must be an array of int64, not {kind_of(places)}")
    if places.ndim != 1:
        raise ValueError(f"positions must have one dimension, not the shape {places.shape}")
    rising = places[1:] > places[:-1]
    if not rising.all():
        at = int(np.argmin(rising))
        before, after = places[at], places[at + 1]
        if before == after:
            raise ValueError(f"position {after} is listed twice: every position must be there once")
        raise ValueError(f"position {after} is listed after {before}: positions must be sorted ascending")
    if len(places) and not 0 <= (wrong := places[0]) <= (wrong := places[-1]) < n_places:
        raise ValueError(f"position {wrong} does not exist: this layer has the positions 0 to {n_places - 1}")
    # Copied if others could write to it: a wiring that changes during a kernel could crash.
    return places if _is_ours(places) else _owned(np.array(places, order="C"))


def _is_ours(places: NDArray[np.int64]) -> bool:
    return type(places) is np.ndarray and places.flags.owndata and not places.flags.writeable


def _owned(places: NDArray[np.int64]) -> NDArray[np.int64]:
    places.flags.writeable = False
    return places


def _check_indptr(starts: NDArray[np.int64], n_out: int, n_columns: int) -> None:
    if len(starts) != n_out + 1:
        raise ValueError(f"indptr has {len(starts)} entries: {n_out} outputs need {n_out + 1}")
    if starts[0] != 0:
        raise ValueError(f"indptr starts at {starts[0]}: it must start at 0")
    if (falls := starts[1:] < starts[:-1]).any():
        raise ValueError(f"indptr falls at row {int(np.argmax(falls))}: it must never fall")
    if starts[-1] != n_columns:
        raise ValueError(f"indptr ends at {starts[-1]} but there are {n_columns} columns: they must agree")


def _check_columns(columns: NDArray[Any], rows: NDArray[np.int64], n_in: int) -> None:
    outside = (columns < 0) | (columns >= n_in)
    if outside.any():
        at = int(np.argmax(outside))
        raise ValueError(f"row {rows[at]} has column {columns[at]}: columns must be from 0 to {n_in - 1}")
    falls = (rows[1:] == rows[:-1]) & (columns[1:] <= columns[:-1])
    if falls.any():
        at = int(np.argmax(falls))
        row, before, after = rows[at], columns[at], columns[at + 1]
        if before == after:
            raise ValueError(f"row {row} has column {after} twice: every link must be there once")
        raise ValueError(f"row {row} has column {after} after {before}: columns must be sorted ascending")
