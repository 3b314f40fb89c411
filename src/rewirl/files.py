"""Writing files so that nobody ever sees half of one, even after a power cut; hashes and JSON of their contents."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_aside(path: Path, content: bytes) -> None:
    """Writes `content` beside `path` and then renames it: whoever reads sees the old file or the new one, whole."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")  # each writer has its own, should there be two
    try:
        try:
            write_new(aside, content)
            sync(aside)
            os.rename(aside, path)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
        sync(path.parent)
    except OSError as error:  # about the file that was asked for, not about the one aside
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_new(path: Path, content: bytes) -> None:
    """A file that is on its way to the disk when this returns; `sync` waits until it is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def sync(path: Path) -> None:
    """Waits until a file, or what was created, renamed or removed in a folder, is on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def to_json(value: object) -> bytes:
    """One and the same bytes for the same content; NaN and infinities have no place in it."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"


def from_json(content: bytes) -> Any:
    """What `to_json` wrote; ValueError for anything else."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
