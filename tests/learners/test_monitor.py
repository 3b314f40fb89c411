"""Stable-Baselines3's Monitor around an environment: it records, and changes nothing."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation

from rewirl import TD3, Policy

Monitor = pytest.importorskip("stable_baselines3.common.monitor").Monitor
TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 200, "eval_episodes": 1, "replay_size": 2000}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda file: Monitor(gymnasium.make("Pendulum-v1"), str(file)),
        lambda file: FlattenObservation(Monitor(gymnasium.make("Pendulum-v1"), str(file))),
    ],
)
def test_it_learns_the_same_with_and_without(wrapped, tmp_path):
    plain = TD3("Pendulum-v1", seed=1, **TINY).learn(450)
    with TD3(wrapped(tmp_path / "file"), seed=1, run_dir=tmp_path / "run", **TINY) as agent:
        agent.learn(450)
        np.testing.assert_array_equal(agent.predict([1, 0, 0])[0], plain.predict([1, 0, 0])[0])
        assert [row.return_mean for row in agent.evaluations] == [row.return_mean for row in plain.evaluations]
        assert agent.config.task == "Pendulum-v1"
    assert len((tmp_path / "file.monitor.csv").read_text().splitlines()) == 2 + 2  # training episodes alone
    around = Policy.load(tmp_path / "run" / "policy.safetensors").around
    assert "Monitor" not in around
