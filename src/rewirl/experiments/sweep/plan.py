"""The plan of a sweep: which runs are finished, which are resumed, which are new, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rewirl.errors import Refused
from rewirl.experiments.sweep.grid import Grid, GridRun
from rewirl.experiments.sweep.run_identity import content_of, known_runs
from rewirl.files import sha256
from rewirl.storage import RunInfo
from rewirl.storage.folder import RunFolder, folder_name, run_folder
from rewirl.storage.initial_samples import pinned
from rewirl.training.config import RunConfig


@dataclass(eq=False)
class Job:
    """A run of a grid and its state."""

    run: GridRun
    folder: Path
    config: RunConfig
    """Its config, with the initial policy identified by content once that is known."""
    state: str = "new"
    """new, cut (interrupted, to be resumed), done; during a sweep also running, elsewhere (another process has it),
    failed, stopped or blocked (the run that it starts from failed)."""
    step: int = 0
    message: str = ""
    source: Job | None = None
    placed: bool = True
    """False until its initial policy is trained: the folder may still change."""

    @property
    def given(self) -> RunConfig:
        """The config to train with: a new run has to be told where its initial policy is."""
        if (self.folder / "config.toml").exists():
            return self.config
        where = self.run.config.initial_samples if self.source is None else str(self.source.folder)
        return replace(self.config, initial_samples=where)

    @property
    def ready(self) -> bool:
        """Whether it can be started."""
        return self.state in ("new", "cut") and (self.source is None or self.source.state == "done")


@dataclass
class Plan:
    """All runs of a grid, in starting order."""

    grid: Grid
    folder: Path
    jobs: list[Job] = field(default_factory=list)

    def place(self, job: Job, known: dict[str, list[RunInfo]] | None = None) -> None:
        """Finds the run among those below the folder, or a new place for it."""
        known = known_runs(self.folder) if known is None else known
        config = job.run.config
        if job.source is not None:
            if job.source.state != "done":
                job.folder, job.placed = self._new_folder(job, ""), False
                return
            config = replace(config, initial_samples=str(job.source.folder))
        job.config, job.placed = pinned(config)[0], True
        content = content_of(job.config)
        found = self._found(job, known.get(content, ()))
        if found is None:
            job.folder = self._new_folder(job, content)
            return
        assert found.config is not None
        job.folder, job.step = found.folder, found.step
        longer = found.config.steps > job.config.steps
        if found.state == "done" or (longer and found.step >= job.config.steps):
            job.state = "done" if found.step >= job.config.steps else "cut"
        elif found.state == "running":
            job.state, job.message = "elsewhere", found.message
        else:
            job.state = "cut"
        if job.state == "cut" and longer:
            # Fewer steps than before: the files for continuing later must be kept.
            job.config = replace(job.config, keep_replay=True)

    def _found(self, job: Job, known: Iterable[RunInfo]) -> RunInfo | None:
        """The best matching run of the same content that no other job uses."""
        taken = {other.folder for other in self.jobs if other is not job}
        free = [info for info in known if info.folder not in taken]
        steps = job.config.steps
        others = {other.config.steps for other in self.jobs if other is not job and _alike(other, job)}
        is_source = any(other.source is job for other in self.jobs)
        # The last policy of a source of initial samples is used, so its length must match exactly.
        exact = [info for info in free if _steps(info) == steps]
        longer = [info for info in free if _steps(info) > steps and _steps(info) not in others and not is_source]
        shorter = [info for info in free if _steps(info) < steps and _steps(info) not in others and _can_grow(info)]
        return next(iter([*exact, *longer, *shorter]), None)

    def _new_folder(self, job: Job, content: str) -> Path:
        config, taken = job.run.config, {other.folder for other in self.jobs if other is not job}
        name = "-".join(part for part in (config.method, f"seed{config.seed}", job.run.label) if part)
        folder = run_folder(run_folder(self.folder, folder_name(config.task)), name)
        if folder in taken or (folder / "config.toml").exists():
            folder = folder.with_name(f"{name}-{sha256(f'{content} {config.steps} {job.run}'.encode())[:8]}")
        return folder

    def count(self, *states: str) -> int:
        """How many runs are in one of these states."""
        return sum(job.state in states for job in self.jobs)


def plan(grid: Grid, folder: Path, known: dict[str, list[RunInfo]] | None = None) -> Plan:
    """Compares a grid with the runs below a folder. Runs are identified by the content of their configs, not by
    the names of their folders; a run with fewer steps is extended if possible.

    >>> from rewirl.experiments import load_grid
    >>> made = plan(load_grid("paper/schedule").narrowed(seeds=[1]), Path("no-runs-yet"))
    >>> [job.folder.name for job in made.jobs]
    ['td3-seed1-dense', 'ds-td3-seed1-e200', 'ds-td3-seed1-e500', 'ds-td3-seed1-e1000', 'ds-td3-seed1-e2000']
    """
    known = known_runs(folder) if known is None else known
    made = Plan(grid, folder)
    by_run: dict[GridRun, Job] = {}
    for run in grid.runs():
        by_run[run] = Job(run, folder, run.config)
    made.jobs = list(by_run.values())
    for job in made.jobs:
        job.source = by_run[job.run.source] if job.run.source is not None else None
    for job in sorted(made.jobs, key=lambda job: len(list(job.run.sources()))):
        try:
            made.place(job, known)
        except Refused as error:  # the initial policy's run may be damaged; other runs continue
            if job.source is None:
                raise
            job.folder, job.state, job.message = made._new_folder(job, ""), "failed", str(error)
    return made


def _alike(one: Job, other: Job) -> bool:
    """Whether two jobs differ only in their length."""
    same = (one.run.config.task, one.run.config.seed) == (other.run.config.task, other.run.config.seed)
    return same and one.run.source == other.run.source and content_of(one.run.config) == content_of(other.run.config)


def _steps(info: RunInfo) -> int:
    assert info.config is not None
    return info.config.steps


def _can_grow(info: RunInfo) -> bool:
    """Whether it can be extended: not if it is done and its replay is deleted."""
    return info.state != "done" or RunFolder(info.folder).replay.exists()
