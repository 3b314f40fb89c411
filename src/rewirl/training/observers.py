"""Observers of a run: displays, loggers, users' own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewirl.training.measurements import Episode, EvaluationRow

if TYPE_CHECKING:
    from rewirl.training.run import Run


class Observer:
    """Receives the events of a run; override the methods of interest. None is called at every step.

    >>> class Printer(Observer):
    ...     def on_evaluation(self, run, row):
    ...         print(row.step, row.return_mean)
    """

    def on_start(self, run: Run) -> None:
        """The run starts, or continues after `resume`."""

    def on_progress(self, run: Run) -> None:
        """Some steps were made; at most about ten calls per second."""

    def on_episode(self, run: Run, episode: Episode) -> None:
        """A training episode has ended."""

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        """An evaluation is complete; each is reported once, in order."""

    def on_checkpoint(self, run: Run, path: Path) -> None:
        """A checkpoint is on the disk."""

    def on_notice(self, run: Run, text: str) -> None:
        """Something that the user should know, other than an error."""

    def on_end(self, run: Run, error: BaseException | None) -> None:
        """`train` ends, with an error or normally (None)."""


class Everyone(Observer):
    """Passes events to all observers of a run."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def on_start(self, run: Run) -> None:
        for observer in self._observers:
            observer.on_start(run)

    def on_progress(self, run: Run) -> None:
        for observer in self._observers:
            observer.on_progress(run)

    def on_episode(self, run: Run, episode: Episode) -> None:
        for observer in self._observers:
            observer.on_episode(run, episode)

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        for observer in self._observers:
            observer.on_evaluation(run, row)

    def on_checkpoint(self, run: Run, path: Path) -> None:
        for observer in self._observers:
            observer.on_checkpoint(run, path)

    def on_notice(self, run: Run, text: str) -> None:
        for observer in self._observers:
            observer.on_notice(run, text)

    def on_end(self, run: Run, error: BaseException | None) -> None:
        for observer in self._observers:
            observer.on_end(run, error)
