"""One process per run folder."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewirl.errors import Refused
from rewirl.training.files import from_json, to_json

STALE = 120.0
"""Seconds without a sign of life after which a process on another machine counts as dead."""


@dataclass(frozen=True)
class Holder:
    """Who has a lock."""

    pid: int
    started: int
    """When the process began, in the system's own ticks: a number given again to another process does not fool us."""
    host: str
    seen: float
    """Last sign of life, in seconds since 1970."""

    @property
    def alive(self) -> bool:
        if self.host != platform.node():
            return time.time() - self.seen < STALE
        return start_of(self.pid) == self.started

    @classmethod
    def me(cls) -> Holder:
        """This process."""
        return cls(os.getpid(), start_of(os.getpid()), platform.node(), time.time())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class InUse(Refused):
    """Another process has the folder."""


class Lock:
    """Held from `Lock(folder)` to `release`, and by nobody once its process is dead, however it died.

    The system's own lock (flock) decides between processes that begin at the same moment; what is written in the file
    is for other machines, on shared storage where flock may mean nothing, and for people.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._fd: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._take(self._fd)
        except BaseException:
            os.close(self._fd)
            raise

    def _take(self, fd: int) -> None:
        holder = holder_of(self._path.parent)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise InUse(f"{self._path.parent} is in use by {holder or 'another process'}") from None
        if holder and holder.alive:
            raise InUse(f"{self._path.parent} is in use by {holder}")
        me = Holder.me()
        os.ftruncate(fd, 0)
        os.pwrite(fd, to_json({"pid": me.pid, "started": me.started, "host": me.host}), 0)

    def touch(self) -> None:
        """A sign of life, for other machines."""
        if self._fd is not None:
            os.utime(self._fd)

    def release(self) -> None:
        """Lets the next one in. The file stays: removing it would let two in at once."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


def holder_of(folder: Path) -> Holder | None:
    """Who last took a folder's lock and did not give it back: alive, or dead before it could."""
    path = folder / "lock"
    try:
        seen = path.stat().st_mtime
        found: Any = from_json(path.read_bytes())
        return Holder(int(found["pid"]), int(found["started"]), str(found["host"]), seen)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def living_holder_of(folder: Path) -> Holder | None:
    """Who has a folder now."""
    holder = holder_of(folder)
    return holder if holder is not None and holder.alive else None


def start_of(pid: int) -> int:
    """When a living process began; -1 for a dead one; 0 where the system does not tell."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except (PermissionError, OverflowError):
        pass
    try:
        # After the name, which is in brackets and may hold anything: state is field 3, start time field 22.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return -1 if fields[0] == "Z" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0
