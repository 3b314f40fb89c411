"""What the docs say of an algorithm of one's own: an agent, its numbers and its names are enough for all else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tiny

from rewirl.agents import ActionBox, ActorCritic, Transitions, WiringOptions, methods
from rewirl.agents.actor_critic import Floats
from rewirl.agents.options import Options
from rewirl.cli import main
from rewirl.policies import Policy
from rewirl.storage import inspect_run, verify
from rewirl.topology import SET

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
    outputs_per_action: ClassVar[int] = 1

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


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = methods.Method("ds-mine", MineAgent, MineOptions, SET, eta=0.2, random_steps=100)
    monkeypatch.setitem(methods.METHODS, "ds-mine", mine)
    kinds = (*methods.KINDS, MineOptions)  # as it would be, were the method written where the others are
    for module in ("rewirl.agents.methods", "rewirl.training.config", "rewirl.cli.commands.train"):
        monkeypatch.setattr(f"{module}.KINDS", kinds)


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
    assert "wobble is an option of Mine, which ds-td3 is not" in capsys.readouterr().err
