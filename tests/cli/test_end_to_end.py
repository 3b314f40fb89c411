"""A tiny run from the command line to its last file, in processes of their own as a person would start them."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE

from rewirl.policies import Policy

SIZES = {"batch": 16, "steps": 500, "random-steps": 100, "eval-every": 200, "eval-episodes": 2}
TINY = [f"--{name}={value}" for name, value in SIZES.items()] + ["--hidden", "16", "16", "--adapt-every", "50"]
RUN = "runs/Pendulum-v1/ds-td3-seed3"


def rewirl(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rewirl", *words], capture_output=True, text=True, cwd=where, timeout=PATIENCE
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    where = tmp_path_factory.mktemp("trained")
    return where, rewirl(where, "train", "ds-td3", "Pendulum-v1", "--seed", "3", *TINY)


def test_train_says_what_happens_in_plain_lines(trained):
    _, done = trained
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    assert [line.split()[1] for line in lines] == ["0/500", "200/500", "400/500", "500/500"]
    assert all(" return " in line and " ETA " in line and " steps/s " in line for line in lines)
    for told in (f"Results go to {RUN}", "Return   ", "of dense networks", f"rewirl evaluate {RUN}"):
        assert told in done.stdout


def test_run_folder_is_whole(trained):
    where, _ = trained
    with open(where / RUN / "evaluations.csv") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["0", "200", "400", "500"]
    policy = Policy.load(where / RUN / "policy.safetensors")
    assert policy.task == "Pendulum-v1"
    assert policy.predict(np.zeros(3))[0].shape == (1,)
    assert rewirl(where, "verify", RUN).stdout == f"{RUN}: all files are intact\n"


def test_list_evaluate_export(trained):
    where, _ = trained
    listed = rewirl(where, "list").stdout
    for cell in (RUN, "ds-td3", "Pendulum-v1", "done", "500", "100%"):
        assert cell in listed
    first, again, best = (
        rewirl(where, "evaluate", *words.split())
        for words in (
            f"{RUN} --episodes 2 --seed 5",
            f"{RUN}/policy.safetensors --episodes 2 --seed 5",
            f"{RUN} --best",
        )
    )
    assert first.stdout == again.stdout
    assert "over 2 episodes" in first.stdout
    assert "over 1 episode (" in rewirl(where, "evaluate", RUN, "--episodes", "1").stdout
    assert best.returncode == 0
    exported = rewirl(where, "export", RUN, "--to", "c", "--out", "device", "--dtype", "int8")
    assert exported.returncode == 0, exported.stderr
    assert (where / "device" / "policy.c").exists()


def test_the_same_command_again_says_that_it_is_done(trained):
    where, _ = trained
    again = rewirl(where, "train", "ds-td3", "Pendulum-v1", "--seed", "3", *TINY)
    assert again.returncode == 0
    assert "This run is finished" in again.stdout


def test_another_config_in_the_same_folder_is_refused(trained):
    where, _ = trained
    other = rewirl(where, "train", "ds-td3", "Pendulum-v1", "--seed", "3", *TINY, "--lr", "0.5")
    assert other.returncode == 2
    assert "lr: 0.001 is now 0.5" in other.stderr
    assert other.stderr.count("\n") == 1


def test_another_method_cannot_resume_a_run(trained):
    where, _ = trained
    other = rewirl(where, "train", "td3", "--resume", RUN)
    assert other.returncode == 2
    assert f"the method of {RUN} is ds-td3, not td3: leave it out" in other.stderr


def test_verify_finds_a_flipped_bit(trained, tmp_path):
    where, _ = trained
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (where / RUN).glob("*.*"):
        (copy / file.name).write_bytes(file.read_bytes())
    damaged = bytearray((copy / "policy.safetensors").read_bytes())
    damaged[-3] ^= 1
    (copy / "policy.safetensors").write_bytes(damaged)
    found = rewirl(tmp_path, "verify", "copy")
    assert found.returncode == 1
    assert "policy.safetensors" in found.stdout
    refused = rewirl(tmp_path, "evaluate", "copy")
    assert refused.returncode == 2
    assert "policy.safetensors" in refused.stderr


def test_stopped_with_its_own_code_and_resumed(trained, tmp_path):
    where, _ = trained
    command = [sys.executable, "-m", "rewirl", "train", "ds-td3", "Pendulum-v1", "--seed", "3", *TINY, "--steps"]
    process = subprocess.Popen(
        [*command, "500000", "--run-dir", "run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while "step 200/" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, said
    assert "--resume run" in said
    assert "stopped" in rewirl(tmp_path, "list", ".").stdout
    policy = Policy.load(tmp_path / "run" / "policy.safetensors")
    assert policy.n_obs == 3
    resumed = subprocess.Popen(
        [sys.executable, "-m", "rewirl", "train", "--resume", "run"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert resumed.stdout is not None
    assert "resuming at step" in resumed.stdout.readline()
    while "step 600/" not in resumed.stdout.readline():
        assert resumed.poll() is None
    resumed.send_signal(signal.SIGTERM)
    resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 3
    with open(tmp_path / "run" / "evaluations.csv") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == [200 * i for i in range(len(steps))]
    with open(where / RUN / "evaluations.csv") as one, open(tmp_path / "run" / "evaluations.csv") as two:
        returns = [[row["return_mean"] for row in csv.DictReader(file)][:3] for file in (one, two)]
    assert returns[0] == returns[1]
