"""Sweeps: all runs of a plan in parallel; one that fails does not stop the others."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from rewirl.errors import Refused
from rewirl.experiments.sweep.plan import Job, Plan
from rewirl.experiments.sweep.progress import Progress, ProgressReader
from rewirl.experiments.sweep.workers import Ending, Processes, Workers
from rewirl.storage.lock import living_holder_of
from rewirl.training.signals import Signals

POLL = 0.5
"""Seconds between two checks of the runs."""


class Watcher:
    """Receives the events of a sweep; override the methods of interest."""

    def on_change(self, sweep: Sweep, job: Job) -> None:
        """A run begins or ends."""

    def on_look(self, sweep: Sweep) -> None:
        """Called about twice a second."""

    def on_end(self, sweep: Sweep) -> None:
        """Everything is done, or the sweep was stopped."""


@dataclass
class Sweep:
    """A plan during execution."""

    plan: Plan
    workers: Workers
    watcher: Watcher = field(default_factory=Watcher)
    poll: float = POLL
    stopping: bool = False
    """Whether a stop was requested."""

    def __post_init__(self) -> None:
        self.progress: dict[Job, Progress] = {}
        self._readers: dict[Job, ProgressReader] = {}
        self._looked_elsewhere: dict[Job, float] = {}
        self._refused: set[Job] = set()

    def run(self) -> None:
        """Runs until every run has ended or is blocked. SIGTERM, SIGHUP or Ctrl-C lets all runs save and stop; Ctrl-C
        twice kills them."""
        try:
            with Signals(hard=False) as signals:
                self._look(self.plan.jobs)
                while self._step(stop=signals.stop is not None):
                    time.sleep(self.poll)
        except BaseException:
            self.workers.kill()
            raise
        finally:
            self.watcher.on_end(self)
            self.workers.close()

    def of(self, *states: str) -> list[Job]:
        """The jobs in one of these states."""
        return [job for job in self.plan.jobs if job.state in states]

    # -------------------------------------------------------------------- the way

    def _step(self, *, stop: bool) -> bool:
        """Updates states and starts jobs; False when there is nothing to wait for."""
        for key, ending in self.workers.ended():
            self._ended(self.plan.jobs[key], ending)
        if stop and not self.stopping:
            self.stopping = True
            self.workers.stop()
        self._look(self.of("running", "elsewhere"))
        self._look_elsewhere()
        if not self.stopping:
            self._block()
            self._start_more()
        self.watcher.on_look(self)
        if self.stopping:
            return bool(self.of("running"))
        return bool(self.of("running", "elsewhere", "new", "cut"))

    def _start_more(self) -> None:
        for key, job in enumerate(self.plan.jobs):
            try:
                if job.ready and not job.placed:
                    self.plan.place(job)
                    self._readers.pop(job, None)
                if not job.ready:  # it may be done by now, or locked by another process
                    continue
                if not self.workers.room():
                    return
                if holder := self._holder(job):
                    self._set(job, "elsewhere", holder)
                    continue
                self.workers.start(key, job.given, job.folder)
                self._set(job, "running")
            except Refused as error:  # of the policy that it begins with
                self._set(job, "failed", str(error))
            except OSError as error:
                self._set(job, "failed", f"{job.folder} cannot be written to: {error.strerror}")

    def _ended(self, job: Job, ending: Ending) -> None:
        self._look([job])
        if ending.code == 0:
            self._set(job, "done")
        elif ending.stopped or (self.stopping and ending.code < 0):
            self._set(job, "stopped", ending.message)
        elif ending.code == Refused.exit_code and job not in self._refused:
            # Another process may have had it and finished it: a second refusal is final.
            self._refused.add(job)
            self._place_again(job)
        else:
            self._set(job, "failed", ending.message)

    def _block(self) -> None:
        """Blocks jobs whose initial policy will not be trained."""
        for job in self.of("new", "cut"):
            if job.source is not None and job.source.state in ("failed", "stopped", "blocked"):
                self._set(job, "blocked", f"the run that it starts from, {job.source.folder.name}, is not finished")

    def _look(self, jobs: list[Job]) -> None:
        for job in jobs:
            reader = self._readers.setdefault(job, ProgressReader(job.folder))
            self.progress[job] = reader.read()
            job.step = max(job.step, self.progress[job].step)
            self.workers.took(self.progress[job].memory_mb or 0.0)

    def _look_elsewhere(self) -> None:
        """Updates a run that another process had: done, or free."""
        for job in self.of("elsewhere"):
            if time.monotonic() - self._looked_elsewhere.get(job, 0.0) > 2 * self.poll:
                self._looked_elsewhere[job] = time.monotonic()
                if not self._holder(job):
                    self._place_again(job)

    def _place_again(self, job: Job) -> None:
        """Reads the state of a run that another process had."""
        job.state, job.message = "new", ""
        self.plan.place(job)
        self.watcher.on_change(self, job)

    def _holder(self, job: Job) -> str:
        """The other process that has the run, if any."""
        holder = living_holder_of(job.folder)
        return f"by {holder}" if holder else ""

    def _set(self, job: Job, state: str, message: str = "") -> None:
        job.state, job.message = state, message
        self.watcher.on_change(self, job)


def run_sweep(plan: Plan, *, jobs: int | None = None, watcher: Watcher | None = None) -> Sweep:
    """Carries out a plan with processes on this machine, as many at a time as `jobs` says (one per core); the sweep,
    whose plan now says how each run ended. The same again does only what is missing.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rewirl.experiments import parse_grid, plan, run_sweep
    >>> grid = parse_grid('''
    ...     tasks = ["Pendulum-v1"]
    ...     methods = ["ds-td3"]
    ...     seeds = [1]
    ...     steps = 60
    ...     random_steps = 30
    ...     hidden = [8, 8]
    ...     eval_every = 0''', "small")
    >>> runs = tempfile.TemporaryDirectory()
    >>> [job.state for job in run_sweep(plan(grid, Path(runs.name))).plan.jobs]
    ['done']
    """
    sweep = Sweep(plan, Processes(jobs or os.cpu_count() or 1), watcher or Watcher())
    sweep.run()
    return sweep
