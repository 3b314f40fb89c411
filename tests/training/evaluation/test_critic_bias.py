"""Critic bias: of critics whose values are known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box

from rewirl.envs.creation import Source
from rewirl.nn import Network, batch_of
from rewirl.storage import start
from rewirl.topology import SET, Links, wire
from rewirl.training.evaluation.critic_bias import STATES, Critic, Visit, Visits, critics_of
from rewirl.training.evaluation.episodes import Snapshot
from rewirl.training.evaluation.evaluator import Here

OBS, ACTION = np.ones(2, dtype=np.float32), np.zeros(1, dtype=np.float32)


def constant(value: float) -> Network:
    """A critic that gives every state and action the same value."""
    critic = Network([Links.dense(3, 1)], np.random.default_rng(0))
    critic.set_parameters(np.array([0, 0, 0, value], dtype=np.float32))
    return critic


def steps(*rewards: float) -> list[Visit]:
    return [Visit(OBS, ACTION, reward) for reward in rewards]


def test_episodes_that_end_for_good() -> None:
    visits = Visits(gamma=0.5)
    visits.add_episode(steps(1, 2, 4), None)  # returns 3, 4, 4
    assert visits.bias(constant(10)) == pytest.approx(10 - 11 / 3)


def test_episodes_that_a_time_limit_cuts_off() -> None:
    visits = Visits(gamma=0.5)
    visits.add_episode(steps(1, 1, 1, 1), (OBS, ACTION))
    assert visits.bias(constant(2)) == 0, "1 + γ + γ² + … is 2: the critic is right"
    # The first two states: returns 1 + ½ + ¼ + ⅛ and 1 + ½ + ¼, then γ⁴ and γ³ times the critic's own value.
    assert visits.bias(constant(10)) == pytest.approx(10 - (1.875 + 10 / 16 + 1.75 + 10 / 8) / 2)


def test_values_are_those_of_the_states_and_actions() -> None:
    critic = Network([Links.dense(3, 1)], np.random.default_rng(0))
    critic.set_parameters(np.array([1, 0, 10, 0], dtype=np.float32))
    visits = Visits(gamma=1.0)
    visits.add_episode([Visit(OBS * 2, ACTION + 3, 5.0)], None)
    assert visits.bias(critic) == 2 + 30 - 5


def test_long_episodes_are_sampled() -> None:
    visits = Visits(gamma=0.0)
    visits.add_episode(steps(*range(1000)), None)
    assert len(visits._returns) == STATES
    assert (visits._returns[0], visits._returns[-1]) == (0, 999)


def test_a_copy_of_a_critic_keeps_its_values_while_the_agent_learns() -> None:
    rng = np.random.default_rng(0)
    critic = Network(wire((3, 8, 8, 1), rng, rule=SET(), sparsity=0.5), rng, layer_norm=True)
    copy, x = Critic.of(critic), batch_of(rng.normal(size=(3, 5)).astype(np.float32))
    before = critic.forward(x).array.copy()
    critic.adapt(SET(eta=0.5), rng)
    critic.set_parameters(critic.parameters * 2)
    assert np.array_equal(copy.network().forward(x).array, before)


class Bell(gymnasium.Env[Any, Any]):
    """Gives 1 at each step, and ends after ten."""

    observation_space, action_space = Box(-1, 1, (2,), dtype=np.float32), Box(-1, 1, (1,), dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return np.zeros(2, dtype=np.float32), 1.0, self.steps == 10, False, {}


def test_a_task_whose_values_are_known() -> None:
    with start(tiny.config(task="Bell", gamma=0.9), env=Bell) as run:
        agent = run.agent
        for critic, value in zip((agent.networks[name] for name in agent.critic_names), (7.0, -1.0), strict=True):
            parameters = np.zeros_like(critic.parameters)
            parameters[critic.bias_slots(critic.layers - 1)] = value
            critic.set_parameters(parameters)
        evaluator = Here(Source("Bell", Bell), 0, 2)
        evaluator.submit(Snapshot.of(agent, 0).with_critics(agent, critics_of(agent)))
    evaluation = evaluator.next(wait=True)
    evaluator.close()
    assert evaluation
    mean_return = np.mean([(1 - 0.9**left) / (1 - 0.9) for left in range(1, 11)])
    assert evaluation.q_bias == pytest.approx({"critic1": 7 - mean_return, "critic2": -1 - mean_return})
