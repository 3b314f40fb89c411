"""A full disk as one sentence: which file needed how much space, and what is still intact."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewirl.errors import Failed, NoRoom

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a full disk: no space, quota, limit of file size."""


@contextmanager
def room_for(what: str, needed: int, folder: Path, consolation: str) -> Iterator[None]:
    """Turns a full disk into one sentence: what needed how many bytes, and what is still intact."""
    try:
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if not folder.is_dir():
            raise _missing(folder) from error
        if error.errno not in FULL:
            raise NoRoom(f"{what} in {folder} could not be written ({error.strerror}): {consolation}") from error
        raise NoRoom(
            f"the disk is full: {what} needs {needed} bytes in {folder}, where {shutil.disk_usage(folder).free} are "
            f"free ({error.strerror}); {consolation}"
        ) from error


@contextmanager
def complaining(path: Path) -> Iterator[None]:
    """Turns a failed write to a file of a run into one sentence."""
    try:
        yield
    except OSError as error:
        if not path.parent.is_dir():
            raise _missing(path.parent) from error
        full = "the disk is full: " if error.errno in FULL else ""
        left = what_is_left(path.parent, "free some space" if full else "correct this")
        raise NoRoom(f"{full}{path} could not be written ({error.strerror}); {left}") from error


def _missing(folder: Path) -> Failed:
    return Failed(f"{folder} was moved or deleted while it was in use: put it back and resume")


def what_is_left(run: Path, remedy: str = "free some space") -> str:
    """What remains of a run after a failed write."""
    if any((run / "checkpoint").glob("step-*")):
        return f"the last checkpoint is intact: {remedy} and resume"
    return f"there is no checkpoint yet: {remedy} and start again"
