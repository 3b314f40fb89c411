"""Estimates against rliable: points exactly, intervals as far as the chance of resampling allows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from rliable import library, metrics

from rewirl.experiments import statistics
from rewirl.experiments.analysis.statistics import (
    iqm,
    mean_std,
    performance_profile,
    probability_of_improvement,
    resample,
)

REPS = 4000
CLOSE = 0.1
"""How far ends of intervals of such resamples may be apart, in widths of the interval: about three standard errors."""


@pytest.fixture(params=[(5, 3), (4, 1), (9, 5), (10, 2)], ids=str)
def scores(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Of two methods, (runs, tasks), with some equal scores."""
    runs, tasks = request.param
    rng = np.random.default_rng(runs)
    x, y = rng.normal(1.0, 0.3, size=(runs, tasks)).round(1), rng.normal(0.8, 0.4, size=(runs + 1, tasks)).round(1)
    return x, y


@pytest.fixture(autouse=True)
def _seeded() -> None:
    np.random.seed(5)  # rliable's independent bootstrap draws from NumPy's global generator


def columns(scores: np.ndarray) -> list[np.ndarray]:
    return list(scores.T)


def assert_close_interval(low: float | None, high: float | None, theirs: np.ndarray) -> None:
    their_low, their_high = theirs.ravel()
    assert low is not None
    assert high is not None
    assert abs(low - their_low) <= CLOSE * (their_high - their_low)
    assert abs(high - their_high) <= CLOSE * (their_high - their_low)


def test_iqm(scores: tuple[np.ndarray, np.ndarray]) -> None:
    x, _ = scores
    ours = iqm(columns(x), seed=1, reps=REPS)
    points, intervals = library.get_interval_estimates(
        {"x": x}, lambda s: np.array([metrics.aggregate_iqm(s)]), reps=REPS, random_state=np.random.RandomState(3)
    )
    assert ours.value == pytest.approx(points["x"][0], rel=1e-12)
    assert_close_interval(ours.low, ours.high, intervals["x"])
    assert ours.n == x.size


@pytest.mark.parametrize("scores", [(5, 3), (4, 1)], ids=str, indirect=True)  # rliable takes minutes for the others
def test_probability_of_improvement(scores: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = scores
    ours = probability_of_improvement(columns(x), columns(y), seed=1, reps=REPS)
    points, intervals = library.get_interval_estimates(
        {"x": [x, y]}, lambda a, b: np.array([metrics.probability_of_improvement(a, b)]), reps=REPS
    )
    assert ours.value == pytest.approx(points["x"][0], rel=1e-12)
    assert_close_interval(ours.low, ours.high, intervals["x"])
    assert ours.n == min(x.size, y.size)


def test_performance_profile(scores: tuple[np.ndarray, np.ndarray]) -> None:
    x, _ = scores
    taus = np.linspace(0, 2, 9)
    ours = performance_profile(columns(x), taus, seed=1)
    points, intervals = library.create_performance_profile({"x": x}, taus)
    assert ours.share == pytest.approx(points["x"], rel=1e-12)
    assert ours.low == pytest.approx(intervals["x"][0], abs=1.01 / x.size)  # a step of the staircase
    assert ours.high == pytest.approx(intervals["x"][1], abs=1.01 / x.size)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 50])
def test_the_interquartile_mean_is_a_mean_trimmed_by_a_quarter(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    assert statistics.interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25))


def test_tasks_may_have_different_numbers_of_runs() -> None:
    ragged = [np.array([1.0, 2.0, 3.0]), np.array([10.0])]
    assert iqm(ragged, seed=0).value == 2.5
    assert iqm(ragged, seed=0).n == 4
    drawn = resample(ragged, seed=0, reps=50)
    assert [task.shape for task in drawn] == [(50, 3), (50, 1)]
    assert (drawn[1] == 10).all(), "runs are drawn within their own task"


def test_one_seed_has_a_value_and_no_interval() -> None:
    alone = iqm([np.array([3.0]), np.array([5.0])], seed=0)
    assert (alone.value, alone.low, alone.high) == (4.0, None, None)
    assert mean_std(np.array([3.0])) == (3.0, None)
    assert mean_std(np.array([1.0, 2.0, 6.0])) == (3.0, pytest.approx(np.std([1, 2, 6], ddof=0)))


def test_the_seed_decides() -> None:
    scores = [np.random.default_rng(0).normal(size=60)]
    assert iqm(scores, seed=3) == iqm(scores, seed=3)
    assert iqm(scores, seed=3).low != iqm(scores, seed=4).low


def test_other_tasks_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="the same tasks"):
        probability_of_improvement([np.ones(2)], [np.ones(2), np.ones(2)], seed=0)
