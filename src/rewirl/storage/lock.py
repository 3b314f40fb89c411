"""One process per run folder."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewirl.errors import Refused
from rewirl.files import open_file, to_json
from rewirl.storage.disk_errors import FULL
from rewirl.untrusted import from_json, read_bytes

SIGN_SECONDS = 10.0
"""Seconds between two heartbeats."""
STALE = 120.0
"""Seconds without a heartbeat after which a process on another machine counts as dead."""


@dataclass(frozen=True)
class Holder:
    """The holder of a lock."""

    pid: int
    started: int
    """Start time of the process in system ticks: distinguishes processes that reuse a process id."""
    host: str
    seen: float
    """Last heartbeat, in seconds since 1970."""

    @property
    def alive(self) -> bool:
        if self.host != platform.node():
            return abs(time.time() - self.seen) < STALE  # a date far ahead is not a heartbeat either
        return start_of(self.pid) == self.started >= 0

    @classmethod
    def me(cls) -> Holder:
        """This process."""
        return cls(os.getpid(), start_of(os.getpid()), platform.node(), time.time())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class InUse(Refused):
    """Another process holds the folder."""


class Lock:
    """A lock, held from `Lock(folder)` to `release` or until its process dies.

    The system lock (flock) decides between processes that start at the same moment. The content of the file is
    for people and for other machines on shared storage, where flock may have no effect. A thread writes heartbeats,
    so a long evaluation does not delay them.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        try:
            self._fd: int | None = open_file(self._path, os.O_RDWR | os.O_CREAT)
            try:
                self._take(self._fd)
            except BaseException:
                os.close(self._fd)
                raise
        except OSError as error:
            right = "free some space" if error.errno in FULL else "choose another place"
            raise Refused(f"{self._path} could not be written ({error.strerror}): {right} and try again") from error
        self._mine = threading.Lock()
        self._released = threading.Event()
        threading.Thread(target=self._live, name="rewirl lock", daemon=True).start()

    def _take(self, fd: int) -> None:
        holder, decided = holder_of(self._path.parent), True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise InUse(_in_use(self._path.parent, holder)) from None
            decided = False  # by a file system without locks
        # Among the processes of this machine the system lock is right, whatever the file says.
        if holder and holder.alive and not (decided and holder.host == platform.node()):
            raise InUse(_in_use(self._path.parent, holder))
        if not self._path.exists() or not os.path.samestat(os.fstat(fd), self._path.stat()):
            raise InUse(f"{self._path.parent} was just released by another process: try again")
        me = Holder.me()
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, to_json({"pid": me.pid, "started": me.started, "host": me.host}), 0)
        except OSError:
            self._path.unlink(missing_ok=True)
            raise

    def touch(self) -> None:
        """A heartbeat for other machines."""
        with self._mine:  # the descriptor could belong to another file by now
            if self._fd is not None:
                os.utime(self._fd)

    def release(self, *, remove: bool = False) -> None:
        """Releases the lock. The file stays, unless there is no run to protect."""
        self._released.set()
        with self._mine:
            if self._fd is not None:
                if remove:
                    self._path.unlink(missing_ok=True)
                os.ftruncate(self._fd, 0)
                os.close(self._fd)
                self._fd = None

    def _live(self) -> None:
        while not self._released.wait(SIGN_SECONDS):
            with suppress(OSError):  # storage that is briefly unavailable
                self.touch()


def _in_use(folder: Path, holder: Holder | None) -> str:
    if holder and replace(holder, seen=0.0) == replace(Holder.me(), seen=0.0):
        return f"{folder} is in use by {holder}, which is this process: close() the run or agent that uses it"
    return f"{folder} is in use by {holder or 'another process'}"


def holder_of(folder: Path) -> Holder | None:
    """The last holder of a folder's lock that did not release it, alive or dead."""
    path = folder / "lock"
    try:
        seen = path.stat().st_mtime
        found: Any = from_json(read_bytes(path))
        pid, started = found["pid"], found["started"]
        if type(pid) is not int or type(started) is not int or not 0 < pid < 2**31:
            return None
        return Holder(pid, started, str(found["host"]), seen)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def living_holder_of(folder: Path) -> Holder | None:
    """The current holder of a folder."""
    holder = holder_of(folder)
    return holder if holder is not None and holder.alive else None


def start_of(pid: int) -> int:
    """Start time of a living process; -1 for a dead one; 0 if the system does not report it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except (PermissionError, OverflowError):
        pass
    try:
        # After the name, which is in brackets and may contain anything: state is field 3, start time field 22.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return -1 if fields[0] == "Z" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0
