"""Learning rates that fall, seen from Python."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from rewirl import DQN, SAC, TD3
from rewirl.agents.options import Options
from rewirl.errors import Refused

TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 100, "eval_every": 0, "replay_size": 2000}


@pytest.mark.parametrize("agent", [TD3, SAC])
@pytest.mark.parametrize(("schedule", "last"), [("linear", 1 / 900), ("cosine", (1 - math.cos(math.pi / 900)) / 2)])
def test_the_rate_falls_to_zero_at_the_last_update(agent, schedule, last):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = agent("Pendulum-v1", lr=0.01, lr_schedule=schedule, **TINY).learn(1000)
    assert learned.config.options.lr_until == 900
    assert learned.run.agent._adam.lr == pytest.approx(0.01 * last)


def test_updates_stop_with_the_rate():
    agent = TD3("Pendulum-v1", lr_schedule="linear", weight_decay=0.0, **TINY).learn(300)
    before = agent.run.agent.actor.parameters.copy()
    with pytest.warns(UserWarning, match="the learning rate is 0 after 200 of 250 updates"):
        agent.learn(50)
    np.testing.assert_array_equal(agent.run.agent.actor.parameters, before)


def test_saved_in_the_middle_it_falls_on(tmp_path):
    options = {"lr_schedule": "cosine", "lr_until": 400, "steps": 500, **TINY}
    whole = TD3("Pendulum-v1", **options).learn(300)
    whole.save(tmp_path / "agent.safetensors", replay=True)
    loaded = TD3.load(tmp_path / "agent.safetensors").learn(200)
    assert loaded.predict([1, 0, 0])[0] == whole.learn(200).predict([1, 0, 0])[0]


def test_shapes():
    rates = [Options(lr=1.0, lr_schedule="cosine", lr_until=4).lr_at(update) for update in (1, 3, 5, 9)]
    assert rates == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert Options(lr=0.3).lr_at(10**6) == 0.3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lr_schedule": "quadratic"}, "lr_schedule must be 'constant' or 'linear' or 'cosine', not"),
        ({"lr_until": 5}, "needs lr_schedule linear or cosine"),
        ({"lr_schedule": "linear", "lr_until": 0}, "lr_until must be at least 1"),
    ],
)
def test_refusals(options, says):
    with pytest.raises(Refused, match=says):
        TD3("Pendulum-v1", **options)


def test_the_rate_of_dqn_falls_too():
    learned = DQN("CartPole-v1", lr=0.01, lr_schedule="linear", **TINY).learn(600)
    assert learned.run.agent._adam.lr == pytest.approx(0.01 / 500)
