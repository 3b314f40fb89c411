"""A live line in a terminal or a notebook while an agent learns; otherwise plain lines, if requested."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rewirl.training import Episode, EvaluationRow, Observer, Run
from rewirl.training.observers.pace import Pace

REDRAWS = 0.25
"""Seconds between redraws."""
PLAIN_REDRAWS = 10.0
"""Seconds between plain lines."""


def progress_of(wanted: bool | None, console: Console | None = None) -> list[Observer]:
    """The observer that shows progress, if enabled; None enables it in terminals and notebooks."""
    console = console or Console(highlight=False)
    live = console.is_terminal or console.is_jupyter
    return [ProgressLine(console, live)] if wanted or (wanted is None and live) else []


class ProgressLine(Observer):
    """Steps, share, speed, time to go, the last evaluation and the last episode's return."""

    def __init__(self, console: Console, live: bool) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if live else None
        self._pace = Pace()
        self._episode: float | None = None
        self._drawn = 0.0

    def on_start(self, run: Run) -> None:
        if self._live:
            self._live.start()
        self._draw(run)

    def on_progress(self, run: Run) -> None:
        self._pace.see(run.step, run.loop.learning_begins)
        if time.monotonic() - self._drawn >= (REDRAWS if self._live else PLAIN_REDRAWS):
            self._draw(run)

    def on_episode(self, run: Run, episode: Episode) -> None:
        self._episode = episode.return_

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        if self._live:
            self._draw(run)

    def on_end(self, run: Run, error: BaseException | None) -> None:
        self._draw(run)
        if self._live:
            self._live.stop()

    def _draw(self, run: Run) -> None:
        self._drawn = time.monotonic()
        text = self.line(run)
        if self._live:
            self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            self._console.out(text, highlight=False)

    def line(self, run: Run) -> str:
        """The current state of the run."""
        steps = run.config.steps
        parts = [
            f"{run.config.method} on {run.config.task}",
            f"{run.step:,}/{steps:,} steps ({run.step / steps:.0%})",
            f"{self._pace.rate:,.0f} steps/s",
            f"ETA {self._pace.to_go(steps - run.step)}",
        ]
        if self._episode is not None:
            parts.append(f"episode {self._episode:,.1f}")
        if run.evaluations:
            parts.append(f"evaluation {run.evaluations[-1].return_mean:,.1f} at step {run.evaluations[-1].step:,}")
        return "  ".join(parts)
