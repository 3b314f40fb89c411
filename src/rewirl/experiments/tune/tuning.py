"""Tuning: a search for the λ, η and e of a method on a task, by Optuna. Every trial is one or more normal runs.

The search is in one folder: `study.journal` (Optuna's), a folder per trial with a run folder per seed, `best.toml`.
After a kill the same call continues: finished trials are kept, interrupted runs are resumed.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from rewirl.errors import Failed, Refused
from rewirl.experiments.analysis.metrics import final_return
from rewirl.experiments.analysis.trained_runs import Floats
from rewirl.experiments.sweep.progress import ProgressReader
from rewirl.experiments.sweep.workers import Ending, Workers
from rewirl.experiments.tune.search_space import Space, configs_of
from rewirl.files import open_file, write_aside
from rewirl.storage.folder import RunFolder
from rewirl.storage.lock import Lock, living_holder_of
from rewirl.training import EvaluationRow
from rewirl.training.config import RunConfig
from rewirl.training.signals import Signals
from rewirl.untrusted import printable

POLL = 0.5
SAMPLERS = ("random", "tpe")
JOURNAL, BEST = "study.journal", "best.toml"


@dataclass(eq=False)
class Trial:
    """One choice of values, and its result."""

    number: int
    params: dict[str, Any]
    configs: list[RunConfig]
    """Its runs, one per seed, trained one after the other."""
    folders: list[Path]
    state: str = "waiting"
    """waiting, running, done, pruned, failed (with these settings), stopped (to be resumed)."""
    value: float | None = None
    """R, mean over the seeds so far."""
    step: int = 0
    """Total over its runs."""
    message: str = ""
    handle: Any = None
    """Optuna's trial."""
    at: int = 0
    """Index of its current run."""
    reported: set[int] = field(default_factory=set)

    @property
    def rank(self) -> float:
        """Its value for sorting."""
        return -math.inf if self.value is None else self.value

    @property
    def steps(self) -> int:
        return sum(config.steps for config in self.configs)


class TuneWatcher:
    """Receives the events of a search; override the methods of interest."""

    def on_change(self, tuning: Tuning, trial: Trial) -> None:
        """A trial begins or ends."""

    def on_look(self, tuning: Tuning) -> None:
        """Called about twice a second."""

    def on_end(self, tuning: Tuning) -> None:
        """Everything is done, or the search was stopped."""


