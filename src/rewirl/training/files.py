"""What a run says when the disk is full, and other small things that its files share."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewirl.errors import NoRoom

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says when there is no room: disk, quota, limit of a file's size."""


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


@contextmanager
def room_for(what: str, needed: int, folder: Path, consolation: str) -> Iterator[None]:
    """Turns a full disk into a sentence: what needed how many bytes, and what is still whole."""
    try:
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise NoRoom(f"{what} in {folder} could not be written ({error.strerror}): {consolation}") from error
        raise NoRoom(
            f"the disk is full: {what} needs {needed} bytes in {folder}, where {shutil.disk_usage(folder).free} are "
            f"free ({error.strerror}); {consolation}"
        ) from error


@contextmanager
def complaining(path: Path) -> Iterator[None]:
    """Turns a failed write to a file of a run into a sentence."""
    try:
        yield
    except OSError as error:
        full = "the disk is full: " if error.errno in FULL else ""
        raise NoRoom(f"{full}{path} could not be written ({error.strerror}); {what_is_left(path.parent)}") from error


def what_is_left(run: Path) -> str:
    """What is left of a run when a file of it could not be written."""
    if any((run / "checkpoint").glob("step-*")):
        return "the last checkpoint is whole: make room and resume"
    return "there is no checkpoint yet: make room and begin again"


def free_memory() -> int:
    """Bytes of memory that this process may still take."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_PHYS_PAGES") * page
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
        group = Path("/sys/fs/cgroup")  # a container's limit
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            free = min(free, int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return free


def shown_bytes(count: int) -> str:
    """
    >>> shown_bytes(168_000_000)
    '168 MB'
    """
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
