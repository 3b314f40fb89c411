"""`rewirl demo`: what it says of itself fits what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewirl.cli import main
from rewirl.cli.commands.demo import PRESET, name_of
from rewirl.training.config import RunConfig

TINY = ["--hidden", "16", "16", "--steps", "40", "--random-steps", "20", "--eval-every", "0", "--no-eval-process"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_help_has_the_demos_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "[METHOD TASK]" in out
    for name, value in (("METHOD", "lean-td3"), ("TASK", "HalfCheetah-v5"), ("--seed N", 3), ("--steps N", 80000)):
        assert f"(default: {value})" in out.split(f" {name} ", 1)[1][:300], name
    assert "(default: runs/demo/seed3;" in out


def test_a_file_wins_over_the_demo_and_flags_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text('method = "td3"\nseed = 7\nsteps = 1234\n')
    assert main(["demo", "--config", "mine.toml", "--seed", "8", "--dry-run"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for line in ('method = "td3"', "seed = 8", "steps = 1234", "random_steps = 5000"):
        assert line in out


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "seed3"),
        ({"seed": 2, "threads": 2}, "seed2"),
        ({"sparsity": 0.8}, "seed3-sparsity0.8"),
        ({"steps": 1000, "lambdas": (3, 4.5)}, "seed3-steps1000-lambdas3-4.5"),
        ({"method": "sac", "task": "Hopper-v5"}, "sac-Hopper-v5-seed3"),
    ],
)
def test_runs_that_differ_have_folders_that_differ(given: dict[str, object], name: str) -> None:
    assert name_of(RunConfig.resolve(**{**PRESET, **given})) == name


def test_the_welcome_fits_the_task_and_follows_no_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "static-td3", "Pendulum-v1", "--sparsity", "0.9", *TINY]) == 0
    out = capsys.readouterr().out
    assert out.startswith("An agent learns Pendulum-v1 from its reward alone.\n")
    assert "have 10% of the usual links.\n" in out
    assert "cheetah" not in out.lower()
    assert "Results go to runs/demo/static-td3-Pendulum-v1-seed3-" in out
    for words in (["--sparsity", "2"], ["Pendulun-v1"], ["--resume", "run"]):
        assert main(["demo", *words]) == 2
        assert capsys.readouterr().out == ""
