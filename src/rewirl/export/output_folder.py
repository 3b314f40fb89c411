"""Destinations of exports, checked before any work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rewirl.export.errors import ExportError


def refuse_folder(path: Path) -> None:
    """Refuses a folder in place of a file, before any file is written."""
    if path.is_dir():
        raise ExportError(f"{path} is a folder, and a file is to be written there: give another folder or name")


def prepare_folder(folder: Path) -> Path:
    """`folder`, created if necessary; refused before any work if it is not writable."""
    try:
        with no_new_folders(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise ExportError(
            f"cannot write to {folder}: {error.strerror}; give a folder that can be written to"
        ) from error
    return folder


@contextmanager
def no_new_folders(folder: Path) -> Iterator[None]:
    """Work that creates `folder`. If it fails, the folders that it created are removed, as far as they are empty."""
    created = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        yield
    except BaseException:
        for part in created:
            with suppress(OSError):
                part.rmdir()
        raise
