"""Atomic writing of files, also across power cuts, and never through a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from rewirl.errors import Refused


def write_aside(path: Path, content: bytes) -> None:
    """Writes `content` next to `path` and renames it: readers see the complete old or new file."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """`write_aside` for several files: none appears before all are on the disk."""
    for path in contents:
        refuse_link(path)
    asides = {path: path.with_name(f".{path.name}.{secrets.token_hex(4)}") for path in contents}  # unique per writer
    try:
        for path, aside in asides.items():
            with _named(path):
                write_new(aside, contents[path])
                sync(aside)
        for path, aside in asides.items():
            with _named(path):
                os.rename(aside, path)
    except BaseException:
        for aside in asides.values():
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in contents}:
        sync(folder)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Reports the requested file, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_new(path: Path, content: bytes, within: int | None = None) -> None:
    """Writes a file and starts flushing it; `sync` waits until it is on the disk."""
    fd = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, within)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def sync(path: Path, within: int | None = None) -> None:
    """Waits until a file, or the entries of a folder, are on the disk."""
    fd = os.open(_in(path, within), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_file(path: Path, flags: int, within: int | None = None) -> int:
    """The descriptor of a regular file, for everything that a run writes in place. Refused for a link, pipe or device:
    its creator could choose which file is written. `within` is the descriptor of its folder."""
    with _refusing_links(path, within):
        fd = os.open(_in(path, within), flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=within)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused(f"{path} is not a regular file: move it away, so that rewirl can write its own")
    return fd


def open_folder(path: Path, within: int | None = None) -> int:
    """The descriptor of a folder: operations on it stay there, even if its name becomes a link meanwhile."""
    with _refusing_links(path, within):
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(_in(path, within), flags, dir_fd=within)


def refuse_link(path: Path, within: int | None = None) -> None:
    """Refused if there is a symbolic link where rewirl is about to write or delete."""
    try:
        mode = os.stat(_in(path, within), dir_fd=within, follow_symlinks=False).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise Refused(f"{path} is a symbolic link: rewirl does not write or delete through links; move it away")


def _in(path: Path, within: int | None) -> Path | str:
    """The name for the system call; the whole path is then for messages only."""
    return path if within is None else path.name


@contextmanager
def _refusing_links(path: Path, within: int | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            refuse_link(path, within)
        raise


def sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def to_json(value: object) -> bytes:
    """The same bytes for the same content; NaN and infinities are rejected."""
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
