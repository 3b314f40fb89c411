"""Methods compared on each task at one step, and over tasks: every number of a report, and what to know about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewirl.errors import Refused
from rewirl.experiments.analysis.groups import HARD, Group, counterpart, cut, grouped
from rewirl.experiments.analysis.metrics import LAST, RunMetrics, group_steps_to_reach, mean_of, measure, within_flops
from rewirl.experiments.analysis.number_format import spaced, steps_text
from rewirl.experiments.analysis.statistics import Estimate, iqm, mean_std
from rewirl.experiments.analysis.trained_runs import Floats, Loaded, TrainedRun
from rewirl.experiments.paper import published as paper


@dataclass(frozen=True, eq=False)
class Standing:
    """One method on one task, at the step of the comparison."""

    group: Group
    """Its runs that came to the step of the comparison."""
    metrics: tuple[RunMetrics, ...]
    """Of each of those."""
    reference: Group | None
    """The dense method that it is measured against; itself for a dense one."""
    level: float | None
    """That method's final return."""
    reached: int | None
    """Steps until the mean curve came to that level; None if it never did."""
    dense_within: tuple[int, float] | None
    """How far the dense method came with as many FLOPs, and its return there; None for a dense one."""
    iqm: Estimate
    """Of the final return."""

    @property
    def label(self) -> str:
        return self.group.label

    @property
    def n(self) -> int:
        return len(self.metrics)

    @cached_property
    def returns(self) -> Floats:
        """(runs,) final return of each."""
        return np.array([run.final_return for run in self.metrics])

    @cached_property
    def lcas(self) -> Floats:
        """(runs,) LCA of each."""
        return np.array([run.lca for run in self.metrics])

    @property
    def mean_std(self) -> tuple[float, float | None]:
        return mean_std(self.returns)

    def mean(self, name: str) -> float | None:
        """Of a metric, over the runs that have it."""
        return mean_of(self.metrics, name)

    @property
    def paper(self) -> paper.PaperFigures | None:
        """What the paper has for it."""
        return paper_of(self.group)


def paper_of(group: Group) -> paper.PaperFigures | None:
    """What the paper has for a method on a task: only for its own settings."""
    if group.settings and not (group.hard and len(group.settings) == len(HARD)):
        return None
    return paper.figures(group.method.name, group.task, group.hard)


@dataclass(frozen=True, eq=False)
class TaskComparison:
    """All methods on one task."""

    task: str
    at: int
    """The step of the comparison."""
    groups: tuple[Group, ...]
    """All runs, those too that are not there yet."""
    standings: tuple[Standing, ...]
    """Of the methods with a run that is."""
    untrained: float
    """Mean return before training, over all runs."""

    def __getitem__(self, label: str) -> Standing:
        return next(standing for standing in self.standings if standing.label == label)

    def has(self, label: str) -> bool:
        return any(standing.label == label for standing in self.standings)

    @property
    def unit(self) -> float | None:
        """What a normalised score of 1 is, above the untrained: the first dense method's return; None if it learned
        nothing, or there is none."""
        dense = next((standing for standing in self.standings if standing.group.dense), None)
        if dense is None or dense.mean_std[0] <= self.untrained:
            return None
        return dense.mean_std[0] - self.untrained

    def scores(self, label: str) -> Floats:
        """(runs,) normalised: 0 is the untrained agent, 1 the dense one."""
        assert self.unit
        scores: Floats = (self[label].returns - self.untrained) / self.unit
        return scores


@dataclass(frozen=True, eq=False)
class Comparison:
    """All that a report says in numbers."""

    tasks: tuple[TaskComparison, ...]
    notes: tuple[str, ...]
    seed: int
    """Of every bootstrap."""

    @property
    def labels(self) -> list[str]:
        """All methods, dense ones first."""
        found = {group.label: group for group in self.groups}
        return sorted(found, key=lambda label: not found[label].dense)

    @property
    def runs(self) -> list[TrainedRun]:
        return [run for group in self.groups for run in group.runs]

    @property
    def groups(self) -> list[Group]:
        return [group for task in self.tasks for group in task.groups]


def compare(loaded: Loaded, seed: int = 0, at: int | None = None) -> Comparison:
    """Compares runs: on each task at `at`, or at the last step that all its runs came to."""
    groups, copies = grouped(loaded.runs)
    notes = [*loaded.notes, *copies]
    tasks = []
    for task in dict.fromkeys(group.task for group in groups):
        here = [group for group in groups if group.task == task]
        step = min(run.last for group in here for run in group.runs) if at is None else at
        compared = [kept for group in here if (kept := cut(group, step)).runs]
        notes += _about_runs(task, here)
        if not compared:
            notes.append(f"{task} is left out: no run on it came to step {spaced(step)}.")
            continue
        notes += _about_step(task, here, step, at is not None)
        tasks.append(_task(task, step, here, compared, seed))
    if not tasks:
        raise Refused(f"no run came to step {at}: give a smaller step, or none", "at")
    return Comparison(tuple(tasks), tuple(notes), seed)


