"""Callbacks for `learn`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from rewirl.errors import Refused
from rewirl.learners.agent_file import save_agent
from rewirl.training import Episode, EvaluationRow, Observer, Run

Callback = Observer
"""Base class of callbacks; displays and loggers derive from it too."""

CallbackLike: TypeAlias = "Observer | Callable[[Any, int], bool | None] | Iterable[CallbackLike] | None"
"""A callback, a function of agent and step that is called after every episode, or several of them."""


class EarlyStopping(Observer):
    """Ends training when the return is high enough or has stopped improving.

    >>> from rewirl import TD3
    >>> agent = TD3("Pendulum-v1", hidden=(8, 8), random_steps=50, eval_every=100, eval_episodes=1)
    >>> agent.learn(1000, callback=EarlyStopping(target=-2000)).step
    100
    """

    def __init__(self, *, target: float | None = None, patience: int | None = None, min_delta: float = 0.0) -> None:
        """Stops at an evaluation whose mean return is at least `target`, or that is the last of `patience` in a row
        which did not exceed the best one before by more than `min_delta`. The evaluation before learning is
        ignored."""
        if target is None and patience is None:
            raise Refused("EarlyStopping needs a target return, a patience in evaluations, or both")
        if patience is not None and patience < 1:
            raise Refused(f"patience must be at least 1 evaluation, not {patience}")
        self.target, self.patience, self.min_delta = target, patience, min_delta
        self.best: float | None = None
        """The best return seen."""
        self._waited = 0

    def on_evaluation(self, run: Run, row: EvaluationRow) -> bool:
        if row.step == 0:
            return True
        if self.best is None or row.return_mean > self.best + self.min_delta:
            self.best, self._waited = row.return_mean, 0
        else:
            self._waited += 1
        reached = self.target is not None and row.return_mean >= self.target
        return not reached and (self.patience is None or self._waited < self.patience)


class PeriodicSave(Observer):
    """Saves the whole agent periodically, at the first end of an episode after every interval.

    >>> import tempfile
    >>> from rewirl import TD3
    >>> folder = Path(tempfile.mkdtemp())
    >>> agent = TD3("Pendulum-v1", hidden=(8, 8), eval_every=0)
    >>> agent = agent.learn(1000, callback=PeriodicSave(300, folder, keep=2))
    >>> sorted(file.name for file in folder.iterdir())
    ['step-000000600.safetensors', 'step-000001000.safetensors']
    """

    def __init__(self, every: int, folder: str | Path, *, keep: int | None = None, replay: bool = False) -> None:
        """Saves into `folder` every so many steps and keeps the newest `keep` files. `replay` saves the replay too."""
        if every < 1 or (keep is not None and keep < 1):
            raise Refused(f"PeriodicSave needs every and keep of at least 1, not {every} and {keep}")
        self.every, self.folder, self.keep, self.replay = every, Path(folder), keep, replay
        self.files: list[Path] = []
        """Files written and still kept, oldest first."""
        self._last = 0

    def on_start(self, run: Run) -> None:
        self._last = run.step

    def on_episode(self, run: Run, episode: Episode) -> None:
        if run.step // self.every == self._last // self.every:
            return
        self._last = run.step
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"step-{run.step:09d}.safetensors"
        save_agent(run, file, replay=self.replay)
        self.files.append(file)
        while self.keep is not None and len(self.files) > self.keep:
            self.files.pop(0).unlink(missing_ok=True)


class AfterEpisodes(Observer):
    """A function of the agent and its step; returning False ends training."""

    def __init__(self, learner: Any, function: Callable[[Any, int], bool | None]) -> None:
        self._learner, self._function = learner, function

    def on_episode(self, run: Run, episode: Episode) -> bool | None:
        return self._function(self._learner, run.step)


def observers_of(learner: Any, callback: CallbackLike) -> list[Observer]:
    """The given callbacks, as observers."""
    if callback is None:
        return []
    if isinstance(callback, Observer):
        return [callback]
    if isinstance(callback, type):
        raise Refused(f"callback must be an object, not a class: {callback.__name__}(...)")
    if callable(callback):
        return [AfterEpisodes(learner, callback)]
    if isinstance(callback, Iterable) and not isinstance(callback, str):
        return [observer for one in callback for observer in observers_of(learner, one)]
    raise Refused(
        f"callback must be a rewirl.Callback, a function of agent and step, or a list of these, not {callback!r}"
    )
