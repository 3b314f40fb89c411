"""wiring.bin: the links of a run's networks at each evaluation, to see how the wiring changed.

A line of JSON gives the format and the widths of each network; rows follow. Row i belongs to row i of evaluations.csv.
A row has a bit per weight of the dense network, 1 for a link: layer by layer of the actor and the two
critics, each an (inputs, outputs) matrix that starts at a new byte. It ends with the first 8 bytes of the SHA-256 of
its number and its bits. At HalfCheetah's sizes a row takes 27 kB. Rows are only appended; a resumed run truncates the
file to its checkpoint. Files of the first format have no checksums; they are read, and get them when their run resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rewirl.files import open_file, sync
from rewirl.limits import MAX_WIDTH
from rewirl.nn import Network
from rewirl.storage.disk_errors import complaining
from rewirl.topology import Links
from rewirl.untrusted import from_json, read_bytes

Bits = NDArray[np.bool_]

FORMAT = 2
CHECKSUM = 8
"""Bytes at the end of a row."""
MOST_HEAD, MOST_BYTES = 10_000, 1 << 30
"""Maximum bytes of a head and of a file."""


class WiringLog:
    """The file while a run writes it; does nothing if there is no file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rows = 0

    def begin(self, networks: Mapping[str, Network], rows: int) -> bool:
        """Truncates the file to some rows and opens it for appending; False if rows were missing or damaged."""
        if not self._path:
            return True
        sizes = {name: list(network.sizes) for name, network in networks.items()}
        head = json.dumps({"format": FORMAT, "networks": sizes}).encode() + b"\n"
        width = _row_bytes(sizes) + CHECKSUM
        with complaining(self._path):
            self._file = os.fdopen(open_file(self._path, os.O_RDWR | os.O_CREAT), "r+b")
            found = self._file.read(len(head) + rows * width)
            kept = found.removeprefix(head)
            if found.startswith(_first_head(sizes)):
                kept = _with_checksums(found.removeprefix(_first_head(sizes)), _row_bytes(sizes))[: rows * width]
                self._file.seek(len(head))
                self._file.write(kept)
            length = len(head) + rows * width
            self._file.seek(0)
            self._file.write(head)
            self._file.truncate(length)
            self._file.seek(length)
            self._file.flush()
        self._rows = rows
        intact = _intact(np.frombuffer(kept[: len(kept) // width * width], dtype=np.uint8).reshape(-1, width))
        return len(intact) == rows and bool(intact.all())

    def add(self, networks: Mapping[str, Network]) -> None:
        """Appends a row with the current links."""
        if self._file and self._path:
            layers = [network.links(layer) for network in networks.values() for layer in range(network.layers)]
            row = b"".join(np.packbits(matrix(links)).tobytes() for links in layers)
            with complaining(self._path):
                self._file.write(row + _checksum(self._rows, row))
                self._file.flush()
            self._rows += 1

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
    """Matrix of a layer's links: (inputs, outputs).

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
    content = read_bytes(path, MOST_BYTES)
    line, _, content = content.partition(b"\n")
    try:
        head = from_json(line[:MOST_HEAD])
        checked = head.get("format") == FORMAT
        sizes: dict[str, list[int]] = head["networks"] if checked else head
        _check_sizes(sizes)
    except (TypeError, AttributeError, LookupError, ValueError):
        raise ValueError(f"{path} is not a wiring log") from None
    width = _row_bytes(sizes) + (CHECKSUM if checked else 0)
    rows = np.frombuffer(content[: len(content) // width * width], dtype=np.uint8).reshape(-1, width)
    intact = _intact(rows) if checked else np.ones(len(rows), dtype=np.bool_)
    out, start = {}, 0
    for name, number, (n_in, n_out) in _layers(sizes):
        end = start + _bytes(n_in, n_out)
        bits = np.unpackbits(rows[:, start:end], axis=1, count=n_in * n_out).view(np.bool_)
        bits[~intact] = False
        out[name, number] = bits.reshape(len(rows), n_in, n_out)
        start = end
    return out


def _check_sizes(sizes: Mapping[str, Sequence[int]]) -> None:
    for widths in sizes.values():
        if len(widths) < 2 or not all(type(width) is int and 1 <= width <= MAX_WIDTH for width in widths):
            raise ValueError("not the widths of a network")
    if not sizes:
        raise ValueError("there are no networks")


def _first_head(sizes: Mapping[str, Sequence[int]]) -> bytes:
    """The head of files of the first format."""
    return json.dumps(sizes).encode() + b"\n"


def _with_checksums(content: bytes, width: int) -> bytes:
    rows = [content[start : start + width] for start in range(0, len(content) - width + 1, width)]
    return b"".join(row + _checksum(number, row) for number, row in enumerate(rows))


def _checksum(number: int, row: bytes) -> bytes:
    return hashlib.sha256(number.to_bytes(8, "little") + row).digest()[:CHECKSUM]


def _intact(rows: NDArray[np.uint8]) -> Bits:
    """Which rows have a correct checksum."""
    pairs = ((row[:-CHECKSUM].tobytes(), row[-CHECKSUM:].tobytes()) for row in rows)
    return np.array([_checksum(number, row) == known for number, (row, known) in enumerate(pairs)], dtype=np.bool_)


def _row_bytes(sizes: Mapping[str, Sequence[int]]) -> int:
    return sum(_bytes(*layer) for *_, layer in _layers(sizes))


def _layers(sizes: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int, tuple[int, int]]]:
    for name, widths in sizes.items():
        for number, layer in enumerate(pairwise(widths)):
            yield name, number, layer


def _bytes(n_in: int, n_out: int) -> int:
    return (n_in * n_out + 7) // 8
