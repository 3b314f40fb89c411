"""Sealed safetensors files: arrays and texts in one file that is checked completely before use.

The format is safetensors (8 bytes of header length, a JSON header, the arrays' bytes), so that other tools read the
files. Ours carry a SHA-256 in their metadata, and are written in one fixed order: same content, same bytes.
Nothing is ever executed, and no claimed size is trusted before it agrees with the size of the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rewirl.errors import Refused
from rewirl.files import write_aside
from rewirl.untrusted import from_json

Tensors = Mapping[str, NDArray[Any]]

DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
"""Data types of arrays, by their safetensors names."""

MAX_HEADER = 1 << 20
"""Maximum size of a header in bytes."""


class PolicyFileError(Refused, ValueError):
    """An invalid file; the message contains its name and what is wrong."""


@dataclass(frozen=True)
class Entry:
    """Position, type and shape of an array in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class SealedFile:
    """An open file whose header has been checked. `tensors` reads the arrays and checks the seal."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= min(MAX_HEADER, size - 8):
            file.seek(0)
            raise PolicyFileError(_not_ours(file.read(4), size, length))
        header = _parsed(file.read(length))
        self.metadata = _metadata(header.pop("__metadata__", {}))
        self.entries = {name: _entry(name, value) for name, value in header.items()}
        self._bytes = _tiled(self.entries, size - 8 - length)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All arrays, if they and the metadata match the seal."""
        data = self._file.read(self._bytes)
        if len(data) != self._bytes:
            raise PolicyFileError(f"the file ends after {len(data)} of {self._bytes} bytes of data")
        found = {
            name: np.frombuffer(data[e.begin : e.end], dtype=DTYPES[e.dtype]).reshape(e.shape)
            for name, e in self.entries.items()
        }
        unsealed = {name: text for name, text in self.metadata.items() if name != "sha256"}
        if self.metadata.get("sha256") != _sha256(found, unsealed):
            raise PolicyFileError("the file is damaged: its SHA-256 has changed")
        return found


@contextmanager
def opened(path: str | Path) -> Iterator[SealedFile]:
    """Opens the file and checks its header. Errors inside the block get the file's name."""
    path = Path(path)
    mode = path.stat().st_mode  # before opening, because opening a pipe waits for its other end
    if stat.S_ISDIR(mode):
        raise PolicyFileError(f"{path}: this is a folder: give the file in it")
    if not stat.S_ISREG(mode):
        raise PolicyFileError(f"{path}: this is a device or a pipe: give a regular file")
    with path.open("rb") as file, naming(path):
        yield SealedFile(file, os.fstat(file.fileno()).st_size)


@contextmanager
def naming(file: str | Path) -> Iterator[None]:
    """Adds the name of a file to errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise PolicyFileError(f"{file}: {error}") from error


def write(path: str | Path, tensors: Tensors, metadata: Mapping[str, str]) -> None:
    """Writes and seals a file atomically: readers see the complete old or new file."""
    metadata = _metadata(dict(metadata))
    sealed = metadata | {"sha256": _sha256(tensors, metadata)}
    header: dict[str, object] = {"__metadata__": dict(sorted(sealed.items()))}
    chunks, begin = [], 0
    for name in sorted(tensors):
        dtype, data = _bytes_of(tensors[name])
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape), "data_offsets": [begin, begin + len(data)]}
        chunks.append(data)
        begin += len(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"names and metadata take {len(text)} bytes: at most {MAX_HEADER} fit")
    write_aside(Path(path), b"".join([len(text).to_bytes(8, "little"), text, *chunks]))


def _sha256(tensors: Tensors, metadata: Mapping[str, str]) -> str:
    """SHA-256 of the names, shapes, dtypes and bytes of all arrays, and of the metadata."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        dtype, data = _bytes_of(tensors[name])
        digest.update(json.dumps([name, dtype, tensors[name].shape]).encode())
        digest.update(data)
    digest.update(json.dumps(sorted(metadata.items())).encode())
    return digest.hexdigest()


def _bytes_of(array: NDArray[Any]) -> tuple[str, bytes]:
    for name, dtype in DTYPES.items():
        if array.dtype == dtype:
            return name, array.astype(dtype, copy=False).tobytes()
    raise TypeError(f"an array of {array.dtype} cannot be stored: it must be one of {', '.join(DTYPES)}")


def _not_ours(start: bytes, size: int, length: int) -> str:
    if size == 0:
        return "the file is empty"
    if start[:1] == b"\x80" or start[:2] == b"PK":
        return "this is a pickle or a zip archive, not a policy file: rewirl never unpickles anything"
    if size < 8:
        return f"the file has only {size} bytes: it was truncated or is not a policy file"
    return f"the file was truncated or is not a policy file: its header would have {length} of {size} bytes"


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = from_json(text)
    except ValueError as error:
        raise PolicyFileError(
            f"the file is damaged or not a policy file: its header is not valid JSON ({error})"
        ) from error
    if not isinstance(header, dict):
        raise PolicyFileError("this is not a policy file: its header is not a JSON object")
    return header


def _metadata(found: object) -> dict[str, str]:
    if not isinstance(found, dict):
        raise PolicyFileError("the metadata must map names to strings")
    for name, text in found.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise PolicyFileError(f"the metadata {name!r} must be a string")
        if not all(c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff") for c in name + text):
            raise PolicyFileError(f"the metadata {name!r} has control characters in it: it must be plain text")
    return found


def _entry(name: str, value: object) -> Entry:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise PolicyFileError(f"the array {name!r} must have a dtype, a shape and data_offsets, and nothing else")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise PolicyFileError(f"the array {name!r} has the dtype {dtype!r}: it must be {' or '.join(DTYPES)}")
    if not (_whole_numbers(shape) and _whole_numbers(offsets) and len(offsets) == 2):
        raise PolicyFileError(f"the array {name!r} has a shape or offsets that are not whole numbers from 0 up")
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
        raise PolicyFileError(
            f"the array {name!r} has the shape {shape}, which does not fit its bytes {begin} to {end}"
        )
    return Entry(dtype, tuple(shape), begin, end)


def _whole_numbers(values: object) -> bool:
    # type, not isinstance: JSON's true is a bool, and a bool is an int
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 63 for v in values)


def _tiled(entries: Mapping[str, Entry], size: int) -> int:
    """`size`, if the arrays fill it without overlaps and gaps."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != at:
            raise PolicyFileError(f"the array {name!r} starts at byte {entry.begin} of the data instead of {at}")
        at = entry.end
    if at != size:
        raise PolicyFileError(
            f"the file has {size} bytes of data where its header states {at}: it was truncated or extended"
        )
    return size
