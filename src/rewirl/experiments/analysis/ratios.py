"""Ratios of each sparse method to its dense counterpart, on each task and over tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewirl.experiments.analysis.comparison import Comparison
from rewirl.experiments.analysis.metrics import mean_of


@dataclass(frozen=True)
class Ratios:
    """A method against its dense counterpart on one task, or on average (geometric mean) over several."""

    label: str
    reference: str
    tasks: tuple[str, ...]
    at: int
    """The step, the same on all of the tasks."""
    n: int
    """Runs of the method."""
    reference_n: int
    returns: tuple[tuple[float, float], ...]
    """On each task, of the method and of its counterpart."""
    reached: int
    """Number of tasks on which the final return of the counterpart was reached."""
    final_return: float | None
    """Ratio of returns; None unless all are positive."""
    lca: float | None
    links: float | None
    paper_flops: float | None
    full_flops: float | None
    seconds: float | None
    """None unless the runs were timed alone."""
    memory_mb: float | None
    share_of_steps: float | None
    """Steps until the counterpart's final return was reached, as a share of all; None unless it was, on all tasks."""


NUMBERS = ("final_return", "lca", "links", "paper_flops", "full_flops", "seconds", "memory_mb")


def ratios(comparison: Comparison) -> list[Ratios]:
    """Ratios of each sparse method on each task with its dense counterpart, at the last step that both reached."""
    out = []
    for task in comparison.tasks:
        for standing in task.standings:
            if standing.reference is None or standing.group.dense:
                continue
            dense = standing.reference_metrics
            values = {name: _ratio(standing.mean(name), mean_of(dense, name)) for name in NUMBERS}
            if not comparison.wall_clock:
                values["seconds"] = None
            out.append(
                Ratios(
                    standing.label,
                    standing.reference.label,
                    (task.task,),
                    standing.at,
                    standing.n,
                    len(dense),
                    ((standing.mean_std[0], standing.level or 0.0),),
                    int(standing.reached is not None),
                    share_of_steps=standing.reached / standing.at
                    if standing.reached is not None and standing.at
                    else None,
                    **values,
                )
            )
    return out


def over_tasks(each: Iterable[Ratios]) -> list[Ratios]:
    """The geometric mean over tasks of each method against each counterpart; None where a task has no ratio. Of tasks
    that were compared at different steps, only those of the latest step count."""
    found: dict[tuple[str, str], list[Ratios]] = {}
    for item in each:
        found.setdefault((item.label, item.reference), []).append(item)
    latest = [max(item.at for item in items) for items in found.values()]
    return [
        _together([item for item in items if item.at == at]) for items, at in zip(found.values(), latest, strict=True)
    ]


def headline(each: Iterable[Ratios]) -> Ratios | None:
    """The main finding: of a dynamic sparse method if possible; among those compared at the latest step, the one on the
    most tasks. Shorter runs do not change it."""
    together = over_tasks(each)
    return max(together, key=lambda item: (item.label.startswith("ds-"), item.at, len(item.tasks)), default=None)


def _together(items: Sequence[Ratios]) -> Ratios:
    values = {name: _geometric([getattr(item, name) for item in items]) for name in (*NUMBERS, "share_of_steps")}
    return Ratios(
        items[0].label,
        items[0].reference,
        tuple(task for item in items for task in item.tasks),
        items[0].at,
        sum(item.n for item in items),
        sum(item.reference_n for item in items),
        tuple(pair for item in items for pair in item.returns),
        sum(item.reached for item in items),
        **values,
    )


def _geometric(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return math.exp(sum(map(math.log, known)) / len(known))


def _ratio(value: float | None, dense: float | None) -> float | None:
    return value / dense if value is not None and dense is not None and value > 0 and dense > 0 else None
