"""Checkpoints as folders of plain files: written aside, hashed, synced, renamed; the last two are kept.

    checkpoint/step-000025000/MANIFEST    SHA-256 and name of every other file, then that of these lines
                              run.json, state.safetensors, ...

A folder has its final name only when everything in it is on the disk.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from rewirl.files import sha256, sync, write_new
from rewirl.storage.disk_errors import room_for

KEPT = 2
"""Checkpoints that are kept: should the last one be damaged, there is the one before."""
MANIFEST = "MANIFEST"
REPLACED = ".replaced-"
"""Before the name of a checkpoint while another one of the same step takes its place."""
HEADER = "# rewirl checkpoint; the lines below are for sha256sum -c"
NAME = re.compile(r"step-(\d{9,15})", re.ASCII)


class Damaged(Exception):
    """A checkpoint that is not what was written; the message names the file."""


def write(folder: Path, step: int, files: Mapping[str, bytes]) -> Path:
    """A new checkpoint in `folder`; older ones than the last two go. One of the same step is replaced, unless it says
    the same: evaluations may have been on their way when it was made."""
    final, aside = folder / f"step-{step:09d}", folder / ".writing"
    manifest = _manifest(files)
    if final.exists() and _same(final / MANIFEST, manifest):
        return final
    before = next(iter(found(folder)), None)
    needed = len(manifest) + sum(map(len, files.values()))
    consolation = f"the checkpoint {before} is whole" if before else "there was no checkpoint before it"
    with room_for("a checkpoint", needed, folder, consolation):
        try:
            shutil.rmtree(aside, ignore_errors=True)
            os.mkdir(aside)
            parts = {**files, MANIFEST: manifest}
            for name, content in parts.items():
                write_new(aside / name, content)
            for name in parts:  # after all writes: the first of these takes most of the others along
                sync(aside / name)
            sync(aside)
            replaced = folder / f"{REPLACED}{final.name}"
            if final.exists():
                os.rename(final, replaced)
            os.rename(aside, final)
            sync(folder)
            shutil.rmtree(replaced, ignore_errors=True)
        except OSError:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    clean(folder)
    return final


def read(path: Path) -> dict[str, bytes]:
    """All files of a checkpoint, if they are what was written."""
    try:
        manifest = (path / MANIFEST).read_bytes()
    except OSError as error:
        raise Damaged(f"{path / MANIFEST} cannot be read: {error.strerror}") from None
    files: dict[str, bytes] = {}
    for name, known in _entries(path / MANIFEST, manifest).items():
        try:
            files[name] = (path / name).read_bytes()
        except OSError as error:
            raise Damaged(f"{path / name} cannot be read: {error.strerror}") from None
        if sha256(files[name]) != known:
            raise Damaged(f"{path / name} is damaged: it does not have the SHA-256 that it was written with")
    if extra := {entry.name for entry in path.iterdir()} - {MANIFEST, *files}:
        raise Damaged(f"{path / min(extra)} does not belong there")
    if _manifest(files) != manifest:
        raise Damaged(f"{path / MANIFEST} is damaged: it is not what the files in it give")
    return files


def found(folder: Path) -> list[Path]:
    """Checkpoints in a folder, whole or not, the newest first."""
    if not folder.is_dir():
        return []
    named = [entry for entry in folder.iterdir() if NAME.fullmatch(entry.name)]
    return sorted(named, key=step_of, reverse=True)


def recover(folder: Path) -> None:
    """Puts back what a kill left between two names."""
    for replaced in folder.glob(f"{REPLACED}step-*"):
        final = folder / replaced.name.removeprefix(REPLACED)
        if final.exists():
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            os.rename(replaced, final)


def _same(path: Path, manifest: bytes) -> bool:
    try:
        return path.read_bytes() == manifest
    except OSError:
        return False


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def clean(folder: Path) -> None:
    """Removes what a kill left behind, and checkpoints that are not kept."""
    for leftover in (".writing", ".removing"):
        shutil.rmtree(folder / leftover, ignore_errors=True)
    for old in found(folder)[KEPT:]:
        remove(old)


def remove(path: Path) -> None:
    """Takes a folder's name away before its files: a checkpoint is never there in part."""
    if path.exists():
        gone = path.with_name(".removing")
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(path, gone)
        shutil.rmtree(gone)


def _manifest(files: Mapping[str, bytes]) -> bytes:
    lines = [HEADER, *(f"{sha256(content)}  {name}" for name, content in sorted(files.items()))]
    text = "\n".join(lines) + "\n"
    return f"{text}# {sha256(text.encode())}\n".encode()


def _entries(path: Path, manifest: bytes) -> dict[str, str]:
    text, _, seal = manifest.rpartition(b"# ")
    if seal != f"{sha256(text)}\n".encode():
        raise Damaged(f"{path} is damaged: it does not have the SHA-256 that it was written with")
    try:
        header, *lines = text.decode("utf-8").splitlines()
    except ValueError:
        raise Damaged(f"{path} is not a manifest") from None
    if header != HEADER:
        raise Damaged(f"{path} is not a manifest")
    entries = {}
    for line in lines:
        entry = re.fullmatch(r"([0-9a-f]{64})  ([a-z_]+\.[a-z]+)", line, re.ASCII)
        if not entry:
            raise Damaged(f"{path} has a line that is none of a manifest: {line!r}")
        entries[entry[2]] = entry[1]
    return entries
