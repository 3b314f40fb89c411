"""wiring.bin: the links of a run's networks at each evaluation, to see how the wiring changed.

A line of JSON gives the widths of each network; rows follow. Row i belongs to row i of evaluations.csv. A row is a bit
per weight of the dense network, 1 where there is a link: layer after layer of the actor and the two critics, each an
(inputs, outputs) matrix that starts at a new byte. At HalfCheetah's sizes a row takes 27 kB. Rows are only appended; a
resumed run truncates the file to its checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rewirl.files import open_file, sync
from rewirl.nn import Network
from rewirl.storage.disk_errors import complaining
from rewirl.topology import Links

Bits = NDArray[np.bool_]


class WiringLog:
    """The file while a run writes it; does nothing if there is no file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def begin(self, networks: Mapping[str, Network], rows: int) -> bool:
        """Truncates the file to some rows and opens it for appending; False if rows were missing (left empty)."""
        if not self._path:
            return True
        sizes = {name: network.sizes for name, network in networks.items()}
        head = json.dumps(sizes).encode() + b"\n"
        length = len(head) + rows * sum(_bytes(*layer) for *_, layer in _layers(sizes))
        with complaining(self._path):
            self._file = os.fdopen(open_file(self._path, os.O_RDWR | os.O_CREAT), "r+b")
            whole = self._file.read(len(head)) == head and self._file.seek(0, 2) >= length
            self._file.seek(0)
            self._file.write(head)
            self._file.truncate(length)
            self._file.seek(length)
            self._file.flush()
        return whole or rows == 0

    def add(self, networks: Mapping[str, Network]) -> None:
        """Appends a row with the current links."""
        if self._file and self._path:
            layers = [network.links(layer) for network in networks.values() for layer in range(network.layers)]
            with complaining(self._path):
                self._file.write(b"".join(np.packbits(matrix(links)).tobytes() for links in layers))
                self._file.flush()

    def sync(self) -> None:
        """Waits until the rows are on the disk."""
        if self._file and self._path:
            with complaining(self._path):
                sync(self._path)

    def close(self) -> None:
        if self._file and self._path:
            file, self._file = self._file, None
            with complaining(self._path):
                file.close()


def matrix(links: Links) -> Bits:
    """Where a layer has links: (inputs, outputs).

    >>> matrix(Links(2, 3, 1, np.array([0, 4]))).astype(int)
    array([[1, 0, 0],
           [0, 1, 0]])
    """
    bits = np.zeros(links.n_places, dtype=np.bool_)
    bits[links.places] = True
    return np.repeat(bits.reshape(links.n_in, -1), links.block, axis=1)


def read(path: Path) -> dict[tuple[str, int], Bits]:
    """The log by network and layer, each an array of (rows, inputs, outputs); ValueError if it is invalid.

    A damaged row is all False.
    """
    with path.open("rb") as file:
        head, content = file.readline(), np.frombuffer(file.read(), dtype=np.uint8)
    try:
        sizes = {str(name): [int(width) for width in widths] for name, widths in json.loads(head).items()}
        width = sum(_bytes(*layer) for *_, layer in _layers(sizes))
        rows = content[: len(content) // width * width].reshape(-1, width)  # the last one may be incomplete
    except (TypeError, AttributeError, ArithmeticError, ValueError):
        raise ValueError(f"{path} is not a wiring log") from None
    out, start = {}, 0
    for name, number, (n_in, n_out) in _layers(sizes):
        end = start + _bytes(n_in, n_out)
        bits = np.unpackbits(rows[:, start:end], axis=1, count=n_in * n_out)
        out[name, number] = bits.view(np.bool_).reshape(len(rows), n_in, n_out)
        start = end
    return out


def _layers(sizes: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int, tuple[int, int]]]:
    for name, widths in sizes.items():
        for number, layer in enumerate(pairwise(widths)):
            yield name, number, layer


def _bytes(n_in: int, n_out: int) -> int:
    return (n_in * n_out + 7) // 8
