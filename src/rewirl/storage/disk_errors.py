"""A full disk as one sentence: which file needed how much space, and what is still intact."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rewirl.errors import Failed, NoRoom

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a full disk: no space, quota, limit of file size."""
LARGEST_BLOCK = 1 << 16
"""Bytes of the largest blocks that file systems have."""


@dataclass(frozen=True)
class Room:
    """What a file system can still provide."""

    bytes: int
    files: int | None
    """None if it has no fixed number of them."""
    block: int
    """Files take multiples of this many bytes."""

    @classmethod
    def at(cls, folder: Path) -> Room:
        found = os.statvfs(folder)
        # Network file systems report the size of a transfer.
        block = min(found.f_frsize or 1, LARGEST_BLOCK)
        return cls(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None, block)

    def taken(self, size: int) -> int:
        """Bytes that a file takes.

        >>> Room(0, None, 4096).taken(5000)
        8192
        """
        return -(-size // self.block) * self.block


@contextmanager
def room_for(what: str, sizes: Sequence[int], folder: Path, consolation: str) -> Iterator[None]:
    """Turns a full disk into one sentence: what needed how many bytes or files, and what is still intact."""
    try:
        room = Room.at(folder)
        if room.bytes < sum(map(room.taken, sizes)) or (room.files is not None and room.files < len(sizes)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if not folder.is_dir():
            raise _missing(folder) from error
        if error.errno not in FULL:
            raise NoRoom(f"{what} in {folder} could not be written ({error.strerror}): {consolation}") from error
        room = Room.at(folder)
        if room.files is not None and room.files < len(sizes):
            lack = f"{len(sizes)} files in {folder}, where {room.files} more can be created"
        else:
            lack = f"{sum(map(room.taken, sizes))} bytes in {folder}, where {room.bytes} are free"
        raise NoRoom(f"the disk is full: {what} needs {lack} ({error.strerror}); {consolation}") from error


@contextmanager
def complaining(path: Path) -> Iterator[None]:
    """Turns a failed write to a file of a run into one sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) or not path.parent.is_dir():
            raise _missing(path if path.parent.is_dir() else path.parent) from error
        full = "the disk is full: " if error.errno in FULL else ""
        left = what_is_left(path.parent, "free some space" if full else "correct this")
        raise NoRoom(f"{full}{path} could not be written ({error.strerror}); {left}") from error


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Reports what disappears from a run folder, or the folder itself, as missing."""
    try:
        yield
    except FileNotFoundError as error:
        name = error.filename if folder.is_dir() and isinstance(error.filename, str) else folder
        raise _missing(Path(name)) from error


def _missing(path: Path) -> Failed:
    return Failed(f"{path} was moved or deleted while it was in use: put it back and resume")


def what_is_left(run: Path, remedy: str = "free some space") -> str:
    """What remains of a run after a failed write."""
    if any((run / "checkpoint").glob("step-*")):
        return f"the last checkpoint is intact: {remedy} and resume"
    return f"there is no checkpoint yet: {remedy} and start again"
