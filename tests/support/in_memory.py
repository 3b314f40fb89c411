"""A place in memory for the files of tests: runs sync their files often, and that is what a disk is slow at."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def new_folder() -> Path:
    """Where there is such a place; else on the disk. Whoever asked for it removes it."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="rewirl-", dir=memory if memory.is_dir() else None))


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Instead of pytest's own, for conftest files to import."""
    path = new_folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)
