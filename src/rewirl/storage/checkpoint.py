"""Checkpoints as folders of plain files: written under another name, hashed, synced, renamed; the last two are kept.

    checkpoint/step-000025000/MANIFEST             SHA-256 and name of every other file, then that of these lines
                              run.json             values of the run's state, and versions
                              state.safetensors    the arrays of the run's state
                              config.toml, evaluations.csv, ...

A folder gets its final name only after everything in it is on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from rewirl.errors import Refused
from rewirl.files import sha256, to_json
from rewirl.policies.policy import Policy
from rewirl.policies.sealed_file import PolicyFileError
from rewirl.storage.directory import Directory
from rewirl.storage.disk_errors import room_for
from rewirl.storage.provenance import versions
from rewirl.training.state import Arrays, State
from rewirl.untrusted import from_json, read_bytes

KEPT = 2
"""Number of checkpoints kept: if the last one is damaged, the one before it is used."""
MANIFEST = "MANIFEST"
WRITING, REMOVING = ".writing", ".removing"
"""Folders that a kill may leave behind."""
REPLACED = ".replaced-"
"""Prefix of a checkpoint while another one of the same step replaces it."""
HEADER = "# rewirl checkpoint; the lines below are for sha256sum -c"
NAME = re.compile(r"step-(\d{9,15})", re.ASCII)


FORMAT = 2
"""Version of the format: 2 since weights are ordered by position."""
NEEDS = "0.1.0"
"""The first version of rewirl that reads this format."""
FILES = {"run.json", "state.safetensors", "config.toml", "evaluations.csv", "progress.csv"}
"""Files of every checkpoint."""
BEST = "best_policy.safetensors"
"""The policy of the best evaluation, if there was one."""
MORE = {BEST, "diagnostics.csv"}
"""Further files; older versions had no diagnostics."""
HEAD = {"versions", "format", "needs", "environment"}
"""Values in run.json that describe the checkpoint, not the run."""


class Damaged(Exception):
    """A damaged checkpoint; the message gives the file."""


UNFIT = (Damaged, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)
"""Errors from loading a checkpoint with valid hashes and invalid content."""


def save(folder: Path, step: int, state: State, files: Mapping[str, bytes], environment: str) -> Path:
    """A checkpoint of a run's state, with further files and the wrappers of the task."""
    arrays = {name: np.asarray(array, order="C") for name, array in state.arrays.items()}
    parts = {"run.json": format_values(state, environment), "state.safetensors": safetensors.numpy.save(arrays)}
    return write(folder, step, {**parts, **files})


def format_values(state: State, environment: str) -> bytes:
    """The content of run.json."""
    head = {"versions": versions(), "format": FORMAT, "needs": NEEDS, "environment": environment}  # as in HEAD
    return to_json(state.values | head)


def load(path: Path, files: Mapping[str, bytes]) -> State:
    """The state in a checkpoint; its fields belong to the parts of the run that saved them."""
    values = parse_values(str(path / "run.json"), files["run.json"])
    return State(values, parse_arrays(str(path / "state.safetensors"), files["state.safetensors"]))


def check_all_read(state: State) -> None:
    """Refuses a state with values that no part of the run has read."""
    if extra := set(state.unread()) - HEAD:
        raise Damaged(f"there are other fields than a run has: {', '.join(sorted(extra))}")


def differing_versions(state: State) -> list[str]:
    """Versions that differ; an older rewirl did not record all of them."""
    before, now = state.texts("versions"), versions()
    names = [name for name in before if before[name] != now.get(name)]
    return [f"{name} {before[name]} → {now.get(name, 'none')}" for name in names]


