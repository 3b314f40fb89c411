"""Estimates over seeds and tasks, with intervals: scores in, estimates out.

Scores are a sequence of tasks, each an array of shape (runs,): tasks may have different numbers of runs, so a
missing seed does not discard the others. With equal numbers the estimates are those of rliable (Agarwal et al., NeurIPS
2021), whose scores are one array of shape (runs, tasks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scores = Sequence[Floats]
"""Scores of each task, (runs,)."""

REPS = 10_000
"""Resamples of a bootstrap."""
SIZE = 0.95
"""Coverage of an interval."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval; no interval if there is nothing to resample."""

    value: float
    low: float | None
    high: float | None
    n: int
    """Number of runs."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Shares of runs above each score, shape (taus,) all."""

    taus: Floats
    share: Floats
    low: Floats
    high: Floats
    n: int


def mean_std(scores: Floats) -> tuple[float, float | None]:
    """Mean and standard deviation of (runs,), with ddof = 0, NumPy's default; None as the deviation of one run.

    >>> mean_std(np.array([1.0, 3.0])), mean_std(np.array([5.0]))
    ((2.0, 1.0), (5.0, None))
    """
    return float(np.mean(scores)), float(np.std(scores)) if len(scores) > 1 else None


def interquartile_mean(scores: Floats) -> Floats:
    """IQM along the last axis: the mean without the lowest and the highest quarter, (..., runs) to (...).

    >>> interquartile_mean(np.array([0.0, 1.0, 2.0, 30.0]))
    array(1.5)
    """
    count = scores.shape[-1]
    cut = count // 4
    kept = np.sort(scores, axis=-1)[..., cut : count - cut]
    return np.asarray(kept.mean(axis=-1))


def iqm(scores: Scores, seed: int, reps: int = REPS) -> Estimate:
    """IQM over all runs of all tasks, with a stratified bootstrap interval.

    >>> iqm([np.array([1.0, 2.0, 3.0, 4.0])], seed=0).value
    2.5
    """
    low, high = _interval(scores, lambda samples: interquartile_mean(np.concatenate(samples, axis=-1)), seed, reps)
    return Estimate(float(interquartile_mean(np.concatenate(list(scores)))), low, high, _runs(scores))


def probability_of_improvement(x: Scores, y: Scores, seed: int, reps: int = REPS) -> Estimate:
    """Probability that a run of X is better than one of Y on the same task, averaged over tasks; ties count half. X and
    Y have the same tasks, and any number of runs.

    >>> probability_of_improvement([np.array([1.0, 3.0])], [np.array([2.0, 0.0])], seed=0).value
    0.75
    """
    if len(x) != len(y):
        raise ValueError(f"X has {len(x)} tasks and Y {len(y)}: they must be the same tasks")

    def wins(samples: Sequence[Floats]) -> Floats:
        pairs = zip(samples[: len(x)], samples[len(x) :], strict=True)
        return np.asarray(np.mean([_wins(a, b) for a, b in pairs], axis=0))

    low, high = _interval([*x, *y], wins, seed, reps)
    return Estimate(float(wins([*x, *y])), low, high, min(_runs(x), _runs(y)))


def performance_profile(scores: Scores, taus: Floats, seed: int, reps: int = 2000) -> Profile:
    """The share of runs whose score is above each τ, shape (taus,), with pointwise intervals.

    >>> performance_profile([np.array([0.5, 1.5])], np.array([0.0, 1.0, 2.0]), seed=0).share
    array([1. , 0.5, 0. ])
    """

    def share(samples: Sequence[Floats]) -> Floats:
        together = np.concatenate(samples, axis=-1)
        return np.stack([(together > tau).mean(axis=-1) for tau in taus], axis=-1)

    drawn = share(resample(scores, seed, reps))
    low, high = np.quantile(drawn, _ends(), axis=0)
    return Profile(taus, share(list(scores)), low, high, _runs(scores))


def resample(scores: Scores, seed: int, reps: int) -> list[Floats]:
    """Runs drawn with replacement, within each task: (runs,) of each task become (reps, runs)."""
    rng = np.random.default_rng(seed)
    return [task[rng.integers(len(task), size=(reps, len(task)))] for task in scores]


def _interval(
    scores: Scores, statistic: Callable[[Sequence[Floats]], Floats], seed: int, reps: int
) -> tuple[float | None, float | None]:
    """Percentiles of the statistic over resamples; none where every task has one run: it would be a point."""
    if max(map(len, scores)) == 1:
        return None, None
    low, high = np.quantile(statistic(resample(scores, seed, reps)), _ends())
    return float(low), float(high)


def _ends() -> tuple[float, float]:
    return (1 - SIZE) / 2, (1 + SIZE) / 2


def _wins(x: Floats, y: Floats) -> Floats:
    """Shares of pairs that X wins: (..., runs) and (..., runs) to (...)."""
    difference = x[..., :, None] - y[..., None, :]
    return np.asarray(((difference > 0) + 0.5 * (difference == 0)).mean(axis=(-2, -1)))


def _runs(scores: Scores) -> int:
    return sum(map(len, scores))
