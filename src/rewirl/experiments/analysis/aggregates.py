"""Aggregates over tasks: normalised scores, IQM, probabilities of improvement and performance profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewirl.experiments.analysis.comparison import Comparison, Standing, TaskComparison
from rewirl.experiments.analysis.groups import static_counterpart
from rewirl.experiments.analysis.number_format import spaced
from rewirl.experiments.analysis.statistics import (
    Estimate,
    Profile,
    iqm,
    performance_profile,
    probability_of_improvement,
)
from rewirl.experiments.analysis.trained_runs import Floats

TAUS = 61
"""Scores at which a profile is computed."""


@dataclass(frozen=True)
class Improvement:
    """The probability that one method beats another."""

    label: str
    other: str
    tasks: tuple[str, ...]
    probability: Estimate


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Methods over the tasks that they share."""

    tasks: tuple[str, ...]
    iqm: dict[str, Estimate]
    """Performance profiles of normalised scores, by method."""
    profiles: dict[str, Profile]
    improvements: tuple[Improvement, ...]
    notes: tuple[str, ...]


def aggregate(comparison: Comparison) -> Aggregates:
    """Methods that have runs on every task whose scores can be normalised; the others are listed in the notes."""
    notes = []
    latest = max(task.at for task in comparison.tasks)
    tasks = []
    for task in comparison.tasks:
        if task.at < latest:
            notes.append(
                f"{task.task} is not in what is computed over tasks: it is compared at step {spaced(task.at)}, others "
                f"at {spaced(latest)}. All can be compared at step {task.at}."
            )
        elif task.unit is None:
            notes.append(f"{task.task} has no normalised scores: they need a dense method that improved by training.")
        else:
            tasks.append(task)
    abreast = [{standing.label for standing in task.abreast} for task in tasks]
    labels = [label for label in comparison.labels if tasks and all(label in there for there in abreast)]
    for label in comparison.labels:
        if tasks and label not in labels:
            lacking = ", ".join(task.task for task, there in zip(tasks, abreast, strict=True) if label not in there)
            notes.append(f"{label} is left out of results over tasks: it has no run to compare on {lacking}.")
    scores = {label: [task.scores(label) for task in tasks] for label in labels}
    uneven: dict[str, list[str]] = {}
    for label, per_task in scores.items():
        if len(set(map(len, per_task))) > 1:
            shown = ", ".join(f"{len(runs)} on {task.task}" for runs, task in zip(per_task, tasks, strict=True))
            uneven.setdefault(shown, []).append(label)
    notes += [f"Tasks with more runs weigh more: {shown} for {', '.join(labels)}." for shown, labels in uneven.items()]
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
    """Compares each sparse method with its dense counterpart, and each rewired one also with the static one."""
    found: dict[tuple[str, str], list[tuple[int, str, Floats, Floats]]] = {}
    for task in tasks:
        for standing in task.standings:
            for other, returns in _others(standing, task):
                here = (standing.at, task.task, standing.returns, returns)
                found.setdefault((standing.label, other), []).append(here)
    order = {label: number for number, label in enumerate(labels)}
    out = []
    for (label, other), shared in sorted(found.items(), key=lambda pair: (order[pair[0][0]], order[pair[0][1]])):
        latest = max(at for at, *_ in shared)
        names, mine, its = zip(*(rest for at, *rest in shared if at == latest), strict=True)
        out.append(Improvement(label, other, names, probability_of_improvement(mine, its, seed)))
    return out


def _others(standing: Standing, task: TaskComparison) -> Iterator[tuple[str, Floats]]:
    """The counterpart of a method, with its returns at the same step."""
    if standing.reference_metrics and standing.reference and not standing.group.dense:
        yield standing.reference.label, np.array([run.final_return for run in standing.reference_metrics])
    if standing.group.method.rule.name not in ("dense", "static"):
        peers = [other for other in task.standings if other.at == standing.at]
        static = static_counterpart(standing.group, [other.group for other in peers])
        if static is not None:
            yield static.label, task[static.label].returns