def parse_values(name: str, content: bytes) -> dict[str, Any]:
    """The values in run.json; `name` is used in messages."""
    try:
        given = from_json(content)
    except ValueError as error:
        raise Damaged(f"{name} is not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise Damaged(f"{name} is not a JSON object")
    found = given.get("format")
    if not isinstance(found, int):
        raise Damaged(f"{name} has other fields than a checkpoint: its format is not a number")
    if found > FORMAT:
        raise Refused(
            f"{name} needs rewirl ≥ {str(given.get('needs'))[:20]}: this is {version('rewirl')}, which reads up to "
            f"format {FORMAT}"
        )
    if found < FORMAT:
        raise Refused(
            f"{name} has the checkpoint format {found} of an older rewirl, this one reads {FORMAT}: resume "
            f"it with the version that trained it, or train again (its policy and evaluations can still be read)"
        )
    return given


def parse_arrays(name: str, content: bytes) -> Arrays:
    """Arrays of a safetensors file; its header is checked against the file's length before anything is allocated."""
    try:
        arrays = dict(safetensors.numpy.load(content))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise Damaged(f"{name} is not a safetensors file: {error}") from None
    for array, numbers in arrays.items():
        weights = re.search(r"\.(parameters|weights|bias|extra_weights)(\.\d+)?$", array)
        # Moments and averages may overflow in a run that still learns, and log α of a temperature of 0 is infinite.
        if numbers.dtype.kind == "f" and not (np.isfinite(numbers) if weights else ~np.isnan(numbers)).all():
            raise Damaged(f"{name} has numbers in {array} that are not finite")
    return arrays


def write(folder: Path, step: int, files: Mapping[str, bytes]) -> Path:
    """Writes a checkpoint and removes all but the last two. One of the same step is replaced unless it is identical:
    evaluations may have been pending when it was written."""
    final = folder / f"step-{step:09d}"
    manifest = _manifest(files)
    if _same(final / MANIFEST, manifest):
        return final
    before = next(iter(found(folder)), None)
    sizes = [len(manifest), *map(len, files.values())]
    consolation = f"the checkpoint {before} is intact" if before else "there was no checkpoint before it"
    with room_for("a checkpoint", [*sizes, 1], folder, consolation), Directory(folder) as here:
        try:
            here.remove(WRITING)
            _write_aside(here, {**files, MANIFEST: manifest})
            replaced = f"{REPLACED}{final.name}"
            if here.has(final.name):
                here.rename(final.name, replaced)
            here.rename(WRITING, final.name)
            here.sync()
            here.remove(replaced)
        except OSError:
            here.remove(WRITING)
            raise
    clean(folder)
    return final


def _write_aside(here: Directory, parts: Mapping[str, bytes]) -> None:
    with here.make_folder(WRITING) as aside:
        for name, content in parts.items():
            aside.write(name, content)
        for name in parts:  # after all writes: the first sync flushes most of the others
            aside.sync(name)
        aside.sync()


def read_run(path: Path) -> dict[str, bytes]:
    """All files of a run's checkpoint, verified by their hashes: whoever can write a file can also write its hash, so
    their names and the policy are checked as well. `load` checks the state."""
    files = read(path)
    for name in sorted(files.keys() ^ FILES):
        if name not in MORE:
            what = "does not belong to the checkpoint" if name in files else "is missing"
            raise Damaged(f"{path / name} {what}")
    if BEST in files:
        try:
            Policy.from_bytes(files[BEST], str(path / BEST))
        except PolicyFileError as error:
            raise Damaged(str(error)) from None
    return files


def read(path: Path) -> dict[str, bytes]:
    """All files of a checkpoint, verified by their hashes."""
    try:
        with Directory(path) as here:
            return _read(here)
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror}") from None


def _read(here: Directory) -> dict[str, bytes]:
    path = here.path
    manifest = _content(here, MANIFEST)
    files: dict[str, bytes] = {}
    for name, known in _entries(path / MANIFEST, manifest).items():
        files[name] = _content(here, name)
        if sha256(files[name]) != known:
            raise Damaged(f"{path / name} is damaged: its SHA-256 has changed")
    if extra := set(here.names()) - {MANIFEST, *files}:
        raise Damaged(f"{path / min(extra)} does not belong to the checkpoint")
    if _manifest(files) != manifest:
        raise Damaged(f"{path / MANIFEST} is damaged: it does not match the files")
    return files


def _content(here: Directory, name: str) -> bytes:
    try:
        return here.read(name)
    except OSError as error:
        raise Damaged(f"{here.path / name} cannot be read: {error.strerror}") from None


def found(folder: Path) -> list[Path]:
    """Checkpoints in a folder, intact or not, newest first."""
    if not folder.is_dir():
        return []
    named = [entry for entry in folder.iterdir() if NAME.fullmatch(entry.name)]
    return sorted(named, key=step_of, reverse=True)


def newest_step(folder: Path) -> int:
    """Step of the newest checkpoint in a folder; 0 if there is none."""
    return step_of(newest[0]) if (newest := found(folder)) else 0


def recover(folder: Path) -> None:
    """Restores a checkpoint that a kill left between two names."""
    if not folder.is_dir():
        return
    with Directory(folder) as here:
        for replaced in here.names():
            final = replaced.removeprefix(REPLACED)
            if replaced != final and NAME.fullmatch(final):
                if here.has(final):
                    here.remove(replaced)
                else:
                    here.rename(replaced, final)


def _same(path: Path, manifest: bytes) -> bool:
    try:
        return read_bytes(path) == manifest
    except (OSError, ValueError):
        return False


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def clean(folder: Path) -> None:
    """Removes leftovers of a kill and old checkpoints."""
    with Directory(folder) as here:
        for leftover in (WRITING, REMOVING):
            here.remove(leftover)
    for old in found(folder)[KEPT:]:
        remove(old)


def remove(path: Path) -> None:
    """Renames the folder before removing its files: a checkpoint is never visible in part."""
    with Directory(path.parent) as here:
        if here.has(path.name):
            here.remove(REMOVING)
            here.rename(path.name, REMOVING)
            here.remove(REMOVING)


def _manifest(files: Mapping[str, bytes]) -> bytes:
    lines = [HEADER, *(f"{sha256(content)}  {name}" for name, content in sorted(files.items()))]
    text = "\n".join(lines) + "\n"
    return f"{text}# {sha256(text.encode())}\n".encode()


def _entries(path: Path, manifest: bytes) -> dict[str, str]:
    text, _, seal = manifest.rpartition(b"# ")
    if seal != f"{sha256(text)}\n".encode():
        raise Damaged(f"{path} is damaged: its SHA-256 has changed")
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
            raise Damaged(f"{path} has a line that is not a manifest line: {line!r}")
        entries[entry[2]] = entry[1]
    return entries
