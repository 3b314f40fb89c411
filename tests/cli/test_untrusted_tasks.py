"""A task name in a file never imports a module; one that the user typed does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import commands
import pytest
from random_policies import random_policy

from rewirl import TD3
from rewirl.cli import main
from rewirl.errors import Refused
from rewirl.experiments import parse_grid, plan, run_sweep
from rewirl.policies import Policy
from rewirl.training import RunConfig, evaluate_policy

TRAP = """
import pathlib, gymnasium
from gymnasium.envs.classic_control import PendulumEnv
pathlib.Path({mark!r}).touch()
if "Trap-v0" not in gymnasium.registry:
    gymnasium.register("Trap-v0", entry_point=PendulumEnv, max_episode_steps=20)
"""
_numbers = count()


class Trap:
    """A module that leaves a mark when it is imported, and a stranger's run that names it in every file."""

    def __init__(self, folder: Path) -> None:
        self.module = f"trap{next(_numbers)}"
        self.task = f"{self.module}:Trap-v0"
        self.mark = folder / "mark"
        (folder / f"{self.module}.py").write_text(TRAP.format(mark=str(self.mark)))
        self.run = folder / "runs" / "one"
        self.run.mkdir(parents=True)
        small = {"hidden": (4, 4), "steps": 100, "random_steps": 50, "eval_every": 50, "eval_episodes": 1}
        config = RunConfig.resolve(method="ds-td3", task=self.task, sparsity=0.5, **small)
        (self.run / "config.toml").write_text(config.to_toml())
        (self.run / "evaluations.csv").write_text("step,return_mean\n0,1\n")
        (self.run / "grid.toml").write_text(f'tasks = ["{self.task}"]\nmethods = ["ds-td3"]\nseeds = [1]\nsteps = 50')
        random_policy((3, 4, 1), task=self.task).save(self.run / "policy.safetensors")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trap]:
    made = Trap(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield made
    sys.modules.pop(made.module, None)


@pytest.mark.parametrize("name", commands.NAMES)
def test_no_command_imports_what_a_file_names(name: str, trap: Trap, tmp_path: Path) -> None:
    main(commands.on_run(trap.run, tmp_path / "out")[name])
    assert not trap.mark.exists()
    assert trap.module not in sys.modules


@pytest.mark.parametrize("name", ["evaluate", "train --resume", "train --config", "sweep"])
def test_the_refusal_says_how_to_allow_it(
    name: str, trap: Trap, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = commands.on_run(trap.run, tmp_path / "out")[name]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"the module {trap.module}, which is not imported" in said
    assert f"(--import {trap.module})" in said
    assert len(said.splitlines()) == 1
    assert main([*words, "--import", trap.module]) == 0
    assert trap.mark.exists()


def test_a_typed_task_is_imported(trap: Trap, tmp_path: Path) -> None:
    assert main(["evaluate", str(trap.run), "--task", trap.task, "--episodes", "1"]) == 0
    assert trap.mark.exists()


def test_a_run_of_a_typed_task_evaluates_in_another_process(trap: Trap, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = "--hidden 4 4 --sparsity 0.5 --steps 100 --random-steps 50 --eval-every 50 --eval-process --run-dir mine"
    assert main(["train", "ds-td3", trap.task, *sizes.split()]) == 0
    assert f"rewirl evaluate mine --import {trap.module}" in capfd.readouterr().out


@pytest.mark.parametrize("module", ["no_such_module", "..", "", "json.no"])
def test_a_module_that_cannot_be_imported(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--import", module]) == 2
    assert f"the module {module!r} cannot be imported" in capsys.readouterr().err


def test_not_from_the_current_folder_either(trap: Trap) -> None:
    """`python -m rewirl` finds modules in the current folder."""
    words = [sys.executable, "-m", "rewirl", "evaluate", str(trap.run / "policy.safetensors")]
    done = subprocess.run(words, cwd=trap.mark.parent, capture_output=True, text=True)
    assert (done.returncode, trap.mark.exists()) == (2, False), done.stderr


def test_python(trap: Trap) -> None:
    policy = Policy.load(trap.run / "policy.safetensors")
    with pytest.raises(Refused, match=f"module {trap.module}, which is not imported"):
        evaluate_policy(policy, policy.task)
    assert not trap.mark.exists()
    TD3(trap.task, hidden=(4, 4)).close()  # what a program says itself is typed
    assert trap.mark.exists()


def test_a_sweep_from_python_does_not_hand_on_what_it_may_not_import(trap: Trap, tmp_path: Path) -> None:
    grid = parse_grid((trap.run / "grid.toml").read_text(), "grid")
    jobs = run_sweep(plan(grid, tmp_path / "swept")).plan.jobs
    assert [job.state for job in jobs] == ["failed"]
    assert "not imported" in jobs[0].message
    assert not trap.mark.exists()
