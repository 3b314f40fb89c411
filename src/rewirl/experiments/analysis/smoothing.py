"""Means of the last few evaluations, for drawn curves and for reaching a level."""

from __future__ import annotations

import numpy as np

from rewirl.experiments.analysis.trained_runs import Floats

LAST = 10
"""Evaluations that make the final return, and the window in which a curve counts as having reached a level."""


def smoothed(values: Floats, window: int = LAST) -> Floats:
    """At each evaluation, the mean of the last `window` evaluations, or of all so far: shape (evaluations,).

    >>> smoothed(np.array([0.0, 2.0, 4.0]), window=2)
    array([0., 1., 3.])
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def drawn_window(evaluations: int) -> int:
    """Smoothing window of a drawn curve: a tenth of all evaluations, at most that of the final return. So a long curve
    ends at the return of the tables, and a short one keeps its shape.

    >>> drawn_window(201), drawn_window(61), drawn_window(7)
    (10, 6, 1)
    """
    return min(LAST, max(1, evaluations // 10))
