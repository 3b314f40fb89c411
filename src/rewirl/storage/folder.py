"""Run folders: their files, their state, and finding them."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewirl.errors import Refused
from rewirl.files import refuse_link, to_json, write_aside, write_new
from rewirl.policies.policy import Policy
from rewirl.storage.lock import living_holder_of
from rewirl.storage.logs.tables import returns, whole_lines
from rewirl.training.config import RunConfig
from rewirl.untrusted import from_json, printable, read_bytes, read_text, reason

LEFTOVERS = (".policy.", ".best_policy.", ".initial_policy.", ".status.", ".config.", ".about.")
"""Prefix of files that were being replaced."""
OTHERS = ("lock", "train.log", "tensorboard", "wandb")
"""Files of locks, sweeps and loggers in a run folder."""


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.status = path / "status.json"
        self.evaluations = path / "evaluations.csv"
        self.diagnostics = path / "diagnostics.csv"
        self.progress = path / "progress.csv"
        self.wiring = path / "wiring.bin"
        self.about = path / "about.json"
        self.checkpoints = path / "checkpoint"
        self.policy = path / "policy.safetensors"
        self.best_policy = path / "best_policy.safetensors"
        self.initial_policy = path / "initial_policy.safetensors"
        self.initial_source = path / "initial_policy.path"
        self.replay = path / "replay.bin"

    def make(self) -> bool:
        """Creates it; returns whether it is new. Refused if it cannot be created or written to."""
        new = True
        for part in (self.path, *self.path.parents):
            if part.is_symlink() and not part.exists():
                raise Refused(f"{part} is a link to a folder that does not exist: choose another folder")
            if part.exists() and not part.is_dir():
                raise Refused(f"{part} is a file, and a run needs a folder: choose another name")
        try:
            try:
                self.path.mkdir(parents=True)
            except FileExistsError:
                new = False
            trial = self.path / f".trial.{secrets.token_hex(4)}"
            write_new(trial, b"")
            trial.unlink()
        except OSError as error:
            if new:
                with suppress(OSError):
                    self.path.rmdir()
            raise Refused(
                f"the run folder {self.path} cannot be written to ({error.strerror}): choose another folder"
            ) from None
        return new

    def discard(self) -> None:
        """Removes the files of a run that could not start, except the lock, which belongs to its holder."""
        files = [self.config, self.status, self.evaluations, self.diagnostics, self.progress, self.wiring, self.about]
        for file in (*files, self.policy, self.best_policy, self.initial_policy, self.initial_source, self.replay):
            file.unlink(missing_ok=True)
        self.clean()
        with suppress(OSError):
            self.checkpoints.rmdir()

    def refuse_links(self) -> None:
        """Refused if anything that a run writes or deletes is a symbolic link; a folder of the user's choice may be
        reached by one."""
        own = {*OTHERS, *(file.name for file in vars(self).values() if file != self.path)}
        for entry in os.scandir(self.path):
            if entry.name in own or entry.name.startswith(LEFTOVERS):
                refuse_link(Path(entry.path))
        for where, folders, files in os.walk(self.checkpoints):
            for name in (*folders, *files):
                refuse_link(Path(where, name))

    def set_status(self, state: str, step: int, message: str = "") -> None:
        write_aside(self.status, to_json({"state": state, "step": step, "message": message}))

    def read_status(self) -> dict[str, Any]:
        """What `set_status` wrote last; empty if that is missing."""
        try:
            found = from_json(read_bytes(self.status))
        except (OSError, ValueError):
            return {}
        kinds = {"state": str, "step": int, "message": str}
        known = found if isinstance(found, dict) else {}
        return {name: known[name] for name, kind in kinds.items() if type(known.get(name)) is kind}

    def in_python(self, title: str) -> str:
        """How to resume, from Python, a run whose environment only Python can provide."""
        return f"{title}(env, run_dir={str(self.path)!r}, …).learn(steps)"

    def has_policy(self) -> bool:
        """Whether the latest policy exists and is intact."""
        try:
            Policy.load(self.policy)
        except (OSError, Refused):
            return False
        return True

    def clean(self) -> None:
        """Removes partially written files that a kill left behind."""
        for leftover in self.path.glob(".*"):
            if leftover.is_file() and leftover.name.startswith(LEFTOVERS):
                leftover.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunInfo:
    """A run folder at a glance."""

    folder: Path
    config: RunConfig | None
    """None if its config.toml cannot be read."""
    state: str
    """running, done, stopped, failed or damaged."""
    step: int
    """Steps so far, according to the files."""
    best_return: float | None
    last_return: float | None
    message: str
    """Why it failed or stopped, or what is damaged."""

    @property
    def resumable(self) -> bool:
        return self.state in ("stopped", "failed", "damaged")


def run_folder(runs: Path, name: str) -> Path:
    """The folder of a run by its name.

    >>> run_folder(Path("runs"), "first").as_posix()
    'runs/first'
    """
    if not name or name in (".", "..") or "/" in name or "\\" in name or printable(name) != name:
        raise Refused(f"{name!r} is not a valid run name: use one word that can name a folder, e.g. first-try")
    return runs / name


def folder_name(text: str) -> str:
    """A name that contains a task's name, made suitable for a folder.

    >>> folder_name("ALE/Pong-v5"), folder_name("own_environment:Docking-v0")
    ('ALE-Pong-v5', 'own_environment-Docking-v0')
    """
    return text.replace("/", "-").replace(":", "-")


def policy_file(path: Path, *, best: bool = False) -> Path:
    """Path of a policy: of a policy file itself, or of the latest or best policy in a run folder."""
    place = RunFolder(path)
    if path.is_dir() and not place.config.exists():
        raise Refused(f"{path} is not a run folder: it has no config.toml")
    file = path if not path.is_dir() else place.best_policy if best else place.policy
    if not file.exists():
        what = f"{path} has no policy yet" if path.is_dir() else f"there is no {path}"
        raise Refused(f"{what}: give a run folder with a trained policy, or a policy.safetensors")
    return file


def inspect_run(folder: Path) -> RunInfo:
    """Refused if it contains no run."""
    place = RunFolder(folder)
    with suppress(PermissionError):  # then it is unreadable, and listed as that
        if not place.config.exists():
            raise Refused(f"there is no run in {folder}: it has no config.toml")
    config, damage = None, ""
    rows: list[tuple[int, float]] = []
    try:
        if place.evaluations.exists():
            rows = returns(whole_lines(read_bytes(place.evaluations)))
    except (ValueError, OSError) as error:
        damage = f"its evaluations.csv cannot be read ({reason(error)})"
    try:
        config = RunConfig.from_toml(read_text(place.config))
    except (ValueError, OSError) as error:
        damage = f"its config.toml cannot be read ({reason(error)})"
    status = place.read_status()
    state, message = status.get("state", "stopped"), status.get("message", "")
    if holder := living_holder_of(folder):
        state, message = "running", f"by {holder}"
    elif damage:
        state, message = "damaged", damage
    elif state == "running":
        state, message = "stopped", "it was killed"
    step = status.get("step", 0)
    if config is None or not 0 <= step <= config.steps:
        step = 0  # more than any run has
    last_step, last_return = rows[-1] if rows else (0, None)
    return RunInfo(
        folder=folder,
        config=config,
        state=state,
        step=max(step, last_step),
        best_return=max((mean for _, mean in rows), default=None),
        last_return=last_return,
        message=message,
    )


def list_runs(runs: Path) -> list[RunInfo]:
    """All runs in a folder and in its sub-folders, by name. A folder that may not be read is listed as damaged."""
    found = []

    def unreadable(error: OSError) -> None:
        if isinstance(error, PermissionError):
            if Path(error.filename) == runs:
                raise error
            found.append(Path(error.filename))

    for where, folders, files in os.walk(runs, onerror=unreadable):  # tolerates folders that appear and disappear
        if "checkpoint" in folders:
            folders.remove("checkpoint")  # it contains copies of the config
        if "config.toml" in (*files, *folders) and Path(where) != runs:
            found.append(Path(where))
    infos = []
    for folder in sorted(found):
        with suppress(Refused):  # it was removed meanwhile
            infos.append(inspect_run(folder))
    return infos
