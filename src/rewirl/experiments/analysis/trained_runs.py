"""Run folders as data, with notes on missing parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewirl.errors import Refused
from rewirl.experiments.analysis.number_format import steps_text
from rewirl.files import sha256
from rewirl.policies import Policy
from rewirl.storage import inspect_run, list_runs
from rewirl.storage.folder import policy_file
from rewirl.storage.initial_samples import BY_CONTENT
from rewirl.storage.logs.tables import count, parse, rows_of, whole_lines
from rewirl.storage.provenance import About
from rewirl.storage.provenance import read as read_about
from rewirl.training.config import RunConfig
from rewirl.training.measurements import DiagnosticsRow
from rewirl.untrusted import MOST_POLICY, finite, from_json, read_bytes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEEDED = ("step", "return_mean")
"""Required columns of evaluations.csv."""
WANTED = ("seconds", "memory_mb", "links", "paper_flops", "full_flops")
"""Columns that older versions may lack; NaN if missing."""
DIAGNOSED = {
    "policy_dormant": "dormant neurons, policy",
    "critic_dormant": "dormant neurons, critics",
    "policy_rank": "effective rank, policy",
    "critic_rank": "effective rank, critics",
    "critic_bias": "critic bias",
}
"""Columns from diagnostics.csv with names for display; NaN if missing."""
UNKNOWN = "not recorded"
"""Version of something that a run did not record."""


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """One run: its config and its evaluations."""

    folder: Path
    config: RunConfig
    state: str
    """running, done, stopped or failed."""
    steps: Ints
    """(evaluations,) at which it was evaluated."""
    columns: dict[str, Floats]
    """(evaluations,) each, by name: what `NEEDED`, `WANTED` and `DIAGNOSED` list but the step."""
    about: tuple[About, ...] = ()
    """Its sessions; none if about.json is missing."""
    start: str | None = None
    """Origin of its initial samples, if not random."""
    is_source: bool = False
    """Whether other runs start with its policy."""

    @property
    def returns(self) -> Floats:
        """(evaluations,) mean return of each."""
        return self.columns["return_mean"]

    @property
    def last(self) -> int:
        """The step of its last evaluation."""
        return int(self.steps[-1])

    @property
    def whole(self) -> bool:
        """Whether it has all evaluations that its config asks for."""
        return self.last + self.config.eval_every > self.config.steps

    @property
    def reach(self) -> int:
        """The last step: if it is complete, that of its config, which may not be a step of an evaluation."""
        return max(self.last, self.config.steps) if self.whole else self.last

    @cached_property
    def name(self) -> str:
        """For people."""
        return f"{self.config.method} on {self.config.task}, seed {self.config.seed}"

    def until(self, step: int) -> dict[str, Floats]:
        """Its columns up to a step."""
        kept = self.steps <= step
        return {name: values[kept] for name, values in self.columns.items()}


@dataclass(frozen=True)
class Loaded:
    """Runs, and notes in sentences."""

    runs: tuple[TrainedRun, ...]
    notes: tuple[str, ...]


def load(paths: Iterable[Path]) -> Loaded:
    """All runs in some folders, each a run or a folder of runs. Unusable runs are listed in the notes; Refused if
    none is usable."""
    folders: dict[Path, Path] = {}
    given = list(paths)
    for path in given:
        if not path.is_dir():
            raise Refused(f"there is no folder {path}: give run folders, or folders that contain them")
        found = [path] if (path / "config.toml").is_file() else [info.folder for info in list_runs(path)]
        if not found:
            raise Refused(f"there is no run in {path}: a run folder has a config.toml")
        folders.update({folder.resolve(): folder for folder in found})
    runs: list[TrainedRun] = []
    notes: list[str] = []
    for folder in folders.values():
        try:
            runs.append(load_run(folder))
        except ValueError as error:
            notes.append(f"{folder} is left out: {error}.")
    if not runs:
        raise Refused(f"no run in {', '.join(map(str, given))} can be reported: {' '.join(notes)}")
    return Loaded(tuple(_with_sources(runs)), (*notes, *_about_versions(runs)))


def _with_sources(runs: Sequence[TrainedRun]) -> list[TrainedRun]:
    """Marks runs whose policies other runs start with, if the policies still exist."""
    wanted = {run.config.initial_samples for run in runs} - {None}
    return [replace(run, is_source=_policy_content(run.folder) in wanted) for run in runs] if wanted else list(runs)


def _policy_content(folder: Path) -> str | None:
    try:
        return BY_CONTENT + sha256(read_bytes(policy_file(folder), MOST_POLICY))
    except (OSError, ValueError, Refused):
        return None


def load_run(folder: Path) -> TrainedRun:
    """One run; ValueError says why it cannot be used. Only config.toml and evaluations.csv are needed."""
    info = inspect_run(folder)
    if info.config is None:
        raise ValueError("its config.toml cannot be read")
    try:
        steps, columns = read_evaluations(read_bytes(folder / "evaluations.csv"))
    except OSError as error:
        raise ValueError(f"its evaluations.csv cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"its evaluations.csv cannot be read ({error})") from None
    if not len(steps):
        raise ValueError("it has no evaluations yet")
    columns |= _diagnosed(folder, steps)
    about = tuple(read_about(folder / "about.json")) or _from_checkpoint(folder)
    return TrainedRun(folder, info.config, info.state, steps, columns, about, _start(folder, info.config))


def _diagnosed(folder: Path, steps: Ints) -> dict[str, Floats]:
    try:
        rows = parse(DiagnosticsRow, whole_lines(read_bytes(folder / "diagnostics.csv")))
    except (OSError, ValueError):
        rows = []  # of an older version, or damaged: the rest of the run is valid
    return diagnosed(rows, steps)


def diagnosed(rows: Sequence[DiagnosticsRow], steps: Ints) -> dict[str, Floats]:
    """The columns of `DIAGNOSED` at some steps: shares of all hidden neurons, means over the critics.

    >>> row = DiagnosticsRow(step=0, network="critic1", layer=1, neurons=8, dormant=2, effective_rank=5)
    >>> found = diagnosed([row, replace(row, network="critic2", dormant=4)], np.array([0]))
    >>> found["critic_dormant"], found["critic_rank"], found["policy_rank"]
    (array([0.375]), array([5.]), array([nan]))
    """
    columns = {name: np.full(len(steps), math.nan) for name in DIAGNOSED}
    place = {step: number for number, step in enumerate(steps.tolist())}
    parts: dict[tuple[int, str], list[DiagnosticsRow]] = {}
    for row in rows:
        part = "critic" if row.network.startswith("critic") else "policy"
        parts.setdefault((row.step, part), []).append(row)
    for (step, part), layers in parts.items():
        if step not in place:
            continue
        hidden = [(row.dormant, row.neurons) for row in layers if row.dormant is not None]
        if hidden:
            columns[f"{part}_dormant"][place[step]] = sum(n for n, _ in hidden) / sum(n for _, n in hidden)
        for name, values in (
            (f"{part}_rank", [row.effective_rank for row in layers if row.effective_rank is not None]),
            ("critic_bias", [row.q_bias for row in layers if row.q_bias is not None]),
        ):
            if values:
                columns[name][place[step]] = np.mean(values)
    return columns


def _from_checkpoint(folder: Path) -> tuple[About, ...]:
    """The versions of a run from before there was an about.json."""
    newest = max(folder.glob("checkpoint/step-*/run.json"), default=None)
    try:
        versions = from_json(read_bytes(newest))["versions"] if newest else {}
        known = {str(name): str(value) for name, value in versions.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ()
    return (About(0, "", known, {}),) if known else ()


def read_evaluations(content: bytes) -> tuple[Ints, dict[str, Floats]]:
    """Steps and columns of an evaluations.csv of any version; ValueError if it is invalid.

    >>> steps, columns = read_evaluations(b"step,return_mean\\n0,-1.5\\n5000,20\\n")
    >>> steps, columns["return_mean"], columns["memory_mb"]
    (array([   0, 5000]), array([-1.5, 20. ]), array([nan, nan]))
    """
    names, *lines = rows_of(whole_lines(content)) or [[]]
    rows = [dict(zip(names, line, strict=False)) for line in lines]
    if rows and (missing := [name for name in NEEDED if rows[0].get(name) is None]):
        raise ValueError(f"it has no column {missing[0]}")
    steps = np.array([_read(count, row.get("step", ""), "step") for row in rows], dtype=np.int64)
    columns = {
        name: np.array([_read(finite, row[name], name) if row.get(name) else math.nan for row in rows])
        for name in (*NEEDED[1:], *WANTED)
    }
    if np.any(np.diff(steps) <= 0) or not np.isfinite(columns["return_mean"]).all():
        raise ValueError("its steps do not increase, or a return is not a number")
    return steps, columns


def _read(read: Callable[[str], float], text: str, column: str) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"column {column}: {error}") from None


def _start(folder: Path, config: RunConfig) -> str | None:
    """Origin of a run's initial samples: the policy's method and steps if its copy exists, otherwise its hash."""
    given = config.initial_samples
    if given is None:
        return None
    try:
        about = Policy.load(folder / "initial_policy.safetensors").metadata
        return f"{about['method']} at {steps_text(int(about['step']))}"
    except (OSError, KeyError, ValueError):
        return given.removeprefix(BY_CONTENT)[:8]


def counted(runs: Sequence[TrainedRun], what: str) -> dict[str, dict[str, int]]:
    """How many runs had each value of each of their versions, or of what is known of their machines; UNKNOWN for runs
    that wrote down such things, and not this one."""
    found: dict[str, dict[str, int]] = {}
    written = [[getattr(session, what) for session in run.about] for run in runs]
    for sessions in written:
        for name, value in dict.fromkeys(pair for session in sessions for pair in session.items()):
            counts = found.setdefault(name, {})
            counts[value] = counts.get(value, 0) + 1
    for name, counts in found.items():
        if lacking := sum(any(sessions) and not any(name in known for known in sessions) for sessions in written):
            counts[UNKNOWN] = lacking
    return found


def differences(counts: Mapping[str, Mapping[str, int]]) -> str:
    """The entries of `counted` that differ between runs.

    >>> differences({"numpy": {"2.0": 3}, "python": {"3.12": 1, "3.11": 2}})
    'python 3.11 (2 runs), 3.12 (1 run)'
    """
    found = []
    for name, values in counts.items():
        if len(values) > 1:
            shown = (f"{value} ({n} run{'s' if n > 1 else ''})" for value, n in sorted(values.items()))
            found.append(f"{name} {', '.join(shown)}")
    return "; ".join(found)


def _about_versions(runs: Sequence[TrainedRun]) -> list[str]:
    """Differences in versions between the runs."""
    notes = []
    if found := differences(counted(runs, "versions")):
        notes.append(f"Runs of different versions are mixed: {found}.")
    if lacking := sum(bool(np.isnan(run.columns["memory_mb"]).all()) for run in runs):
        notes.append(f"{lacking} of {len(runs)} runs have no record of their memory.")
    return notes
