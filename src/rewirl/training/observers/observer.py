"""The interface of displays, loggers and callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewirl.training.measurements import Episode, EvaluationRow

if TYPE_CHECKING:
    from rewirl.training.run import Run


class Observer:
    """Receives the events of a run; override the methods of interest. `run` has the step, the evaluations and the
    policy.

    `on_step`, `on_episode` and `on_evaluation` end the training when they return False.

    >>> class Printer(Observer):
    ...     def on_evaluation(self, run, row):
    ...         print(row.step, row.return_mean)
    """

    def on_start(self, run: Run) -> None:
        """`train` begins, in a new or a resumed run."""

    def on_step(self, run: Run) -> bool | None:
        """After every environment step. A run is slightly faster without it."""
        return None

    def on_progress(self, run: Run) -> None:
        """Progress, at most about ten times per second."""

    def on_episode(self, run: Run, episode: Episode) -> bool | None:
        """A training episode has ended."""
        return None

    def on_evaluation(self, run: Run, row: EvaluationRow) -> bool | None:
        """An evaluation is complete. Each is reported once, in the order of steps."""
        return None

    def on_checkpoint(self, run: Run, path: Path) -> None:
        """A checkpoint has been written."""

    def on_notice(self, run: Run, text: str) -> None:
        """A notice for the user that is not an error."""

    def on_end(self, run: Run, error: BaseException | None) -> None:
        """`train` ends, with an error or normally (None)."""


class Everyone(Observer):
    """Passes events to all observers of a run, and stops the run if one of them requests it."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    @property
    def watches_steps(self) -> bool:
        """Whether an observer overrides `on_step`."""
        return any(type(observer).on_step is not Observer.on_step for observer in self._observers)

    def on_start(self, run: Run) -> None:
        for observer in self._observers:
            observer.on_start(run)

    def on_step(self, run: Run) -> None:
        _heed(run, [observer.on_step(run) for observer in self._observers])

    def on_progress(self, run: Run) -> None:
        for observer in self._observers:
            observer.on_progress(run)

    def on_episode(self, run: Run, episode: Episode) -> None:
        _heed(run, [observer.on_episode(run, episode) for observer in self._observers])

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        _heed(run, [observer.on_evaluation(run, row) for observer in self._observers])

    def on_checkpoint(self, run: Run, path: Path) -> None:
        for observer in self._observers:
            observer.on_checkpoint(run, path)

    def on_notice(self, run: Run, text: str) -> None:
        for observer in self._observers:
            observer.on_notice(run, text)

    def on_end(self, run: Run, error: BaseException | None) -> None:
        for observer in self._observers:
            observer.on_end(run, error)


def _heed(run: Run, answers: Iterable[bool | None]) -> None:
    if any(answer is False for answer in answers):
        run.stop()
