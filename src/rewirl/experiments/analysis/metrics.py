"""The paper's metrics, each a function of evaluations.

Returns and steps are arrays of shape (evaluations,), in the order of the steps; evaluation 0 is of the untrained agent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewirl.experiments.analysis.groups import Group
from rewirl.experiments.analysis.smoothing import LAST, smoothed
from rewirl.experiments.analysis.trained_runs import Floats, Ints, TrainedRun

LCA_UNIT = 5000
"""The paper's tables print the LCA divided by this."""


@dataclass(frozen=True)
class RunMetrics:
    """Metrics of one run up to a step. NaN was not logged."""

    final_return: float
    """R: mean of the last ten evaluations."""
    lca: float
    """Mean of all evaluations, not yet divided by 5 000."""
    links: float
    """#params."""
    paper_flops: float
    full_flops: float
    seconds: float
    """Wall-clock."""
    memory_mb: float
    """Maximum over evaluations."""


def final_return(returns: Floats, last: int = LAST) -> float:
    """R: mean of the last ten evaluations; of all if there are fewer.

    >>> final_return(np.arange(20.0))
    14.5
    """
    return float(np.mean(returns[-last:]))


def lca(returns: Floats) -> float:
    """Area under the learning curve: the mean of all evaluations, including the one before training.

    >>> lca(np.array([0.0, 1.0, 5.0]))
    2.0
    """
    return float(np.mean(returns))


def steps_to_reach(steps: Ints, returns: Floats, level: float, window: int = LAST) -> int | None:
    """The first step at which the smoothed returns reach `level`; None if they never do.

    The level is a final return, a mean of ten evaluations. So it is compared with means of ten, and cannot be reached
    before the tenth evaluation.

    >>> steps_to_reach(np.array([0, 5, 10]), np.array([0.0, 2.0, 4.0]), level=2.5, window=2)
    10
    """
    # Rounding in a running sum must not keep a curve from the level that it defines itself.
    first = min(window, len(returns)) - 1
    reached = np.flatnonzero(smoothed(returns, window)[first:] >= level - 1e-9 * max(abs(level), 1.0))
    return int(steps[first + reached[0]]) if len(reached) else None


def measure(run: TrainedRun, until: int) -> RunMetrics:
    """All metrics of a run, as if it had ended at a step."""
    columns = run.until(until)
    memory = columns["memory_mb"]
    return RunMetrics(
        final_return=final_return(columns["return_mean"]),
        lca=lca(columns["return_mean"]),
        memory_mb=float(np.nanmax(memory)) if np.isfinite(memory).any() else math.nan,
        **{name: float(columns[name][-1]) for name in ("links", "paper_flops", "full_flops", "seconds")},
    )


def within_flops(run: TrainedRun, flops: float) -> tuple[int, float] | None:
    """The last step at which a run had used at most this many FLOPs (the paper's count), and its R there; None if they
    were not logged."""
    affordable = np.flatnonzero(run.columns["paper_flops"] <= flops)
    if not len(affordable):
        return None
    last = int(affordable[-1])
    return int(run.steps[last]), final_return(run.returns[: last + 1])


def group_steps_to_reach(group: Group, level: float, until: int) -> int | None:
    """Of the mean curve over seeds."""
    curve = group.curve()
    kept = curve.steps <= until
    return steps_to_reach(curve.steps[kept], curve.mean[kept], level)


def mean_of(runs: Sequence[RunMetrics], name: str) -> float | None:
    """Mean over the runs that logged it; None if none did.

    >>> mean_of([RunMetrics(1, 1, 10, 1, 1, 1, float("nan"))], "memory_mb") is None
    True
    """
    values = [value for run in runs if math.isfinite(value := getattr(run, name))]
    return sum(values) / len(values) if values else None
