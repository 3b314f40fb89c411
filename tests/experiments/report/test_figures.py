"""Figures for print: curves are smoothed, and a name stands where its line ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic import write_run

from rewirl.experiments.analysis.comparison import TaskComparison, compare
from rewirl.experiments.analysis.metrics import final_return
from rewirl.experiments.analysis.trained_runs import DIAGNOSED, load
from rewirl.experiments.report.end_labels import moved_apart
from rewirl.experiments.report.figures import _curves, _diagnostics, diagnosed_columns
from rewirl.experiments.report.style import inks_for

STEPS = 500_000
NOISY = 1000 * (np.arange(101) % 2) + np.arange(101.0)


@pytest.fixture
def task(tmp_path: Path) -> TaskComparison:
    """Two methods that differ by far, one of which stopped at a fifth of the other."""
    write_run(tmp_path / "a", NOISY, method="td3", steps=STEPS)
    write_run(tmp_path / "b", NOISY[:21] + 5000, method="static-td3", steps=STEPS, upto=100_000)
    (found,) = compare(load([tmp_path])).tasks
    return found


def test_names_stand_where_lines_end(task: TaskComparison) -> None:
    (axis,) = _curves([task], inks_for(["td3", "static-td3"])).axes
    ends = {line.get_xdata()[-1]: line.get_ydata()[-1] for line in axis.lines}
    names = {text.get_text(): text.xy for text in axis.texts}
    assert set(names) == {"td3 (n=1)", "static-td3 (n=1)"}
    assert [names["td3 (n=1)"][0], names["static-td3 (n=1)"][0]] == [STEPS, 100_000] == sorted(ends, reverse=True)
    for x, y in names.values():
        assert y == pytest.approx(ends[x])


def test_curves_are_smoothed_and_end_at_the_final_return(task: TaskComparison) -> None:
    axis = _curves([task], inks_for(["td3", "static-td3"])).axes[0]
    drawn = axis.lines[0].get_ydata()
    assert drawn[-1] == pytest.approx(final_return(NOISY))
    assert np.abs(np.diff(drawn[10:])).max() < 200 < np.abs(np.diff(NOISY)).max()


def test_diagnostics_are_drawn_of_the_runs_that_have_them(tmp_path: Path) -> None:
    write_run(tmp_path / "a", NOISY, method="td3", steps=STEPS, diagnostics=True)
    write_run(tmp_path / "b", NOISY, method="static-td3", steps=STEPS)
    (task,) = compare(load([tmp_path])).tasks
    columns = diagnosed_columns(task)
    assert columns == DIAGNOSED
    figure = _diagnostics(task, inks_for(["td3", "static-td3"]), columns)
    drawn = {axis.get_title(loc="left") or axis.get_title(): axis.lines for axis in figure.axes[:5]}
    dormant, _ = drawn["dormant neurons, policy"]
    assert dormant.get_ydata()[[1, 3, 50]] == pytest.approx([0.1, 0.3, 1])
    assert np.isnan(dormant.get_ydata()[0]), "there was no transition yet"
    assert drawn["critic bias"][0].get_ydata()[-1] == STEPS + 100
    assert np.isnan(drawn["critic bias"][1].get_ydata()).all()
    write_run(tmp_path / "old" / "c", NOISY, method="td3", steps=STEPS)
    assert diagnosed_columns(compare(load([tmp_path / "old"])).tasks[0]) == {}


def test_names_that_would_meet_are_moved_apart() -> None:
    moved = moved_apart([3.0, 1.0, 1.1, 9.9, 9.95, 9.97], 0.5, 10.0)
    assert (np.diff(np.sort(moved)) > 0.499).all()
    assert max(moved) == 10
    assert moved[:2] == [3.0, 1.0]
