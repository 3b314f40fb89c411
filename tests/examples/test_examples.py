"""The examples run, each at a size of seconds, and say what they should."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rewirl.agents import METHODS
from rewirl.policies import Policy
from rewirl.topology import erdos_renyi

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(tmp_path, monkeypatch, capsys):
    """Runs an example as a program would be, in an empty folder; gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(METHODS, "_methods", dict(METHODS.items()))  # what it registers is forgotten

    def run(name: str, steps: int) -> str:
        monkeypatch.setattr(sys, "argv", [name, str(steps)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    yield run
    gymnasium.registry.pop("Docking-v0", None)


def test_ddpg_on_the_engine(example):
    said = example("ddpg_on_the_engine.py", 1200)
    assert "5069 of 16896 links in the actor" in said
    assert int(re.search(r"actor, (\d+) replaced", said)[1]) > 0
    policy = Policy.load("ddpg.safetensors")
    assert policy.task == "Pendulum-v1"
    assert sum(policy.links) == 5069


def test_ddpg_is_as_short_as_it_says():
    assert len((EXAMPLES / "ddpg_on_the_engine.py").read_text().splitlines()) < 120


def test_ddpg_learns(example):
    said = example("ddpg_on_the_engine.py", 4000)
    first, last = map(int, re.search(r"episodes: (-?\d+), (-?\d+)", said).groups())
    assert last > first + 400


def test_momentum_rule(example):
    said = example("momentum_rule.py", 800)
    replaced = re.findall(r"(\w+): return -?\d+, (\d+) links replaced", said)
    assert [name for name, _ in replaced] == ["set", "momentum"]
    assert replaced[0][1] == replaced[1][1] != "0"


def test_registered_rule(example):
    said = example("registered_rule.py", 600)
    assert "near-td3" in said
    assert "done" in said


def test_the_momentum_rule_grows_where_gradients_agree():
    rule_class = runpy.run_path(str(EXAMPLES / "momentum_rule.py"))["Momentum"]
    rule, rng = rule_class(eta=0.25, every=1, beta=0.5), np.random.default_rng(0)
    layers = [erdos_renyi(6, 4, 8, rng) for _ in range(2)]  # in turn: each has a momentum of its own
    momenta = [np.zeros((4, 6)) for _ in layers]
    weights = rng.standard_normal(8).astype(np.float32)
    for _ in range(4):
        for number, links in enumerate(layers):
            gradients = rng.standard_normal((4, 6))
            momenta[number] = 0.5 * momenta[number] + 0.5 * gradients
            change = rule.rewire(links, weights, rng, gradients)
            free = np.setdiff1d(np.arange(24), links.places)
            scores = np.abs(momenta[number]).T.ravel()[free]  # places go input by input
            assert set(change.grown) == set(free[np.argsort(-scores)[:2]])
            layers[number] = change.links
    assert len(rule._momenta) == 2


def test_own_environment(example):
    said = example("own_environment.py", 600)
    assert re.findall(r"step +([\d,]+) ", said) == ["0", "120", "240", "360", "480", "600"]
    assert "70% sparse" in said


def test_own_environment_from_the_command_line(tmp_path):
    """As the example's first lines say: trained by its name, filmed with its own pictures."""
    env = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    sizes = "--hidden 8 8 --steps 300 --random-steps 100 --eval-every 100 --eval-episodes 1 --run-dir run"
    ours = "run --import own_environment"
    for words in (
        f"train ds-td3 own_environment:Docking-v0 {sizes}",
        f"play {ours} --gif docking.gif",
        f"evaluate {ours}",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rewirl", *words.split()], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "docking.gif").read_bytes().startswith(b"GIF89a")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_export_to_c(example):
    said = example("export_to_c.py", 600)
    apart = {name: float(value) for name, value in re.findall(r"(\w+): .* actions within (\S+)", said)}
    assert apart["f32"] < 1e-5
    assert apart["f16"] < 2e-2
    assert apart["int8"] < 0.5
