"""Every default that `rewirl COMMAND --help` states. A changed or new one has to be changed or added here."""

from __future__ import annotations

import importlib
import re

import pytest

from rewirl.cli.commands.demo import PRESET
from rewirl.cli.main import COMMANDS
from rewirl.cli.ui.parser import Parser

TRAIN = {
    "--run-dir": "runs/TASK/METHOD-seedSEED",
    "--seed": "0",
    "--steps": "1000000",
    "--updates-per-step": "1.0, 2.0 for lean-td3",
    "--envs": "1",
    "--random-steps": "a tenth of the steps, at least 100, "
    "at most the paper's 25000 for TD3, 10000 for SAC, 1000 for DQN, 5000 for CrossQ",
    "--eval-every": "5000",
    "--eval-episodes": "10",
    "--replay-size": "1000000",
    "--threads": "1",
    "--checkpoint-every": "25000",
    "--sparsity": "0.5 where the paper has no λ, 0.9 for lean-td3",
    "--lambdas": "the paper's for its tasks",
    "--block": "1",
    "--eta": "0.05 for TD3, 0.1 for SAC, 0.05 for DQN, 0.1 for CrossQ",
    "--adapt-every": "1000",
    "--min-links": "0",
    "--recycle": "0.0 for lean-td3",
    "--sparse-init": "True for lean-td3",
    "--sparse-rate": "0.0, 1.0 for lean-td3",
    "--hidden": "256 256",
    "--batch": "100 for TD3, 256 for SAC, 128 for DQN, 256 for CrossQ",
    "--gamma": "0.99",
    "--tau": "0.005",
    "--lr": "0.001 for TD3, 0.0003 for SAC, 0.0005 for DQN, 0.001 for CrossQ",
    "--lr-schedule": "constant, linear for lean-td3",
    "--beta1": "0.9 for TD3, 0.9 for SAC, 0.9 for DQN, 0.5 for CrossQ",
    "--beta2": "0.999",
    "--adam-eps": "1e-08",
    "--weight-decay": "0.0002 for TD3, 0.0 for SAC, 0.0 for DQN, 0.0 for CrossQ",
    "--n-step": "1",
    "--n-step-from": "0",
    "--policy-delay": "2 for TD3, 3 for CrossQ",
    "--exploration-noise": "0.1",
    "--target-noise": "0.2",
    "--target-clip": "0.5",
    "--alpha": "0.2 for SAC, auto for CrossQ",
    "--target-interval": "1",
    "--loss": "huber",
    "--epsilon-start": "1.0",
    "--epsilon-end": "0.05",
    "--epsilon-steps": "10000",
    "--critic-hidden": "2048 2048",
    "--norm-momentum": "0.99",
    "--norm-warmup": "100000",
}
OTHERS = {
    "demo": TRAIN
    | {
        "method": "lean-td3",
        "task": "HalfCheetah-v5",
        "--run-dir": "runs/demo/seed3; other settings are added to the name",
        "--seed": "3",
        "--steps": "80000",
        "--random-steps": "5000",
        "--eval-every": "2500",
        "--eval-episodes": "3",
        "--eval-process": "on",
    },
    "sweep": {
        "--dir": "runs",
        "--jobs": "one per core",
        "--on": "on this machine",
        "--address": "RAY_ADDRESS, or start Ray on this machine",
        "--retries": "5",
    },
    "tune": {
        "--trials": "20",
        "--steps": "200000",
        "--seeds": "0",
        "--workers": "one per core",
        "--dir": "tuning/TASK/METHOD",
        "--sampler": "random",
        "--search-seed": "0",
        "--lambdas": "0.1 to 0.8 of a dense layer's",
        "--eta": "0.01 0.3, log-uniform",
        "--adapt-every": "200 500 1000 2000",
    },
    "evaluate": {"--episodes": "10", "--seed": "0"},
    "inspect": {"--features": "24", "--episodes": "3", "--seed": "0"},
    "play": {"--episodes": "1", "--seed": "0", "--fps": "the task's, at most 25"},
    "list": {"folder": "runs"},
    "verify": {},
    "export": {"--name": "policy", "--dtype": "f32"},
    "report": {
        "--title": "Dynamic sparse training",
        "--seed": "0",
        "--at": "the last step that a method and its dense counterpart both reached",
    },
    "methods": {},
    "tasks": {},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_that_the_help_states(name: str) -> None:
    command = importlib.import_module(f"rewirl.cli.commands.{name}")
    parser = Parser(f"rewirl {name}", "", command.EXAMPLES)
    command.arguments(parser)
    stated, used = {}, {}
    for action in parser._actions:
        if found := re.search(r"\(default: (.*)\)$", action.help or ""):
            flag = next(iter(action.option_strings), action.dest)
            stated[flag] = found[1]
            used[flag] = action.default
    assert stated == {"train": TRAIN, **OTHERS}[name]
    for flag, value in used.items():
        # Without a value of its own the option is resolved later; the tests of agents and training have these numbers.
        if value not in (None, "==SUPPRESS==", "here"):
            assert stated[flag] == (" ".join(map(str, value)) if isinstance(value, list) else str(value)), flag


def test_the_demo_is_what_its_help_states() -> None:
    stated = {name: OTHERS["demo"].get(f"--{name.replace('_', '-')}", OTHERS["demo"].get(name)) for name in PRESET}
    assert {name: "on" if value is True else str(value) for name, value in PRESET.items()} == stated
