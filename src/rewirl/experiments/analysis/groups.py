"""Runs of one task and one method that differ only in their seeds, with short labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rewirl.agents.methods import METHODS, Method, method
from rewirl.envs.task_names import without_version
from rewirl.experiments.analysis.number_format import steps_text
from rewirl.experiments.analysis.smoothing import smoothed
from rewirl.experiments.analysis.trained_runs import Floats, Ints, TrainedRun
from rewirl.experiments.paper.published import TASKS
from rewirl.training.config import LINKS, REWIRING, RunConfig

NO_VARIANT = RunConfig.FREE | {"method", "task", "seed", "eval_every", "eval_episodes"}
"""Fields of a config that do not define a variant of a method."""
HARD = {"tau": 1.0, "target_interval": 1000}
"""The paper's hard target updates."""
SHORT = {"adapt_every": "e", "eta": "η", "gamma": "γ", "tau": "τ", "alpha": "α"}

Settings = tuple[tuple[str, Any], ...]


class MeanCurve(NamedTuple):
    """Over the seeds of a group, at each step (all of the same shape)."""

    steps: Ints
    mean: Floats
    std: Floats
    """Over seeds, ddof = 0."""
    n: Ints
    """Number of runs that reached each step."""


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one task and one variant of a method, by seed."""

    task: str
    label: str
    settings: Settings
    """Settings that differ from the method's defaults."""
    runs: tuple[TrainedRun, ...]

    @property
    def method(self) -> Method:
        return method(self.runs[0].config.method)

    @property
    def dense(self) -> bool:
        return not self.method.rule.sparse

    @property
    def hard(self) -> bool:
        """Whether it has the paper's hard target updates."""
        return is_hard(dict(self.settings))

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.config.seed for run in self.runs)

    @property
    def reach(self) -> int:
        """The step of its longest run."""
        return max(run.reach for run in self.runs)

    @property
    def n_text(self) -> str:
        """Number of runs, and which are unfinished: 'n = 3 (1 at 300k of 1M)'."""
        partial: dict[str, int] = {}
        for run in self.runs:
            if not run.whole:
                place = f"at {steps_text(run.last)} of {steps_text(run.config.steps)}"
                partial[place] = partial.get(place, 0) + 1
        notes = ", ".join(f"{count} {place}" for place, count in partial.items())
        return f"n = {len(self.runs)}" + (f" ({notes})" if notes else "")

    def curve(self, column: str = "return_mean", window: int = 1) -> MeanCurve:
        """The mean over seeds at every step at which all runs that reached it were evaluated, as long as these are
        at least half of all: otherwise the mean would jump to the few that are left. Each run is smoothed
        over `window` evaluations first."""
        lasts = np.array([run.last for run in self.runs])
        seen = [set(run.steps.tolist()) for run in self.runs]
        steps = [
            step
            for step in sorted(set().union(*seen))
            if all(step in have for have, last in zip(seen, lasts, strict=True) if last >= step)
            and 2 * (lasts >= step).sum() >= len(lasts)
        ]
        rows = np.full((len(self.runs), len(steps)), np.nan)
        for row, run in zip(rows, self.runs, strict=True):
            at = {step: number for number, step in enumerate(run.steps.tolist())}
            values = smoothed(run.columns[column], window) if window > 1 else run.columns[column]
            for number, step in enumerate(steps):
                if step in at:
                    row[number] = values[at[step]]
        n = np.array([(lasts >= step).sum() for step in steps], dtype=np.int64)
        total = np.nansum(rows, axis=0)
        known = np.isfinite(rows).sum(axis=0)
        mean = np.divide(total, known, out=np.full(len(steps), np.nan), where=known > 0)
        squares = np.nansum((rows - mean) ** 2, axis=0)
        std = np.sqrt(np.divide(squares, known, out=np.full(len(steps), np.nan), where=known > 0))
        return MeanCurve(np.array(steps, dtype=np.int64), mean, std, n)

    def along(self, column: str) -> Floats:
        """Mean cost at each step of the mean curve. Times are given only while all runs continue: otherwise the mean
        would jump to the few that are left."""
        curve = self.curve(column)
        return np.where(curve.n == len(self.runs), curve.mean, np.nan) if column == "seconds" else curve.mean


def grouped(runs: Sequence[TrainedRun]) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """Groups by task and method, and notes on runs that are left out: of the same seed all but the longest, and those
    that are shorter than others of their group because they are there for their policies alone."""
    notes = []
    found: dict[tuple[str, str, Settings], dict[int, TrainedRun]] = {}
    keys = [(run.config.task, run.config.method, settings_of(run)) for run in runs]
    longest: dict[tuple[str, str, Settings], int] = {}
    for run, key in zip(runs, keys, strict=True):
        longest[key] = max(run.config.steps, longest.get(key, 0))
    for run, key in zip(runs, keys, strict=True):
        if run.is_source and run.config.steps < longest[key]:
            notes.append(f"{run.folder} is left out: it only provides the initial policy of other runs.")
            continue
        same = found.setdefault(key, {})
        other = same.get(run.config.seed)
        if other is not None:
            longer, shorter = (run, other) if run.last > other.last else (other, run)
            notes.append(f"{shorter.folder} is left out: it is the same as {longer.folder} ({run.name}).")
            run = longer
        same[run.config.seed] = run
    labels = labels_of([(name, settings) for _, name, settings in found])
    order = list(METHODS)
    by_name = sorted(
        found, key=lambda key: (*_task_order(key[0]), order.index(key[1]), len(key[2]), _natural(str(key[2])))
    )
    groups = []
    for task, name, settings in by_name:
        by_seed = sorted(found[task, name, settings].items())
        groups.append(Group(task, labels[name, settings], settings, tuple(run for _, run in by_seed)))
    return tuple(groups), tuple(notes)


