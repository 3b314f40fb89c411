"""Metrics of curves whose values are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from synthetic import write_run

from rewirl.experiments.analysis.groups import grouped
from rewirl.experiments.analysis.metrics import (
    final_return,
    group_steps_to_reach,
    lca,
    measure,
    smoothed,
    steps_to_reach,
)
from rewirl.experiments.analysis.trained_runs import load, load_run
from rewirl.experiments.paper import published as paper


def test_the_final_return_is_of_the_last_ten() -> None:
    returns = np.array([1000.0] * 5 + list(range(10)))
    assert final_return(returns) == 4.5
    assert final_return(returns[:3]) == 1000, "of all where there are fewer"


def test_lca_is_the_mean_of_all_with_the_first() -> None:
    assert lca(np.array([0.0, 0.0, 30.0])) == 10


def test_a_smoothed_curve_ends_at_the_final_return() -> None:
    returns = np.random.default_rng(0).normal(size=37)
    assert smoothed(returns)[-1] == pytest.approx(final_return(returns))
    assert smoothed(returns)[3] == pytest.approx(returns[:4].mean())


def test_one_lucky_evaluation_does_not_reach_a_level() -> None:
    steps = np.arange(0, 200, 5)
    spike = np.zeros(40)
    spike[8] = 500
    assert steps_to_reach(steps, spike, level=100) is None
    lasting = np.where(steps >= 100, 120.0, 0.0)
    # At step 145 ten evaluations are at 120; nine of ten are 108.
    assert steps_to_reach(steps, lasting, level=120) == 145
    assert steps_to_reach(steps, lasting, level=108) == 140


def test_a_dense_method_reaches_its_own_return(tmp_path: Path) -> None:
    rising = np.linspace(0, 1000, 41)
    for seed in (1, 2, 3):
        write_run(tmp_path / f"td3-{seed}", rising * (1 + 0.1 * seed), method="td3", seed=seed, steps=200_000)
    ((group,), _) = grouped(load([tmp_path]).runs)
    level = float(np.mean([measure(run, 200_000).final_return for run in group.runs]))
    assert group_steps_to_reach(group, level, 200_000) == 200_000
    assert group_steps_to_reach(group, level + 1, 200_000) is None
    assert group_steps_to_reach(group, level / 2, 200_000) < 150_000


def test_a_run_is_measured_as_if_it_had_ended_at_a_step(tmp_path: Path) -> None:
    run = load_run(
        write_run(tmp_path / "run", np.arange(41.0), method="td3", steps=200_000, random_steps=25_000, speed=100.0)
    )
    whole, half = measure(run, 200_000), measure(run, 100_000)
    assert whole.final_return == np.arange(31, 41).mean()
    assert half.final_return == np.arange(11, 21).mean()
    assert (whole.lca, half.lca) == (20, 10)
    assert whole.links == 214_784
    assert half.seconds == 750
    # T · N · 3 · 2 · (|θ1| + |θ2| + |φ|/2), for the updates after the random phase.
    assert half.paper_flops == 75_000 * 100 * 6 * (2 * (23 * 256 + 256**2 + 256) + (17 * 256 + 256**2 + 6 * 256) / 2)
    assert half.full_flops > half.paper_flops
    assert half.memory_mb == pytest.approx(61.4784)


def test_what_was_not_logged_is_not_a_number(tmp_path: Path) -> None:
    run = load_run(
        write_run(tmp_path / "run", np.arange(41.0), steps=200_000, columns=["step", "return_mean", "links"])
    )
    found = measure(run, 200_000)
    assert found.links == 214_784
    assert math.isnan(found.memory_mb)
    assert math.isnan(found.seconds)


@pytest.mark.parametrize(
    ("method", "task", "hard", "final", "std", "area"),
    [
        ("td3", "HalfCheetah-v5", False, 11153.48, 473.29, 1.7686),
        ("static-td3", "Hopper-v5", False, 3570.88, 43.71, 0.4984),
        ("ds-td3", "Humanoid-v3", False, 5238.16, 121.71, 0.6089),
        ("sac", "Ant-v5", False, 5848.64, 385.85, 0.7969),
        ("sac", "Walker2d-v5", True, 3858.20, 689.913, 0.5368),
        ("ds-sac", "Humanoid-v5", True, 5584.64, 109.40, 0.6777),
    ],
)
def test_the_papers_figures(method: str, task: str, hard: bool, final: float, std: float, area: float) -> None:
    assert paper.figures(method, task, hard) == paper.PaperFigures(final, std, area)


def test_the_paper_has_no_figure_for_what_it_did_not_do() -> None:
    assert paper.figures("ds-sac", "Ant-v5", hard=False) is None
    assert paper.figures("td3", "Pendulum-v1") is None
    assert paper.figures("rigl-td3", "Ant-v5") is None