def _task(task: str, at: int, groups: Sequence[Group], compared: Sequence[Group], seed: int) -> TaskComparison:
    standings = []
    for group in compared:
        metrics = tuple(measure(run, at) for run in group.runs)
        reference = counterpart(group, compared)
        level = reached = dense_within = None
        if reference is not None:
            level = float(np.mean([measure(run, at).final_return for run in reference.runs]))
            reached = group_steps_to_reach(group, level, at)
            if not group.dense and (flops := mean_of(metrics, "paper_flops")) is not None:
                dense_within = _within(reference, flops)
        final = iqm([np.array([run.final_return for run in metrics])], seed)
        standings.append(Standing(group, metrics, reference, level, reached, dense_within, final))
    first = [run.returns[0] for group in groups for run in group.runs]
    return TaskComparison(task, at, tuple(groups), tuple(standings), float(np.mean(first)))


def _within(dense: Group, flops: float) -> tuple[int, float] | None:
    found = [place for run in dense.runs if (place := within_flops(run, flops)) is not None]
    if not found:
        return None
    return min(step for step, _ in found), float(np.mean([value for _, value in found]))


def _about_step(task: str, groups: Sequence[Group], step: int, asked: bool) -> list[str]:
    notes = []
    runs = [run for group in groups for run in group.runs]
    short = [run for run in runs if run.last < step]
    if short:
        left_out = "is" if len(short) == 1 else "are"
        notes.append(f"On {task}, {_names(short)} did not come to step {spaced(step)} and {left_out} not compared.")
    furthest = max(run.last for run in runs)
    if not asked and furthest > step:
        slowest = [run for run in runs if run.last == step]
        notes.append(
            f"On {task}, methods are compared at {spaced(step)} steps, which all runs reached; {_names(slowest)} "
            f"came no further. At step {furthest} the report compares what did."
        )
    evaluations = min(int((run.steps <= step).sum()) for run in runs if run.last >= step)
    if evaluations < LAST:
        notes.append(
            f"On {task}, R is the mean of all {evaluations} evaluations: up to step {spaced(step)} there are no {LAST}."
        )
    return notes


def _about_runs(task: str, groups: Sequence[Group]) -> list[str]:
    """Missing seeds, runs that are not whole, runs that were evaluated otherwise."""
    notes = []
    seeds = sorted({seed for group in groups for seed in group.seeds})
    for group in groups:
        if missing := [seed for seed in seeds if seed not in group.seeds]:
            shown = ", ".join(map(str, missing))
            several = "seeds" if len(missing) > 1 else "seed"
            notes.append(f"{group.label} on {task} lacks {several} {shown}: n = {len(group.runs)} of {len(seeds)}.")
    runs = [run for group in groups for run in group.runs]
    for run in runs:
        if not run.whole:
            so_far = f"at {steps_text(run.last)} of {steps_text(run.config.steps)} steps"
            notes.append(f"{run.name}, is {so_far} ({run.state}): it counts as far as it came.")
    for name, what in (("eval_every", "every {} steps"), ("eval_episodes", "with {} episodes")):
        values = sorted({getattr(run.config, name) for run in runs})
        if len(values) > 1:
            shown = " and ".join(what.format(spaced(value)) for value in values)
            effect = ": mean curves are drawn at the steps that their runs share" if name == "eval_every" else ""
            notes.append(f"Runs on {task} were evaluated differently, {shown}{effect}.")
    return notes


def _names(runs: Sequence[TrainedRun]) -> str:
    names = [f"{run.config.method} seed {run.config.seed}" for run in runs]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True)
class Ratios:
    """A method against its dense counterpart on one task, or on average (geometric mean) over several."""

    label: str
    reference: str
    tasks: tuple[str, ...]
    n: int
    """Runs of the method."""
    reference_n: int
    final_return: float | None
    lca: float | None
    links: float | None
    paper_flops: float | None
    full_flops: float | None
    seconds: float | None
    memory_mb: float | None
    share_of_steps: float | None
    """Steps until the dense method's final return was reached, as a share of all; None if it was not."""


NUMBERS = ("final_return", "lca", "links", "paper_flops", "full_flops", "seconds", "memory_mb")


def ratios(comparison: Comparison) -> list[Ratios]:
    """Of each sparse method on each task that has its dense counterpart."""
    out = []
    for task in comparison.tasks:
        for standing in task.standings:
            if standing.reference is None or standing.group.dense:
                continue
            dense = task[standing.reference.label]
            values = {name: _ratio(standing.mean(name), dense.mean(name)) for name in NUMBERS}
            share = standing.reached / task.at if standing.reached is not None and task.at else None
            out.append(
                Ratios(standing.label, dense.label, (task.task,), standing.n, dense.n, share_of_steps=share, **values)
            )
    return out


def over_tasks(each: Iterable[Ratios]) -> list[Ratios]:
    """The geometric mean over tasks of each method against each counterpart; None where a task has no ratio."""
    found: dict[tuple[str, str], list[Ratios]] = {}
    for item in each:
        found.setdefault((item.label, item.reference), []).append(item)
    return [_together(items) for items in found.values()]


def _together(items: Sequence[Ratios]) -> Ratios:
    values = {name: _geometric([getattr(item, name) for item in items]) for name in (*NUMBERS, "share_of_steps")}
    return Ratios(
        items[0].label,
        items[0].reference,
        tuple(task for item in items for task in item.tasks),
        sum(item.n for item in items),
        sum(item.reference_n for item in items),
        **values,
    )


def _geometric(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return math.exp(sum(map(math.log, known)) / len(known))


def _ratio(value: float | None, dense: float | None) -> float | None:
    return value / dense if value is not None and dense is not None and value > 0 and dense > 0 else None
