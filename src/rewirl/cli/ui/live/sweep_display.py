"""The display of a sweep: a live table of all runs on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from statistics import mean

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rewirl.cli.ui.live.in_place import InPlace
from rewirl.cli.ui.tables import table
from rewirl.experiments import Job, Sweep, Watcher
from rewirl.training.observers.pace import Pace, duration
from rewirl.untrusted import printable

STYLES = {
    "running": "cyan",
    "elsewhere": "cyan",
    "done": "green",
    "failed": "red",
    "blocked": "red",
    "stopped": "yellow",
}
WORDS = {"new": "waiting", "cut": "to resume", "elsewhere": "running elsewhere"}
"""Names of states for display."""
ORDER = ("failed", "blocked", "running", "elsewhere", "stopped", "cut", "done", "new")
"""Priority of rows if not all fit."""
COLUMNS = {"step": 95, "done": 0, "steps/s": 105, "ETA": 0, "return": 0, "best": 115}
"""Columns of the live table, each with the terminal width from which it is shown."""
WINDOW = 90.0
"""Window in seconds for measuring the speed: runs write only when an episode ends."""
LINES = 60.0
"""Seconds between two plain lines."""


def sweep_display(console: Console, jobs: int | None) -> SweepDisplay:
    """The display that suits the output; `jobs` is the number of parallel runs, if known."""
    return LiveSweep(console, jobs) if console.is_terminal else SweepDisplay(console, jobs)


class SweepDisplay(Watcher):
    """One line when a run starts or ends, and a summary now and then."""

    def __init__(self, console: Console, jobs: int | None) -> None:
        self.console, self._jobs = console, jobs
        self._paces: dict[Job, Pace] = {}
        self._told = time.monotonic()

    def on_change(self, sweep: Sweep, job: Job) -> None:
        why = f": {job.message}" if job.message else ""
        returns = _returns(sweep, job)
        shown = f", return {returns[0]}" if job.state == "done" and returns[0] != "–" else ""
        self._line(f"{word(job)}  {name(sweep, job)} at step {job.step:,} of {job.config.steps:,}{shown}{why}")

    def on_look(self, sweep: Sweep) -> None:
        self._keep_pace(sweep)
        if time.monotonic() - self._told >= LINES:
            self._told = time.monotonic()
            self._line(self.summary(sweep))

    def on_end(self, sweep: Sweep) -> None:
        self._line(self.summary(sweep))

    def summary(self, sweep: Sweep) -> str:
        """All runs in one line."""
        counts = [(sweep.of(state), WORDS.get(state, state)) for state in reversed(ORDER)]
        parts = [f"{len(jobs)} {text}" for jobs, text in counts if jobs]
        done, steps = _steps(sweep)
        eta = self.to_go(sweep)
        return f"{', '.join(parts)}; {done / max(steps, 1):.1%} of {steps:,} steps" + (f", ETA {eta}" if eta else "")

    def rate(self, sweep: Sweep, job: Job) -> float:
        """Steps per second of a run, or of similar runs if it is not running; 0 if not known."""
        own = self._paces[job].rate if job in self._paces and job.state == "running" else 0.0
        if own or job.state == "running":
            progress = sweep.progress.get(job)
            return own or (progress.steps_per_second if progress else None) or 0.0
        known = {
            other: rate
            for other, progress in sweep.progress.items()
            if (rate := self._paces[other].rate if other in self._paces else progress.steps_per_second)
        }
        alike = [rate for other, rate in known.items() if _kind(other) == _kind(job)]
        return mean(alike or known.values()) if known else 0.0

    def to_go(self, sweep: Sweep) -> str:
        """Time until all runs are finished; empty if not known yet."""
        left = [job for job in sweep.plan.jobs if job.state in ("new", "cut", "running", "elsewhere")]
        rates = {job: self.rate(sweep, job) for job in left}
        if not left or not all(rates.values()) or sweep.stopping:
            return ""
        seconds = [(job.config.steps - job.step) / rate for job, rate in rates.items()]
        at_once = min(self._jobs or len(sweep.of("running")) or 1, len(left))
        return duration(max(sum(seconds) / at_once, *seconds))

    def shows_all(self, sweep: Sweep) -> bool:
        """Whether the last output contained every run."""
        return False

    def _keep_pace(self, sweep: Sweep) -> None:
        for job in sweep.of("running"):
            self._paces.setdefault(job, Pace(WINDOW)).see(job.step, job.config.random_steps)

    def _line(self, text: str) -> None:
        self.console.out(text, highlight=False)


class LiveSweep(SweepDisplay):
    """A panel that is redrawn in place."""

    def __init__(self, console: Console, jobs: int | None) -> None:
        super().__init__(console, jobs)
        self._place = InPlace(console)

    def on_change(self, sweep: Sweep, job: Job) -> None:
        if job.state in ("failed", "blocked"):
            self.console.print(Text(printable(f"{word(job)}: {name(sweep, job)}: {job.message}"), style="red"))

    def on_look(self, sweep: Sweep) -> None:
        self._keep_pace(sweep)
        self._place.show(self.panel(sweep))

    def on_end(self, sweep: Sweep) -> None:
        if self._place.begun:
            self._place.show(self.panel(sweep))
            self._place.end()

    def panel(self, sweep: Sweep) -> RenderableType:
        """The current state of the sweep."""
        done, steps = _steps(sweep)
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_row(
            ProgressBar(steps, done, complete_style="cyan", finished_style="green"),
            f"{sweep.plan.count('done')} of {len(sweep.plan.jobs)} runs",
            Text(f"{done / max(steps, 1):.1%}", style="bold"),
            Text(f"ETA {self.to_go(sweep) or '–'}", style="cyan"),
        )
        columns = [column for column, width in COLUMNS.items() if self.console.width >= width]
        rows = table("run", "state", *columns, right=tuple(columns))
        shown = self._shown(sweep)
        for job in shown:
            cells = self.cells(sweep, job)
            state = Text(word(job), style=STYLES.get(job.state, "dim"))
            style = "dim" if job.state == "new" else None
            rows.add_row(name(sweep, job), state, *(cells[column] for column in columns), style=style)
        parts: list[RenderableType] = [bar, rows]
        hidden = [job for job in sweep.plan.jobs if job not in shown]
        if hidden:
            counts = ((sum(job.state == state for job in hidden), WORDS.get(state, state)) for state in ORDER)
            parts.append(Text("and " + ", ".join(f"{n} {text}" for n, text in counts if n), style="dim"))
        if sweep.stopping and sweep.of("running"):
            parts.append(Text("Stopping: each run saves and ends; Ctrl-C again kills them.", style="yellow"))
        return Panel(
            Group(*parts),
            title=f"[bold]{sweep.plan.grid.name} → {sweep.plan.folder}[/]",
            border_style="cyan",
            padding=(1, 2),
            width=min(self.console.width - 4, 120),
        )

    def cells(self, sweep: Sweep, job: Job) -> dict[str, str]:
        """The numbers of a row."""
        rate = self.rate(sweep, job) if job.state == "running" else 0.0
        last, best = _returns(sweep, job)
        return {
            "step": f"{job.step:,}" if job.step else "–",
            "done": f"{min(job.step / job.config.steps, 1):.0%}" if job.step else "–",
            "steps/s": f"{rate:,.0f}" if rate else "–",
            "ETA": duration((job.config.steps - job.step) / rate) if rate else "–",
            "return": last,
            "best": best,
        }

    def shows_all(self, sweep: Sweep) -> bool:
        return len(self._shown(sweep)) == len(sweep.plan.jobs)

    def _shown(self, sweep: Sweep) -> list[Job]:
        """As many rows as fit, the most informative ones, in the order of the plan."""
        room = max(self.console.height - 11, 3)
        first = sorted(sweep.plan.jobs, key=lambda job: ORDER.index(job.state))[:room]
        return [job for job in sweep.plan.jobs if job in first]


def name(sweep: Sweep, job: Job) -> str:
    """Folder of a run, shortened to the part that differs within a sweep."""
    return str(job.folder.relative_to(sweep.plan.folder))


def word(job: Job) -> str:
    """State of a run for display."""
    return WORDS.get(job.state, job.state)


def outcome(sweep: Sweep) -> Table:
    """A table of all runs after the sweep."""
    numbers = ("steps", "return", "best")
    rows = table("run", "state", *numbers, right=numbers)
    for job in sweep.plan.jobs:
        state = Text(word(job), style=STYLES.get(job.state, "dim"))
        rows.add_row(name(sweep, job), state, f"{job.step:,}", *_returns(sweep, job))
    return rows


def reasons(sweep: Sweep) -> list[str]:
    """Why runs failed, one line each."""
    return [f"{name(sweep, job)}: {job.message}" for job in sweep.of("failed", "blocked")]


def _returns(sweep: Sweep, job: Job) -> list[str]:
    progress = sweep.progress.get(job)
    values = (progress.last_return, progress.best_return) if progress else (None, None)
    return ["–" if value is None else f"{value:,.1f}" for value in values]


def _steps(sweep: Sweep) -> tuple[int, int]:
    jobs = sweep.plan.jobs
    return sum(min(job.step, job.config.steps) for job in jobs), sum(job.config.steps for job in jobs)


def _kind(job: Job) -> tuple[str, str]:
    return job.config.method, job.config.task
