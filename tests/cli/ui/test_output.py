"""Output that goes away: a reader that has seen enough, a full disk, a closed descriptor, Ctrl-C at the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TINY = ["--hidden", "16", "16", "--steps", "300", "--random-steps", "100", "--eval-every", "50", "--eval-episodes", "1"]
TRAIN = [sys.executable, "-m", "rewirl", "train", "td3", "Pendulum-v1", *TINY, "--run-dir", "run"]
GRID = """
tasks = ["Pendulum-v1"]
methods = ["td3"]
seeds = [1, 2]
steps = 120
random_steps = 60
hidden = [8, 8]
eval_episodes = 1
"""


def read_one_line_of(command: list[str], where: Path) -> tuple[int, str]:
    """As `command | head -1` does; the exit code of the command, and what it said on standard error."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=where, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        return process.wait(60), process.stderr.read()


def state_of(run: Path) -> tuple[str, int]:
    status = json.loads((run / "status.json").read_text())
    return status["state"], status["step"]


def test_training_goes_on_when_its_reader_has_gone(tmp_path: Path) -> None:
    assert read_one_line_of(TRAIN, tmp_path) == (0, "")
    assert state_of(tmp_path / "run") == ("done", 300)


def test_a_sweep_goes_on_when_its_reader_has_gone(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    command = [sys.executable, "-m", "rewirl", "sweep", "grid.toml", "--jobs", "2"]
    assert read_one_line_of(command, tmp_path) == (0, "")
    runs = sorted((tmp_path / "runs" / "Pendulum-v1").iterdir())
    assert [state_of(run) for run in runs] == [("done", 120), ("done", 120)]


@pytest.mark.parametrize("to", ["> /dev/full", ">&-", "> /dev/full 2>&1", ">&- 2>&-"])
def test_training_needs_no_output(tmp_path: Path, to: str) -> None:
    shell = ["sh", "-c", f'"$0" "$@" {to}', *TRAIN]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert state_of(tmp_path / "run") == ("done", 300)


@pytest.mark.parametrize("words", [["tasks"], ["--help"], ["train", "--help"], [*TRAIN[3:], "--dry-run"]])
def test_what_is_there_to_be_read_ends_with_its_output(tmp_path: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "rewirl", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240)
    said = "rewirl: the output could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=240)
    os.close(writer)
    assert gone.stderr == ""


def test_an_instruction_set_that_is_not_there(tmp_path: Path) -> None:
    command, env = [sys.executable, "-m", "rewirl", "methods"], {**os.environ, "REWIRL_ISA": "foo"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env)
    assert done.returncode == 2
    assert done.stderr.startswith("rewirl: REWIRL_ISA: instruction set 'foo' is not available here")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["rich_argparse", "mujoco"])
def test_ctrl_c_while_modules_are_loaded(tmp_path: Path, module: str) -> None:
    # A module in whose import the user loses patience, and which makes something else of it as MuJoCo does.
    lines = ["import os, signal", "try:", "    os.kill(os.getpid(), signal.SIGINT)", "except KeyboardInterrupt:"]
    (tmp_path / f"{module}.py").write_text(
        "\n".join([*lines, "    raise ImportError('initialization failed') from None"])
    )
    env, command = {**os.environ, "PYTHONPATH": str(tmp_path)}, [sys.executable, "-m", "rewirl", "train", "td3"]
    words = [*command, "HalfCheetah-v5", "--dry-run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rewirl: interrupted\n")
