"""wiring.bin: which links a run's networks had at each evaluation, so that one can see how the wiring moved.

A line of JSON gives the widths of each network; rows follow. Row i belongs to row i of evaluations.csv. A row is a bit
per weight of the dense network, 1 where there is a link: layer after layer of the actor and the two critics, each an
(inputs, outputs) matrix from a new byte on. At HalfCheetah's sizes that is 27 kB a row. The file only grows; a resumed
run cuts it back to its checkpoint.
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
    """The file while a run writes it, or nothing when there is none to write."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def begin(self, networks: Mapping[str, Network], rows: int) -> bool:
        """Cuts the file back to some rows and opens it for more; False if it had fewer, which are then left empty."""
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
        """The row of the links as they are now."""
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
    """The log by network and layer, each an array of (rows, inputs, outputs); ValueError if it is none.

    A row that a damage took is all False.
    """
    with path.open("rb") as file:
        head, content = file.readline(), np.frombuffer(file.read(), dtype=np.uint8)
    try:
        sizes = {str(name): [int(width) for width in widths] for name, widths in json.loads(head).items()}
        width = sum(_bytes(*layer) for *_, layer in _layers(sizes))
        rows = content[: len(content) // width * width].reshape(-1, width)  # the last one may be on its way
    except (TypeError, AttributeError, ArithmeticError, ValueError):
        raise ValueError(f"{path} is no log of a wiring") from None
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
