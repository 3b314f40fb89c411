"""The command line: help, errors in one sentence, exit codes."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import os
import re
import subprocess
import sys

import gymnasium
import pytest

from rewirl import nn
from rewirl.agents.options import SACOptions, TD3Options
from rewirl.cli import main
from rewirl.cli.main import COMMANDS
from rewirl.envs.catalogue import TASKS
from rewirl.limits import MAX_THREADS
from rewirl.training.config import RunConfig

TINY = ("--hidden", "8", "8", "--steps", "50", "--random-steps", "20")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(words: str) -> int:
    return main(words.split())


def refused(capsys, *words: str) -> str:
    """What is said when the words are refused: one sentence, no more."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rewirl: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(capsys, command):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert f"rewirl {command}" in out
    everything = (main(["--help"]), capsys.readouterr().out)[1]
    assert f"  {command} " in everything
    for text in (out, everything):
        words = re.findall(r"\w+|\s{2,}|[^\w\s]", text)
        twice = [b for a, b in itertools.pairwise(words) if b.islower() and len(b) > 1 and a.lower() == b]
        assert not twice, f"the same word twice: {twice}"


def test_train_has_a_flag_for_every_number(capsys):
    main(["train", "--help"])
    out = capsys.readouterr().out
    fields = [f.name for kind in (RunConfig, TD3Options, SACOptions) for f in dataclasses.fields(kind)]
    for name in {*fields, "run_dir", "config", "dry_run", "resume", "log"} - {"method", "task", "options"}:
        assert "--" + name.replace("_", "-") in out
    assert "default: 0.05 for TD3, 0.1 for SAC" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("trian", "there is no command trian, did you mean train?"),
        ("--versoin", "there is no flag --versoin, did you mean --version?"),
        ("train", "which method?"),
        ("train ds-td3", "which task? For example: rewirl train ds-td3 HalfCheetah-v5"),
        ("train ds-tdd Pendulum-v1", "there is no method 'ds-tdd', did you mean ds-td3?"),
        ("train ds-td3 Pendulun-v1", "did you mean Pendulum-v1?"),
        ("train ds-td3 HalfCheeta-v5 --dry-run", "did you mean HalfCheetah-v5?"),
        ("train ds-td3 Pendulum-v1 --sed 1", "there is no flag --sed, did you mean --seed?"),
        ("train ds-td3 Pendulum-v1 --sparcity=0.5", "there is no flag --sparcity, did you mean --sparsity?"),
        ("train ds-td3 Pendulum-v1 extra", "unexpected argument 'extra'"),
        ("train ds-td3 Pendulum-v1 --seed -1", "seed must be from 0 to 4294967295, not -1"),
        ("train ds-td3 Pendulum-v1 --seed 18446744073709551616", "seed must be from 0 to 4294967295"),
        ("train ds-td3 Pendulum-v1 --seed x", "--seed: must be a whole number, not 'x'"),
        ("train ds-td3 Pendulum-v1 --steps 1.5", "--steps: must be a whole number, not '1.5'"),
        ("train ds-td3 Pendulum-v1 --sparsity nan", "sparsity must be a finite number"),
        ("train ds-td3 Pendulum-v1 --sparsity 1", "sparsity must be from 0 (dense) to below 1"),
        ("train ds-td3 Pendulum-v1 --sparsity -0.1", "sparsity must be from 0 (dense) to below 1"),
        ("train ds-td3 Pendulum-v1 --sparsity 0.999 --hidden 8 8", "the largest sparsity possible is 0.89"),
        ("train ds-td3 Pendulum-v1 --sparsity 0.999 --hidden 8 8 --dry-run", "the largest sparsity possible is 0.89"),
        ("train ds-td3 Pendulum-v1 --sparsity 0.5 --lambdas 1 1", "either sparsity or lambdas"),
        ("train ds-td3 Pendulum-v1 --alpha 1", "alpha is an option of SAC"),
        ("train ds-td3 Pendulum-v1 --name ../x", "../x"),
        ("train ds-td3 Pendulum-v1 --name a/b", "a/b"),
        ("train ds-td3 Pendulum-v1 --name=", "'' is not a valid run name"),
        ("train ds-td3 Pendulum-v1 --threads 1000", "threads must be from 1 to 256, not 1000"),
        ("train ds-td3 Pendulum-v1 --threads 1000 --dry-run", "threads must be from 1 to 256, not 1000"),
        ("train ds-td3 Pendulum-v1 --sparsity 0.99999 --hidden 32 32", "the largest sparsity possible is 0.970486"),
        ("train ds-td3 Pendulum-v1 --lambdas 0 5 --hidden 32 32", "must be above 0.014286"),
        ("train ds-td3 Pendulum-v1 --block 4 --hidden 30 30", "block 4 does not divide a layer of 30 outputs"),
        ("train sac Pendulum-v1 --alpha foo", "--alpha: must be a number or auto, not 'foo'"),
        ("train ds-td3 Pendulum-v1 --run-dir ../x", "must not go up with '..'"),
        ("train ds-td3 ../../etc", "is not a task"),
        ("train ds-td3 CartPole-v1", "cannot learn a task with 2 discrete actions: use ds-dqn"),
        ("train ds-td3 Pendulum-v1 --config none.toml", "cannot read the config none.toml: No such file"),
        ("train ds-td3 Pendulum-v1 --log tensorbord", "invalid choice: 'tensorbord'"),
        ("train --resume nowhere", "nowhere"),
        ("evaluate nowhere", "there is no nowhere"),
        ("verify nowhere", "nowhere is not a run folder"),
        ("list nowhere", "there is no folder nowhere"),
        ("export nowhere --to c --out x", "there is no nowhere"),
        ("export nowhere", "--to"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(capsys, tmp_path, words, says):
    assert says in refused(capsys, *words.split())
    assert list(tmp_path.iterdir()) == []


def test_config_file_with_an_unknown_key(capsys, tmp_path):
    (tmp_path / "my.toml").write_text("method = 'ds-td3'\ntask = 'Pendulum-v1'\nsteeps = 5\n")
    assert "my.toml: there is no option 'steeps', did you mean steps?" in refused(
        capsys, "train", "--config", "my.toml"
    )


def test_unwritable_run_folder(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    refused(capsys, "train", "ds-td3", "Pendulum-v1", *TINY, "--run-dir", "file/run")
    assert (tmp_path / "file").read_text() == ""


def test_most_threads_are_those_of_the_core():
    with pytest.raises(ValueError, match=f"from 1 to {MAX_THREADS},"):
        nn.set_threads(MAX_THREADS + 1)


def test_pickle_is_refused_as_a_policy(capsys, tmp_path):
    (tmp_path / "policy.safetensors").write_bytes(b"\x80\x04\x95\x10\x00\x00\x00cos\nsystem\n.")
    refused(capsys, "evaluate", "policy.safetensors")


def test_words_and_flags_in_any_order(capsys):
    assert run("train ds-td3 --seed 3 Pendulum-v1 --lambdas 1 2 --hidden 8 8 --dry-run") == 0
    out = capsys.readouterr().out
    assert "seed = 3 " in out
    assert "lambdas = [1.0, 2.0]" in out


@pytest.mark.parametrize("widths", [["64,32"], ["64,", "32"], ["64 32"], ["64", "32"]])
def test_several_values_with_commas_or_spaces(capsys, widths):
    assert main(["train", "ds-td3", "Pendulum-v1", "--dry-run", "--lambdas", "1.5,2", "--hidden", *widths]) == 0
    out = capsys.readouterr().out
    assert "hidden = [64, 32]" in out
    assert "lambdas = [1.5, 2.0]" in out
    assert "must be a whole number, not 'x'" in refused(capsys, "train", "td3", "Pendulum-v1", "--hidden", "64,x")


def test_flags_win_over_the_file(capsys, tmp_path):
    (tmp_path / "my.toml").write_text("method = 'ds-td3'\ntask = 'Pendulum-v1'\nsteps = 5000\nseed = 1\n")
    assert main(["train", "--config", "my.toml", "--seed", "2", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "steps = 5000 " in out
    assert "seed = 2 " in out


def test_dry_run_counts_as_the_paper_does(capsys, tmp_path):
    assert run("train td3 HalfCheetah-v5 --dry-run") == 0
    dense = capsys.readouterr().out
    assert "214,784" in dense
    assert "1.0744e+14" in dense
    assert run("train ds-td3 HalfCheetah-v5 --dry-run") == 0
    sparse = capsys.readouterr().out
    for shown in ("106,169", "50.6% of 214,784", "0.4918 × dense", "1,911 + 32,768 + 1,536", "168 MB for 1,000,000"):
        assert shown in sparse
    assert not (tmp_path / "runs").exists()


def test_dry_run_counts_what_the_run_will_have(capsys, tmp_path):
    words = "train ds-td3 Pendulum-v1 --hidden 8 8 --steps 400 --random-steps 150 --eval-every 200 --eval-episodes 2"
    assert run(f"{words} --dry-run") == 0
    shown = capsys.readouterr().out
    assert run(f"{words} --run-dir run") == 0
    with open(tmp_path / "run" / "evaluations.csv") as file:
        row = list(csv.DictReader(file))[-1]
    assert row["step"] == "400"
    assert f"{float(row['paper_flops']):.4e} for 250 updates, " in shown
    # Episodes of Pendulum are 200 steps, always.
    assert f"{float(row['full_flops']):.4e} for 250 updates and 1,450 actions, " in shown


def test_dry_run_says_when_nothing_would_be_learned(capsys):
    run("train ds-td3 Pendulum-v1 --steps 100 --dry-run")
    assert "the agent does not learn: lower --random-steps" in capsys.readouterr().out


def test_output_that_cannot_show_greek():
    command = [sys.executable, "-m", "rewirl", "tasks"]
    shown = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert shown.returncode == 0
    assert b"HalfCheetah-v5" in shown.stdout


def test_methods_and_tasks(capsys):
    main(["methods"])
    assert "ds-td3" in capsys.readouterr().out
    main(["tasks"])
    out = capsys.readouterr().out
    assert "12 80" in out
    for name in TASKS:
        try:
            env = gymnasium.make(name)
        except gymnasium.error.DependencyNotInstalled:
            assert re.search(rf"{name}\s+8\s+4\b", out), "LunarLander without Box2D"
            continue
        space = env.action_space
        (n_obs,), n_act = env.observation_space.shape, getattr(space, "n", None) or space.shape[0]
        assert re.search(rf"{name}\s+{n_obs}\s+{n_act}\b", out)


def test_tasks_fit_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setattr("rewirl.cli.ui.tables.width", lambda: 80)
    main(["tasks"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    for name, task in TASKS.items():
        assert any(line.split()[:1] == [name] and line.rstrip().endswith(task.phrase) for line in out.splitlines())


@pytest.mark.parametrize("words", [["-m", "rewirl", "--version"], ["-m", "rewirl"]])
def test_version_says_what_a_bug_report_needs(words):
    out = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
    for name in ("rewirl", "compiler", "instruction set", "threads", "python", "numpy", "gymnasium", "mujoco"):
        assert f"\n{name}" in f"\n{out}"
    assert re.search(r"^tested +Linux x86-64 \(SSE2, AVX2, AVX-512\), Linux ARM64", out, re.M)
    assert re.search(r"^not supported +Windows", out, re.M)


def test_windows_is_refused_in_a_sentence():
    words = [sys.executable, "-c", "import sys; sys.platform = 'win32'; import rewirl"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: rewirl does not run on Windows: use Linux, for example in WSL 2\n")


def test_importing_rewirl_is_light():
    code = (
        "import sys, rewirl; print(rewirl.__version__, {'gymnasium', 'mujoco', 'rich', 'numpy'} & sys.modules.keys())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "set()" in out


def test_too_little_memory_is_said_in_a_sentence(capsys, monkeypatch):
    def none(*_):
        raise MemoryError("Unable to allocate 32.0 GiB")

    monkeypatch.setattr("rewirl.cli.commands.train.sizes", none)
    assert run("train ds-td3 Pendulum-v1 --dry-run") == 1
    assert capsys.readouterr().err == (
        "rewirl: not enough memory (Unable to allocate 32.0 GiB): use smaller networks, batches or replays\n"
    )
