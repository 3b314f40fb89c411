"""The interface of everything that watches a run: displays, loggers, callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewirl.training.measurements import Episode, EvaluationRow

if TYPE_CHECKING:
    from rewirl.training.run import Run


class Observer:
    """Is told what happens in a run; override what is of interest. `run` has the step, the evaluations and the policy.

    `on_step`, `on_episode` and `on_evaluation` end the training when they return False.

    >>> class Printer(Observer):
    ...     def on_evaluation(self, run, row):
    ...         print(row.step, row.return_mean)
    """

    def on_start(self, run: Run) -> None:
        """`train` begins: with a new run, or with one that continues."""

    def on_step(self, run: Run) -> bool | None:
        """After every environment step. A run that nobody watches so closely is a little faster."""
        return None

    def on_progress(self, run: Run) -> None:
        """Some steps were made; at most about ten calls per second."""

    def on_episode(self, run: Run, episode: Episode) -> bool | None:
        """A training episode has ended."""
        return None

    def on_evaluation(self, run: Run, row: EvaluationRow) -> bool | None:
        """An evaluation is there: each once, in the order of their steps."""
        return None

    def on_checkpoint(self, run: Run, path: Path) -> None:
        """A checkpoint is on the disk."""

    def on_notice(self, run: Run, text: str) -> None:
        """Something that the user should know, other than an error."""

    def on_end(self, run: Run, error: BaseException | None) -> None:
        """`train` ends, with an error or normally (None)."""


class Everyone(Observer):
    """Tells all observers of a run, and stops the run when one of them asks for it."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    @property
    def watches_steps(self) -> bool:
        """Whether anyone wants to see every step."""
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
