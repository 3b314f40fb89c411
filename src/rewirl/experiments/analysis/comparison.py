"""Comparison of methods on each task: all numbers of a report, with notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewirl.errors import Refused
from rewirl.experiments.analysis.groups import HARD, Group, counterpart, cut, grouped
from rewirl.experiments.analysis.metrics import RunMetrics, group_steps_to_reach, mean_of, measure, within_flops
from rewirl.experiments.analysis.notes import about_machines, about_runs, about_steps
from rewirl.experiments.analysis.smoothing import drawn_window
from rewirl.experiments.analysis.statistics import Estimate, iqm, mean_std
from rewirl.experiments.analysis.trained_runs import Floats, Loaded, TrainedRun
from rewirl.experiments.paper import published as paper


@dataclass(frozen=True, eq=False)
class Standing:
    """One method on one task, measured at one step."""

    at: int
    """The step: its task's, or the last one that it and its dense counterpart both reached."""
    group: Group
    """The runs that reached the step."""
    metrics: tuple[RunMetrics, ...]
    """Of each of those."""
    reference: Group | None
    """The dense counterpart with its runs that reached the step; for a dense method, itself."""
    reference_metrics: tuple[RunMetrics, ...]
    """Of each of those, at the same step."""
    level: float | None
    """Final return of the dense counterpart."""
    reached: int | None
    """Steps until the mean curve reached that return; None if it never did."""
    dense_within: tuple[int, float] | None
    """Step and return of the dense method after as many FLOPs; None for a dense method."""
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
        """Mean of a metric over the runs that have it."""
        return mean_of(self.metrics, name)

    @property
    def paper(self) -> paper.PaperFigures | None:
        """The paper's results for it."""
        return paper_of(self.group)


def paper_of(group: Group) -> paper.PaperFigures | None:
    """The paper's results for a method on a task, if the settings are the paper's."""
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
    """All runs, including those that are not compared."""
    standings: tuple[Standing, ...]
    """All compared methods, including those that did not reach the step."""
    untrained: float
    """Mean return before training, over the runs that reached the step."""

    @property
    def drawn_window(self) -> int:
        """Number of evaluations averaged by a point of its curves."""
        return drawn_window(max(len(run.steps) for group in self.groups for run in group.runs))

    def __getitem__(self, label: str) -> Standing:
        return next(standing for standing in self.standings if standing.label == label)

    def has(self, label: str) -> bool:
        """Whether any method is compared."""
        return any(standing.label == label for standing in self.standings)

    @property
    def abreast(self) -> tuple[Standing, ...]:
        """The methods that reached the step of the comparison, and can therefore be compared with each other."""
        return tuple(standing for standing in self.standings if standing.at == self.at)

    @property
    def unit(self) -> float | None:
        """The return with normalised score 1, minus that of the untrained agent: from the first dense method. None if
        there is none, or if it learned nothing."""
        dense = next((standing for standing in self.abreast if standing.group.dense), None)
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
    """All numbers of a report."""

    tasks: tuple[TaskComparison, ...]
    notes: tuple[str, ...]
    seed: int
    """Random seed of every bootstrap."""
    wall_clock: bool = False
    """Whether the runs were timed alone, so that their wall-clock times can be compared."""

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


def compare(loaded: Loaded, seed: int = 0, at: int | None = None, *, wall_clock: bool = False) -> Comparison:
    """Compares the runs of each task at the step `at`, without those that did not reach it.

    Unless given, each sparse method is compared with its dense counterpart at the last step that both reached, however
    short other runs are; the task's step is the longest of these.
    """
    groups, copies = grouped(loaded.runs)
    notes = [*loaded.notes, *copies, *(about_machines(loaded.runs) if wall_clock else ())]
    by_task = {
        task: [group for group in groups if group.task == task] for task in dict.fromkeys(g.task for g in groups)
    }
    notes += about_runs(by_task)
    tasks = []
    for task, here in by_task.items():
        pairs = _pairs(here if at is None else [kept for group in here if (kept := cut(group, at)).runs])
        if pairs:
            tasks.append(_task(task, here, pairs, seed, at))
    if not tasks:
        raise Refused(f"no run reached step {at}: give a smaller step, or none", "at")
    notes += about_steps(by_task, {task.task: _compared_at(task) for task in tasks}, at)
    return Comparison(tuple(tasks), tuple(notes), seed, wall_clock)


def _pairs(groups: Sequence[Group]) -> list[tuple[Group, Group | None]]:
    """Each group with its dense counterpart: among dense groups, one with which it shares the most steps."""
    pairs = []
    for group in groups:
        dense = [other for other in groups if other.dense and other.method.algorithm == group.method.algorithm]
        shared = max((min(group.reach, other.reach) for other in dense), default=0)
        pairs.append((group, counterpart(group, [other for other in dense if other.reach >= shared])))
    return pairs


def _task(
    task: str, groups: Sequence[Group], pairs: Sequence[tuple[Group, Group | None]], seed: int, at: int | None
) -> TaskComparison:
    steps = [min(group.reach, dense.reach) for group, dense in pairs if dense is not None and not group.dense]
    step = at if at is not None else max(steps or [group.reach for group, _ in pairs])
    found = (_standing(group, dense, step, seed) for group, dense in pairs)
    standings = [standing for standing in found if standing is not None]
    first = [run.returns[0] for standing in standings if standing.at == step for run in standing.group.runs]
    return TaskComparison(task, step, tuple(groups), tuple(standings), float(np.mean(first)))


def _standing(group: Group, dense: Group | None, step: int, seed: int) -> Standing | None:
    """None if no run was evaluated up to the step."""
    at = min(step, group.reach, group.reach if dense is None else dense.reach)
    kept = cut(group, at)
    if not kept.runs:
        return None
    metrics = tuple(measure(run, at) for run in kept.runs)
    reference = None if dense is None else cut(dense, at)
    level = reached = dense_within = None
    reference_metrics: tuple[RunMetrics, ...] = ()
    if reference is not None and reference.runs:
        reference_metrics = tuple(measure(run, at) for run in reference.runs)
        level = float(np.mean([run.final_return for run in reference_metrics]))
        reached = group_steps_to_reach(kept, level, at)
        if not group.dense and (flops := mean_of(metrics, "paper_flops")) is not None:
            dense_within = _within(reference, flops)
    final = iqm([np.array([run.final_return for run in metrics])], seed)
    return Standing(at, kept, metrics, reference, reference_metrics, level, reached, dense_within, final)


def _within(dense: Group, flops: float) -> tuple[int, float] | None:
    found = [place for run in dense.runs if (place := within_flops(run, flops)) is not None]
    if not found:
        return None
    return min(step for step, _ in found), float(np.mean([value for _, value in found]))


def _compared_at(task: TaskComparison) -> dict[str, int]:
    return {standing.label: standing.at for standing in task.standings}
