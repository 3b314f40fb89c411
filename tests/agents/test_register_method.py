"""An algorithm or a rule of one's own: its class and one registration are enough for all else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tiny

from rewirl import TD3
from rewirl.agents import METHODS, ActionBox, ActorCritic, Method, TD3Agent, Transitions, WiringOptions, register_method
from rewirl.agents.actor_critic import Floats
from rewirl.agents.options import Options
from rewirl.cli import main
from rewirl.learners.configuring import new_config
from rewirl.policies import Policy
from rewirl.storage import inspect_run, verify
from rewirl.topology import SET
from rewirl.training.config import RunConfig

TASK = "tiny/Walk-v0"


@dataclass(frozen=True, kw_only=True)
class MineOptions(Options):
    """Its numbers."""

    batch: int = 8
    lr: float = 1e-3
    wobble: float = 0.5
    """How far it strays."""


class MineAgent(ActorCritic):
    """Learns nothing, and rewires."""

    algorithm: ClassVar[str] = "mine"
    policy_kind: ClassVar[str] = "td3"
    options_class: ClassVar[type[Options]] = MineOptions

    def __init__(
        self, n_obs: int, box: ActionBox, options: MineOptions, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.wobble = options.wobble

    def act(self, obs: Floats) -> Floats:
        return np.tanh(self.actor.act(obs))

    def explore(self, obs: Floats) -> Floats:
        return np.clip(self.act(obs) + self.rng.normal(0, self.wobble, self.n_act), -1, 1).astype(np.float32)

    def update(self, batch: Transitions) -> None:
        self.updates += 1
        self._averages.add("q", self.wobble)
        if self.wiring.rule.due(self.updates):
            self.actor.adapt(self.wiring.rule, self.rng)


@dataclass(frozen=True)
class Restless(SET):
    """Drops and grows as SET does, under another name."""

    name: ClassVar[str] = "restless"
    phrase: ClassVar[str] = "sparse networks that never rest"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "_methods", dict(METHODS.items()))  # so that other tests do not see them
    register_method(Method("ds-mine", MineAgent, SET, eta=0.2, random_steps=100))
    register_method(Method("restless-td3", TD3Agent, Restless))


def test_an_agent_its_numbers_and_its_names_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"train ds-mine {TASK} --run-dir run --steps 600 --eval-every 300 --eval-episodes 1 --hidden 16 16"
    words += " --wobble 0.25 --adapt-every 20 --sparsity 0.5 --checkpoint-every 200"
    assert main(words.split()) == 0, capsys.readouterr().err
    config = inspect_run(Path("run")).config
    assert config is not None
    assert isinstance(config.options, MineOptions)
    assert config.options.wobble == 0.25
    assert [float(row["q"]) for row in tiny.rows(Path("run/evaluations.csv"))[1:]] == [0.25, 0.25]
    assert verify(Path("run")) == []
    assert Policy.load("run/policy.safetensors").algorithm == "td3", "deterministic, as TD3's are"
    assert main(["export", "run", "--to", "c", "--out", "c"]) == 0
    assert main(["methods"]) == 0
    assert "ds-mine" in capsys.readouterr().out
    assert main(["train", "ds-td3", TASK, "--wobble", "1"]) == 2
    assert "wobble is an option of MINE, which ds-td3 is not" in capsys.readouterr().err


def test_a_rule_is_enough_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A registered rule has a name that a run folder can hold."""
    with TD3(
        TASK, wiring=Restless, run_dir=tmp_path / "run", hidden=(16, 16), batch=8, random_steps=50, eval_every=0
    ) as agent:
        agent.learn(150)
    config = inspect_run(tmp_path / "run").config
    assert config is not None
    assert config.method == "restless-td3"
    assert isinstance(config.wiring().rule, Restless)
    assert main(["methods"]) == 0
    assert "TD3 with sparse networks that never rest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"), [("td3", "already"), ("Mine", "small letters"), ("a/b", "small letters"), ("", "small letters")]
)
def test_names_that_cannot_be(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        register_method(Method(name, MineAgent, SET))


def test_registering_twice_changes_nothing() -> None:
    before = list(METHODS)
    register_method(Method("ds-mine", MineAgent, SET, eta=0.2, random_steps=100))
    assert list(METHODS) == before


def test_entry_points_of_other_packages(tmp_path: Path) -> None:
    """A package that is installed, and nowhere imported by name; one that is broken costs a warning."""
    (tmp_path / "mine_td3.py").write_text(
        "from rewirl.agents import Method, TD3Agent, register_method\n"
        "from rewirl.topology import SET\n"
        "register_method(Method('mine-td3', TD3Agent, SET))\n"
    )
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rewirl.methods]\nmine = mine_td3\ngone = no_such_module\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "rewirl", "methods"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mine-td3" in done.stdout
    assert "no_such_module could not be loaded" in done.stderr


def test_defaults_of_a_method_are_used_unless_options_are_given() -> None:
    def config(**given: object) -> RunConfig:
        return RunConfig.resolve(method="lean-td3", task="HalfCheetah-v5", **given)

    plain = config()
    assert (plain.sparsity, plain.lambdas, plain.updates_per_step, plain.recycle) == (0.9, None, 2, 0)
    assert (config(sparsity=0.8).sparsity, config(updates_per_step=1).updates_per_step) == (0.8, 1)
    assert (config(lambdas=(7, 64)).lambdas, config(lambdas=(7, 64)).sparsity) == ((7.0, 64.0), None)
    assert RunConfig.from_toml(plain.to_toml()) == plain
    assert new_config("td3", "HalfCheetah-v5", SET(), 0, {}).method == "ds-td3"