class Tuning:
    """A search in a folder. `base` has all other options, including method, task and steps."""

    def __init__(
        self,
        base: Mapping[str, Any],
        space: Space,
        folder: Path,
        workers: Workers,
        *,
        trials: int = 20,
        seeds: Sequence[int] = (0,),
        sampler: str = "random",
        prune: bool = False,
        search_seed: int = 0,
        watcher: TuneWatcher | None = None,
    ) -> None:
        try:
            self._optuna: Any = importlib.import_module("optuna")
        except ImportError:
            raise Refused("rewirl tune needs Optuna: pip install 'rewirl[tune]'") from None
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self.base, self.space, self.folder, self._workers = dict(base), space, folder, workers
        self.wanted, self.seeds = trials, list(seeds)
        self._sampler, self._prune, self._search_seed = sampler, prune, search_seed
        self._watcher = watcher or TuneWatcher()
        self.trials: list[Trial] = []
        self._readers: dict[Path, ProgressReader] = {}
        self.stopping = False
        RunFolder(folder).make()
        self._lock = Lock(folder)
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise

    @property
    def best(self) -> Trial | None:
        """The finished trial with the highest R; the first among equals."""
        done = [trial for trial in self.trials if trial.state == "done"]
        return max(done, key=lambda trial: trial.rank, default=None)

    def run(self, poll: float = POLL) -> None:
        """Runs until there are enough trials. SIGTERM or Ctrl-C lets all runs save and stop; twice kills them."""
        try:
            with Signals(hard=False) as signals:
                while self._step(stop=signals.stop is not None):
                    time.sleep(poll)
        except BaseException:
            self._workers.kill()
            raise
        finally:
            self._watcher.on_end(self)
            self._workers.close()
            self._lock.release()

    # -------------------------------------------------------------------- the way

    def _step(self, *, stop: bool) -> bool:
        for key, ending in self._workers.ended():
            self._ended(self.trials[key], ending)
        if stop and not self.stopping:
            self.stopping = True
            self._workers.stop()
        for trial in self.of("running"):
            self._look(trial)
        while not self.stopping and self._workers.room() and (begun := self._next()):
            self._workers.start(begun.number, begun.configs[begun.at], begun.folders[begun.at])
            self._set(begun, "running")
        self._watcher.on_look(self)
        return bool(self.of("running")) or (not self.stopping and bool(self.of("waiting")))

    def of(self, *states: str) -> list[Trial]:
        """The trials in one of these states."""
        return [trial for trial in self.trials if trial.state in states]

    def _next(self) -> Trial | None:
        """An interrupted trial, or a new one if more are needed."""
        # A run that is still training after its search was killed is waited for.
        waiting = [trial for trial in self.of("waiting") if not living_holder_of(trial.folders[trial.at])]
        if not waiting and len(self.trials) < self.wanted:
            # Each trial has its own sampler, so interruptions do not change the drawn values.
            self._study.sampler = self._new_sampler(len(self.trials))
            asked = self._study.ask()
            self.space.draw(asked)
            self.trials.append(self._trial(asked.number, dict(asked.params), asked))
            waiting = self.trials[-1:]
        return waiting[0] if waiting else None

    def _ended(self, trial: Trial, ending: Ending) -> None:
        self._look(trial)
        if trial.message == "pruned":
            self._tell(trial, "pruned", self._optuna.trial.TrialState.PRUNED)
        elif ending.code == 0:
            trial.at += 1
            trial.step = sum(config.steps for config in trial.configs[: trial.at])  # the last evaluation may be earlier
            if trial.at < len(trial.configs):
                self._set(trial, "waiting")
            else:
                self._study.tell(trial.handle, trial.value)
                self._set(trial, "done")
                self._write_best()
        elif ending.code == Failed.exit_code:
            self._tell(trial, "failed", self._optuna.trial.TrialState.FAIL, ending.message)
        else:
            self._set(trial, "stopped", ending.message)

    def _look(self, trial: Trial) -> None:
        """Reads the progress of a trial, and prunes it if it is worse than earlier trials at the same step."""
        finished = [_returns_of(self._rows(folder)) for folder in trial.folders[: trial.at]]
        now = self._rows(trial.folders[trial.at]) if trial.at < len(trial.folders) else []
        before = sum(config.steps for config in trial.configs[: trial.at])
        for count, row in enumerate(now, start=1):
            if before + row.step not in trial.reported:
                trial.reported.add(before + row.step)
                trial.step = before + row.step
                trial.value = mean(map(final_return, [*finished, _returns_of(now[:count])]))
                trial.handle.report(trial.value, trial.step)
                if self._prune and not trial.message and trial.handle.should_prune():
                    trial.message = "pruned"
                    self._workers.stop(trial.number)

    def _rows(self, folder: Path) -> list[EvaluationRow]:
        return self._readers.setdefault(folder, ProgressReader(folder)).rows()

    def _tell(self, trial: Trial, state: str, told: Any, message: str = "") -> None:
        self._study.tell(trial.handle, state=told)
        self._set(trial, state, message)

    def _set(self, trial: Trial, state: str, message: str = "") -> None:
        trial.state, trial.message = state, message
        self._watcher.on_change(self, trial)

    # ------------------------------------------------------------------- the files

    def _open(self) -> None:
        """Reads the study and its trials from the journal, if there is one; refused if that is damaged or belongs to
        another search."""
        path = self.folder / JOURNAL
        os.close(open_file(path, os.O_RDWR | os.O_CREAT))  # not a link or a pipe
        try:
            self._study, known, settings = self._study_of(path)
            if known is not None and known != settings:
                raise Refused(
                    f"{self.folder} contains another search ({'; '.join(_differences(known, settings))}): give another "
                    "folder, or search as before"
                )
            self.trials = [self._known(frozen) for frozen in self._study.get_trials(deepcopy=False)]
        except (Refused, OSError):
            raise
        except Exception as error:  # Optuna checks nothing that it reads
            why = printable(f"{type(error).__name__}: {error}")
            raise Refused(f"{path} is damaged ({why}): restore it, or give another folder") from error

    def _study_of(self, path: Path) -> tuple[Any, Any, Any]:
        """The study, its recorded settings (None if it is new), and those of this search."""
        journal = self._optuna.storages.journal
        storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(path)))
        steps = int(self.base["steps"])
        warmup = configs_of(self.base, {}, self.seeds)[0].random_steps
        pruner = self._optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=min(warmup, steps))
        study = self._optuna.create_study(
            storage=storage,
            study_name="rewirl",
            direction="maximize",
            pruner=pruner if self._prune else self._optuna.pruners.NopPruner(),
            load_if_exists=True,
        )
        settings = json.loads(json.dumps({"base": self.base, "space": self.space.settings(), "seeds": self.seeds}))
        known = study.user_attrs.get("settings")
        if known is None:
            study.set_user_attr("settings", settings)
        return study, known, settings

    def _trial(self, number: int, params: dict[str, Any], handle: Any) -> Trial:
        configs = configs_of(self.base, self.space.options(params), self.seeds)
        folders = [self.folder / f"trial-{number:03d}" / f"seed{config.seed}" for config in configs]
        return Trial(number, params, configs, folders, handle=handle)

    def _known(self, frozen: Any) -> Trial:
        """A trial of an earlier session."""
        states = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
        state = states.get(frozen.state.name, "waiting")
        handle = frozen
        if state == "waiting":
            self._study.sampler = self._new_sampler(frozen.number)
            handle = self._optuna.trial.Trial(self._study, frozen._trial_id)
            self.space.draw(handle)  # the drawn values are kept; a kill may have happened in between
        trial = self._trial(frozen.number, dict(handle.params), handle)
        trial.state, trial.value = state, frozen.value
        trial.reported = set(frozen.intermediate_values)
        trial.step = max(trial.reported, default=0) if state != "done" else trial.steps
        if trial.value is None and trial.reported:
            trial.value = frozen.intermediate_values[max(trial.reported)]
        return trial

    def _new_sampler(self, number: int) -> Any:
        seed = int(np.random.SeedSequence((self._search_seed, number)).generate_state(1)[0])
        if self._sampler == "tpe":
            return self._optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        return self._optuna.samplers.RandomSampler(seed=seed)

    def _write_best(self) -> None:
        best = self.best
        if best is not None:
            lines = best.configs[0].to_toml().splitlines()
            kept = [line for line in lines if not line.startswith(("seed = ", "steps = "))]
            head = f"# Trial {best.number} of {self.folder}: R = {best.value:.1f} over seeds {self.seeds}."
            write_aside(self.folder / BEST, "\n".join([head, *kept, ""]).encode())


def _returns_of(rows: Sequence[EvaluationRow]) -> Floats:
    return np.array([row.return_mean for row in rows])


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    old, new = ({"seeds": settings["seeds"], **settings["base"], **settings["space"]} for settings in (before, now))
    return [f"{name}: {old.get(name)} is now {new.get(name)}" for name in old | new if old.get(name) != new.get(name)]
