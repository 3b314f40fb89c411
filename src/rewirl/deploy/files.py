"""Writing files so that nobody ever sees half of one, after a power cut either."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from rewirl.deploy.errors import ExportError


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


def refuse_folder(path: Path) -> None:
    """Refuses a folder where a file is to be, before any file is written."""
    if path.is_dir():
        raise ExportError(f"{path} is a folder, and a file is to be written there: give another --out or --name")


def prepare_folder(folder: Path) -> Path:
    """`folder`, made if need be, and known to take files: refused otherwise, before any work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExportError(
            f"cannot write to {folder}: {error.strerror}; give a folder that can be written to"
        ) from error
    return folder
