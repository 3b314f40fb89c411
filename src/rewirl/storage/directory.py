"""A folder by its descriptor: operations stay in it, even if its path changes."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from rewirl.files import open_file, open_folder, refuse_link, sync, write_new


class Directory:
    """An open folder, not reached by a symbolic link. Names are those of its entries; symbolic links are refused."""

    def __init__(self, path: Path, within: Directory | None = None) -> None:
        self.path = path
        self._fd: int = open_folder(path, within._fd if within else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def names(self) -> list[str]:
        return os.listdir(self._fd)

    def has(self, name: str) -> bool:
        return name in self.names()

    def folder(self, name: str) -> Directory:
        """Opens a sub-folder."""
        return Directory(self.path / name, self)

    def make_folder(self, name: str) -> Directory:
        """Creates and opens a sub-folder."""
        os.mkdir(name, dir_fd=self._fd)
        return self.folder(name)

    def read(self, name: str) -> bytes:
        fd = open_file(self.path / name, os.O_RDONLY, self._fd)
        with os.fdopen(fd, "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """A new file; `sync` waits until it is on the disk."""
        write_new(self.path / name, content, self._fd)

    def sync(self, name: str | None = None) -> None:
        """Waits until a file is on the disk, or (without a name) what was created, renamed or removed here."""
        if name is None:
            os.fsync(self._fd)
        else:
            sync(self.path / name, self._fd)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Removes a folder with its content, or whatever has its name; what cannot be removed stays."""
        refuse_link(self.path / name, self._fd)
        with suppress(OSError):
            if stat.S_ISDIR(os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=self._fd)  # which would wait for a pipe
            else:
                os.unlink(name, dir_fd=self._fd)
