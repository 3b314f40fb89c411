"""`rewirl sweep` as a person meets it: what it lists, plans, refuses and shows while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from rewirl.cli import main
from rewirl.cli.ui import sweep_plan
from rewirl.cli.ui.live.sweep_display import LiveSweep, SweepDisplay, outcome, reasons
from rewirl.experiments import Plan, Sweep, load_grid, parse_grid, plan
from rewirl.experiments.sweep.calibration import Calibration, calibrate, kind_of
from rewirl.experiments.sweep.progress import Progress
from rewirl.experiments.sweep.workers import Processes
from rewirl.training.config import RunConfig

GRID = """
tasks = ["Pendulum-v1"]
methods = ["td3", "ds-td3"]
seeds = [1, 2]
steps = 2000
random_steps = 400
hidden = [16, 16]
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_lists_the_presets(capsys):
    for words in (["sweep"], ["sweep", "--list"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        for name in ("td3", "sac", "schedule", "sparsity", "initial-samples", "costs"):
            assert f"paper/{name} " in out
        assert " 100 " in out


def test_costs_are_the_papers(capsys, tmp_path):
    assert main(["sweep", "paper/costs", "--tasks", "HalfCheetah-v5"]) == 0
    out = capsys.readouterr().out
    dense, sparse = (next(line for line in out.splitlines() if f" {method} " in line) for method in ("td3", "ds-td3"))
    assert dense.split()[3:7] == ["214,784", "214,784", "0.0%", "1.0744e+14"]
    assert sparse.split()[2:9] == ["7", "64", "106,169", "214,784", "50.6%", "5.2837e+13", "0.4918"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("sweep paper/td4", "there is no preset 'paper/td4', did you mean paper/td3?"),
        ("sweep none.toml", "cannot read the grid none.toml"),
        ("sweep paper/td3 --tasks HalfCheeta-v5", "did you mean HalfCheetah-v5?"),
        ("sweep paper/td3 --methods ds-sac", "paper/td3 has no method 'ds-sac'"),
        ("sweep paper/td3 --seeds x", "must be a whole number"),
        ("sweep paper/td3 --seeds -1", "seed must be from 0"),
        ("sweep paper/td3 --steps 0", "--steps must be at least 1, not 0"),
        ("sweep paper/td3 --jobs 0", "--jobs must be at least 1, not 0"),
        ("sweep paper/td3 --address here", "--address is for Ray: add --on ray"),
        ("sweep paper/td3 --on slurm", "--on"),
        ("sweep paper/td3 --on ray --retries -1", "--retries must not be negative"),
        ("sweep paper/td3 --dry", "there is no flag --dry, did you mean"),
    ],
)
def test_refused_in_one_sentence(words, says, capsys, tmp_path):
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("[1, 2]", "[]"), "g.toml is an empty grid: its seeds are an empty list"),
        (("Pendulum-v1", "Pendulun-v1"), "there is no task 'Pendulun-v1', did you mean Pendulum-v1?"),
        (("[16, 16]", "[16, 16]\nsparsity = 0.5"), "td3 is dense"),
        (('"td3", "ds-td3"]', '"ds-td3"]\nsparsity = 0.99'), "the largest sparsity possible"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_before_any_run(change, says, capsys, tmp_path):
    Path("g.toml").write_text(GRID.replace(*change))
    assert main(["sweep", "g.toml"]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["g.toml"]


def test_dry_run_shows_runs_hours_and_disk_and_starts_nothing(capsys, tmp_path):
    Path("g.toml").write_text(GRID)
    assert main(["sweep", "g.toml", "--dry-run", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("Pendulum-v1")]
    assert [row[:8] for row in rows] == [
        ["Pendulum-v1", method, "–", "2,000", "2", "0", "0", "2"] for method in ("td3", "ds-td3")
    ]
    assert "4 runs in runs: 0 done, 4 to do." in out
    assert "with 2 at a time" in out
    assert "while running (with replays)" in out
    assert [path.name for path in tmp_path.iterdir()] == ["g.toml"]


COSTS = Calibration(
    random_step=0.001, step=0.01, evaluation_step=0.002, episode=200, state=1000, policy=10, record=36, links=800
)


def test_expected_hours_and_disk_are_counted(capsys):
    config = RunConfig.resolve(method="td3", task="Pendulum-v1", steps=10_000, random_steps=1000, eval_every=5000)
    evaluations = 3 * 10 * 200 * 0.002
    assert COSTS.seconds(config) == pytest.approx(1.0 + 90.0 + evaluations)
    assert COSTS.seconds(config, done=5000) == pytest.approx(50.0 + evaluations / 2)
    assert COSTS.replay_bytes(config) == 12288 * 36
    sparse = RunConfig.resolve(method="ds-td3", task="Pendulum-v1", steps=10_000, random_steps=1000, eval_every=5000)
    assert COSTS.kept_bytes(sparse) - COSTS.kept_bytes(config) == 3 * 800 // 8


def test_calibration_tries_each_kind_once():
    grid = parse_grid(GRID + '[[variant]]\nlabel = "a"\n[[variant]]\nlabel = "b"\ngamma = 0.9', "mine")
    made = plan(grid, Path("runs"))
    assert len(made.jobs) == 8
    kinds = {kind_of(job.config) for job in made.jobs}
    assert sorted(kind.method for kind in kinds) == ["ds-td3", "td3"]
    costs = calibrate(next(iter(kinds)), seconds=0.1)
    assert min(costs.step, costs.random_step) > 0
    assert (costs.episode, costs.record) == (200, 4 * (3 + 1 + 1 + 1 + 3))


def test_time_to_go_counts_what_comes_before():
    text = GRID + '[[variant]]\nlabel = "a"\nseeds = [9]\n[[variant]]\nlabel = "b"\ninitial_samples = { of = "a" }'
    made = plan(parse_grid(text, "mine"), Path("runs"))
    known = {kind_of(job.config): COSTS for job in made.jobs}
    each = COSTS.seconds(made.jobs[0].config)
    source = next(job for job in made.jobs if job.source is not None)
    assert sweep_plan._with_source(source, known) == pytest.approx(2 * each)


def test_a_sweep_ends_with_the_command_of_its_report(capsys):
    small = "batch = 8\nsteps = 40\nrandom_steps = 20\nhidden = [8, 8]\neval_every = 40\neval_episodes = 1\n"
    Path("g.toml").write_text(f'tasks = ["Pendulum-v1"]\nmethods = ["td3"]\nseeds = [1, 2]\n{small}')
    words = ["sweep", "g.toml", "--dir", "my runs", "--seeds"]
    assert main([*words, "1", "--dry-run"]) == 0
    assert "Report:" not in capsys.readouterr().out
    assert main([*words, "1,2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Report:  rewirl report 'my runs' --out report"
    assert len(list(Path("my runs").glob("Pendulum-v1/td3-seed*"))) == 2


# ------------------------------------------------------------------------ while it runs


def shown(what: object, width: int = 120, height: int = 40) -> str:
    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(what)
    return console.export_text()


def half_done(display: SweepDisplay, made: Plan) -> Sweep:
    sweep = Sweep(made, Processes(2), display)
    states = ["done", "failed", "running", "running", "new"]
    for job, state in zip(made.jobs, states, strict=False):
        job.state = state
        job.step = {"done": 1_000_000, "new": 0}.get(state, 250_000)
        rate = 500.0 if state in ("done", "running") else None
        sweep.progress[job] = Progress(job.step, 1234.5, 2345.6, rate) if job.step else Progress()
    made.jobs[1].message = "the disk is full"
    sweep.workers.close()
    return sweep


def test_the_live_table_shows_state_pace_returns_and_eta():
    console = Console(width=120, height=40, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    display = LiveSweep(console, jobs=2)
    sweep = half_done(
        display, plan(load_grid("paper/td3").narrowed(tasks=["HalfCheetah-v5"], seeds=[1, 2]), Path("runs"))
    )
    text = shown(display.panel(sweep))
    lines = {line.split()[1]: line.split()[2:-1] for line in text.splitlines() if "HalfCheetah-v5/" in line}
    assert lines["HalfCheetah-v5/td3-seed1"] == ["done", "1,000,000", "100%", "–", "–", "1,234.5", "2,345.6"]
    assert lines["HalfCheetah-v5/static-td3-seed1"][0] == "failed"
    assert lines["HalfCheetah-v5/ds-td3-seed1"] == ["running", "250,000", "25%", "500", "25:00", "1,234.5", "2,345.6"]
    assert lines["HalfCheetah-v5/td3-seed2"][0] == "waiting"
    assert "1 of 8 runs" in text
    assert display.shows_all(sweep)
    # Two runs have 750,000 steps to go and four a million, at 500 a second, two at a time.
    assert "ETA 1:31:40" in text


def test_a_low_terminal_shows_what_tells_most():
    console = Console(width=80, height=14, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    display = LiveSweep(console, jobs=2)
    sweep = half_done(display, plan(load_grid("paper/td3"), Path("runs")))
    text = shown(display.panel(sweep), width=80)
    assert text.count("-seed") == 3
    assert "failed" in text
    assert text.count("running") == 2
    assert "and 1 done, 96 waiting" in text
    assert not display.shows_all(sweep)
    assert "…" not in text


def test_plain_lines_and_the_outcome(capsys):
    display = SweepDisplay(Console(width=200), jobs=2)
    made = plan(load_grid("paper/schedule").narrowed(seeds=[1]), Path("runs"))
    sweep = half_done(display, made)
    for job in made.jobs[:2]:
        display.on_change(sweep, job)
    display.on_end(sweep)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "done  HalfCheetah-v5/td3-seed1-dense at step 1,000,000 of 1,000,000, return 1,234.5"
    assert out[1] == "failed  HalfCheetah-v5/ds-td3-seed1-e200 at step 250,000 of 1,000,000: the disk is full"
    assert out[2].startswith("1 waiting, 1 done, 2 running, 1 failed; 35.0% of 5,000,000 steps, ETA ")
    assert shown(outcome(sweep), width=160).count("HalfCheetah-v5/") == 5
    assert reasons(sweep) == ["HalfCheetah-v5/ds-td3-seed1-e200: the disk is full"]
