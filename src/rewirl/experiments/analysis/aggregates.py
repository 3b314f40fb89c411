"""Over tasks: normalised scores, their IQM, probabilities of improvement and performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewirl.experiments.analysis.comparison import Comparison, TaskComparison
from rewirl.experiments.analysis.groups import static_counterpart
from rewirl.experiments.analysis.statistics import (
    Estimate,
    Profile,
    iqm,
    performance_profile,
    probability_of_improvement,
)

TAUS = 61
"""Scores at which a profile is computed."""


@dataclass(frozen=True)
class Improvement:
    """How probably one method beats another."""

    label: str
    other: str
    tasks: tuple[str, ...]
    probability: Estimate


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Methods over the tasks that they share."""

    tasks: tuple[str, ...]
    iqm: dict[str, Estimate]
    """Of normalised scores, by method."""
    profiles: dict[str, Profile]
    improvements: tuple[Improvement, ...]
    notes: tuple[str, ...]


def aggregate(comparison: Comparison) -> Aggregates:
    """Methods that have runs on every task whose scores can be normalised; the others are named in the notes."""
    notes = []
    tasks = []
    for task in comparison.tasks:
        if task.unit is None:
            notes.append(f"{task.task} has no normalised scores: they need a dense method that learned something.")
        else:
            tasks.append(task)
    labels = [label for label in comparison.labels if tasks and all(task.has(label) for task in tasks)]
    for label in comparison.labels:
        if tasks and label not in labels:
            lacking = ", ".join(task.task for task in tasks if not task.has(label))
            notes.append(f"{label} is not in what is computed over tasks: it has no run to compare on {lacking}.")
    scores = {label: [task.scores(label) for task in tasks] for label in labels}
    for label, per_task in scores.items():
        if len(set(map(len, per_task))) > 1:
            shown = ", ".join(f"{len(runs)} on {task.task}" for runs, task in zip(per_task, tasks, strict=True))
            notes.append(f"{label} has different numbers of runs ({shown}): tasks with more of them weigh more.")
    taus = np.linspace(0, max([1.2, *(float(task.max()) for per in scores.values() for task in per)]), TAUS)
    seed = comparison.seed
    return Aggregates(
        tasks=tuple(task.task for task in tasks),
        iqm={label: iqm(per_task, seed) for label, per_task in scores.items()},
        profiles={label: performance_profile(per_task, taus, seed) for label, per_task in scores.items()},
        improvements=tuple(_improvements(comparison.tasks, comparison.labels, seed)),
        notes=tuple(notes),
    )


def _improvements(tasks: Sequence[TaskComparison], labels: Sequence[str], seed: int) -> list[Improvement]:
    """Each sparse method against its dense counterpart, each that rewires also against the static one."""
    pairs: dict[tuple[str, str], list[TaskComparison]] = {}
    for task in tasks:
        for standing in task.standings:
            others = [standing.reference] if not standing.group.dense else []
            if standing.group.method.rule.name not in ("dense", "static"):
                others += [static_counterpart(standing.group, [other.group for other in task.standings])]
            for other in others:
                if other is not None:
                    pairs.setdefault((standing.label, other.label), []).append(task)
    order = {label: number for number, label in enumerate(labels)}
    return [
        Improvement(
            label,
            other,
            tuple(task.task for task in shared),
            probability_of_improvement(
                [task[label].returns for task in shared], [task[other].returns for task in shared], seed
            ),
        )
        for (label, other), shared in sorted(pairs.items(), key=lambda pair: (order[pair[0][0]], order[pair[0][1]]))
    ]