def _natural(text: str) -> list[tuple[int, str]]:
    """Sorts texts by the whole numbers in them: 500 before 2000."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _task_order(task: str) -> tuple[int, str]:
    """The paper's tasks in the paper's order, then all others by name."""
    base = without_version(task)
    return (TASKS.index(base) if base in TASKS else len(TASKS)), task


def settings_of(run: TrainedRun) -> Settings:
    """Settings of a run that differ from the defaults of its method on its task."""
    given = run.config.items()
    default = RunConfig.resolve(method=run.config.method, task=run.config.task).items()
    default.setdefault("adapt_every", RunConfig.adapt_every)  # a method that never rewires has it only if it recycles
    by_length = run.config.by_length()
    if run.start is not None:
        given = {**given, "initial_samples": run.start}
    return tuple(
        (name, value)
        for name, value in given.items()
        if name not in NO_VARIANT and name not in by_length and default.get(name) != value
    )


def labels_of(variants: Sequence[tuple[str, Settings]]) -> dict[tuple[str, Settings], str]:
    """Labels of the variants of a method: the method's name if there is only one, otherwise with the settings that
    differ.

    >>> variants = [("ds-td3", ()), ("ds-td3", (("adapt_every", 200),)), ("td3", (("lr", 0.1),))]
    >>> list(labels_of(variants).values())
    ['ds-td3', 'ds-td3 e=200', 'td3']
    """
    out = {}
    for name, settings in variants:
        others = [dict(other) for same, other in variants if same == name]
        mine = dict(settings)
        differing = {key: value for key, value in mine.items() if any(other.get(key) != value for other in others)}
        out[name, settings] = " ".join([name, *_words(mine, differing)])
    return out


def _words(settings: Mapping[str, Any], differing: Mapping[str, Any]) -> list[str]:
    """Hard target updates are always part of the label, because the paper shows both."""
    words = ["hard"] if is_hard(settings) else []
    return words + [_word(key, value) for key, value in differing.items() if not (words and key in HARD)]


def _word(name: str, value: Any) -> str:
    if name == "sparsity":
        return f"{100 * value:.4g}%"
    if name == "lambdas":
        return "λ=" + "/".join(f"{part:g}" for part in value)
    if name == "hidden":
        return "×".join(map(str, value))
    if name == "critic_hidden":
        return "critics " + "×".join(map(str, value))
    if name == "block":
        return f"block {value}"
    if name == "initial_samples":
        return f"from {value}"
    return f"{SHORT.get(name, name)}={f'{value:g}' if isinstance(value, float) else value}"


def is_hard(settings: Mapping[str, Any]) -> bool:
    """
    >>> is_hard({"tau": 1.0, "target_interval": 1000}), is_hard({"tau": 1.0})
    (True, False)
    """
    return all(settings.get(name) == value for name, value in HARD.items())


def counterpart(group: Group, groups: Iterable[Group]) -> Group | None:
    """The dense counterpart of a group: the same task and algorithm and, if possible, the same settings except the
    wiring."""
    dense = [other for other in groups if other.dense and _same_problem(group, other)]
    return _most_alike(group, dense, (*LINKS, *REWIRING))


def static_counterpart(group: Group, groups: Iterable[Group]) -> Group | None:
    """The static counterpart: as many links and, if possible, the same other settings."""
    mine = group.runs[0].config
    static = [
        other
        for other in groups
        if other.method.rule.name == "static"
        and _same_problem(group, other)
        and all(getattr(mine, name) == getattr(other.runs[0].config, name) for name in LINKS)
    ]
    return _most_alike(group, static, REWIRING)


def _same_problem(group: Group, other: Group) -> bool:
    return (group.task, group.method.algorithm) == (other.task, other.method.algorithm)


def _most_alike(group: Group, others: Sequence[Group], but_for: Sequence[str]) -> Group | None:
    def settings(of: Group) -> set[tuple[str, Any]]:
        # The method of the initial policy is part of the run's method; its training time is a setting.
        return {
            (name, str(value).rpartition(" at ")[2] if name == "initial_samples" else value)
            for name, value in of.settings
            if name not in but_for
        }

    return min(others, key=lambda other: len(settings(other) ^ settings(group)), default=None)


def cut(group: Group, step: int) -> Group:
    """The group without runs that did not reach a step or have no evaluation up to it."""
    return replace(group, runs=tuple(run for run in group.runs if run.steps[0] <= step <= run.reach))
