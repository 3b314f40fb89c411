"""What is shown while an agent learns, and the numbers as people read them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rewirl.cli.ui.live.run_display import LiveDisplay, PlainDisplay, display
from rewirl.cli.ui.tables import count, size, sparkline
from rewirl.storage import start
from rewirl.training import RunConfig
from rewirl.training.observers.pace import Pace, duration

TINY = {
    "hidden": (16, 16),
    "random_steps": 100,
    "eval_every": 100,
    "eval_episodes": 1,
    "steps": 300,
    "replay_size": 1000,
}


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)


@pytest.mark.parametrize(("terminal", "kind"), [(True, LiveDisplay), (False, PlainDisplay)])
def test_terminal_gets_a_panel_and_a_pipe_gets_lines(terminal, kind):
    out = console(terminal)
    shown = display(out)
    assert isinstance(shown, kind)
    config = RunConfig.resolve(method="ds-td3", task="Pendulum-v1", seed=1, **TINY)
    with start(config, observers=[shown]) as run:
        run.train()
        returns = [f"{row.return_mean:,.1f}" for row in run.evaluations]
    text = out.file.getvalue()
    for told in ("ds-td3 on Pendulum-v1, seed 1", "50.0% sparse", "steps/s", "ETA", *returns):
        assert told in text
    assert ("\x1b[" in text) == terminal


def test_the_panel_says_which_phase_it_is_in():
    shown = LiveDisplay(console(terminal=True))
    config = RunConfig.resolve(method="td3", task="Pendulum-v1", **{**TINY, "eval_every": 0})
    with start(config) as run:
        for until, phase in ((60, "trying random actions, 40 more"), (200, "learning"), (300, "done")):
            run.train(until)
            out = console(terminal=False)
            out.print(shown.panel(run))
            assert phase in out.file.getvalue()


def testpace_forgets_the_random_steps():
    pace = Pace(window=10.0)
    assert pace.to_go(100) == "–"
    pace.see(0, 1000, now=0.0)
    pace.see(1000, 1000, now=0.1)
    assert pace.rate == pytest.approx(10_000)
    assert pace.to_go(100) == "–"
    for second in range(1, 40):
        pace.see(1000 + 50 * second, 1000, now=float(second))
    assert pace.rate == pytest.approx(50)
    assert pace.to_go(3000) == "1:00"


@pytest.mark.parametrize(
    ("values", "width", "line"),
    [
        ([], 5, ""),
        ([3.0], 5, "▁"),
        ([0.0, 7.0], 5, "▁█"),
        ([2.0, 2.0], 5, "▁▁"),
        ([float(i) for i in range(100)], 2, "▁█"),
    ],
)
def test_sparkline(values, width, line):
    assert sparkline(values, width) == line


def test_numbers_for_people():
    assert [size(n) for n in (12, 1500, 168e6, 2e9)] == ["12 bytes", "1.5 kB", "168 MB", "2 GB"]
    assert [count(n, "run") for n in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]
    assert [duration(s) for s in (0.4, 59.6, 3600, 90_061)] == ["0:00", "1:00", "1:00:00", "1 d 1:01:01"]
