"""What `rewirl tune` shows while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from rewirl.cli.ui.live.tune_display import LiveTuning, TuneDisplay, tuned
from rewirl.experiments.sweep.workers import Processes
from rewirl.experiments.tune.search_space import Space
from rewirl.experiments.tune.tuning import Tuning

pytest.importorskip("optuna")

SPACE = Space(((1.0, 1.0), (2.0, 2.0)), (0.1, 0.1), (500,))


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    """Four trials: one running, two done, one failed."""
    base = {"method": "ds-td3", "task": "Pendulum-v1", "steps": 1000}
    made = Tuning(base, SPACE, tmp_path, Processes(1), trials=6)
    for state, value, step in (("done", 5.0, 1000), ("failed", 7.0, 300), ("done", 6.0, 1000), ("running", None, 250)):
        trial = made._next()
        assert trial is not None
        trial.state, trial.value, trial.step = state, value, step
    return made


def test_the_live_table_ranks_the_trials(tuning: Tuning) -> None:
    console = Console(width=100, height=40, record=True, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(LiveTuning(console).panel(tuning))
    text = console.export_text()
    assert "tuning ds-td3 on Pendulum-v1" in text
    assert "3 of 6 trials best R 6.0" in text
    rows = [line.strip("│ ").split() for line in text.splitlines() if line.strip("│ ")[:1].isdecimal()]
    assert [row for row in rows if "of" not in row] == [
        ["3", "1", "2", "0.1", "500", "25%", "–", "running"],
        ["2", "1", "2", "0.1", "500", "100%", "6.0", "done"],
        ["0", "1", "2", "0.1", "500", "100%", "5.0", "done"],
        ["1", "1", "2", "0.1", "500", "30%", "7.0", "failed"],
    ]
    assert tuned(tuning, room=2).row_count == 2


def test_plain_lines(tuning: Tuning, capsys: pytest.CaptureFixture[str]) -> None:
    display = TuneDisplay(Console(width=200))
    tuning.trials[1].message = "the disk is full"
    for trial in tuning.trials[:2]:
        display.on_change(tuning, trial)
    assert capsys.readouterr().out.splitlines() == [
        "trial 0 done  λ¹ 1  λ² 2  η 0.1  e 500  R 5.0",
        "trial 1 failed  λ¹ 1  λ² 2  η 0.1  e 500  R 7.0: the disk is full",
    ]
