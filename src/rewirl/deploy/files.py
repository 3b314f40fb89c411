"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rewirl.deploy.errors import ExportError


def write_aside(path: Path, content: bytes) -> None:
    """Writes `content` beside `path` and then renames it: whoever reads sees the old file or the new one, whole."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                os.chmod(file.name, 0o666 & ~_umask())  # a temporary file is for its owner alone, a saved one is not
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:  # about the file that was asked for, not about the one aside
        raise OSError(error.errno, f"cannot write ({error.strerror})", str(path)) from None


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


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
