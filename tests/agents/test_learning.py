"""Small tasks whose answers are known: an algorithm that is subtly broken does not find them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from rewirl import DQN, SET
from rewirl.nn import batch_of
from rewirl.storage import start
from rewirl.training import RunConfig, evaluate_policy

SMALL = {"hidden": (64, 64), "batch": 64, "random_steps": 500, "eval_every": 0, "replay_size": 20_000}
METHODS = [wiring + algorithm for algorithm in ("td3", "sac", "crossq") for wiring in ("", "static-", "ds-", "rigl-")]


def trained(method: str, env, steps: int, **given):
    sparse = "-" in method
    wiring = {"sparsity": 0.5} if sparse else {}
    if method.startswith(("ds-", "rigl-")):
        wiring["adapt_every"] = 100
    if method.endswith("crossq"):
        given = {"critic_hidden": (96, 96), "norm_warmup": 1000, **given}
    config = RunConfig.resolve(method=method, task="small", seed=1, steps=steps, **{**SMALL, **wiring, **given})
    run = start(config, env=env)
    run.train()
    return run


def values(agent, obs: list[float], action: list[float]) -> np.ndarray:
    x = batch_of(np.array([*obs, *action], dtype=np.float32)[:, None])
    return np.array([critic.forward(x).array[0, 0] for critic in agent.critics])


class Bandit(gym.Env):
    """One step: the reward is largest at a = 1.25, in a box that is not symmetric.

    What it shows may be random: batch normalisation makes nothing of what is always the same.
    """

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Box(np.array([-1.0], np.float32), np.array([2.0], np.float32))

    def __init__(self, random: bool = False) -> None:
        self.random = random

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown(), {}

    def step(self, action):
        return self.shown(), -float((action[0] - 1.25) ** 2), True, False, {}

    def shown(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32) if self.random else np.array([0.5, -0.5], np.float32)


class Endless(gym.Env):
    """A reward of 1 for ever, cut off by a time limit of 5 steps, or ended by it."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, ends: bool, random: bool = False) -> None:
        self.ends, self.random, self.t = ends, random, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.shown(), {}

    def step(self, action):
        self.t += 1
        over = self.t == 5
        return self.shown(), 1.0, over and self.ends, over and not self.ends, {}

    def shown(self):
        return self.np_random.uniform(-1, 1, 1).astype(np.float32) if self.random else np.zeros(1, np.float32)


@pytest.mark.parametrize("method", METHODS)
def test_the_best_action_of_a_bandit_is_found(method: str) -> None:
    run = trained(
        method, lambda: Bandit("crossq" in method), 2500, **({} if method.endswith("td3") else {"alpha": 0.01})
    )
    action, _ = run.policy().predict(np.array([0.5, -0.5], np.float32))
    assert action[0] == pytest.approx(1.25, abs=0.15)
    # the value of the best action is 0, that of the lower end -(2.25)²
    best, worst = (values(run.agent, [0.5, -0.5], [a]) for a in (0.5, -1.0))
    assert best == pytest.approx(0, abs=0.4)
    assert worst == pytest.approx(-(2.25**2), abs=1.0)


@pytest.mark.parametrize("method", ["td3", "ds-td3", "ds-sac", "crossq", "ds-crossq"])
def test_a_time_limit_is_not_an_end(method: str) -> None:
    given = {"gamma": 0.9, **({} if method.endswith("crossq") else {"tau": 0.05})}
    if not method.endswith("td3"):
        given["alpha"] = 0.0
    if method == "ds-sac":
        given["lr"] = 1e-3
    cut_off = trained(method, lambda: Endless(ends=False, random="crossq" in method), 4000, **given)
    # 1 + γ + γ² + … = 10. Taken for an end, one step in five would be worth 1: 1 / (1 - 0.9·0.8) = 3.6 altogether.
    assert values(cut_off.agent, [0.0], [0.0]) == pytest.approx(10, abs=0.8)
    ended = trained(method, lambda: Endless(ends=True, random="crossq" in method), 4000, **given)
    assert values(ended.agent, [0.0], [0.0]) == pytest.approx(1 / (1 - 0.9 * 0.8), abs=0.5)


@pytest.mark.parametrize("method", ["ds-td3", "ds-sac", "ds-crossq"])
def test_a_sparse_agent_swings_the_pendulum_up(method: str) -> None:
    """A random policy gets about -1200, and one that does not use the whole ±2 box of torques cannot swing it up."""
    given = {"lr": 1e-3, "weight_decay": 0.0}
    run = trained(method, "Pendulum-v1", 14_000, **given)
    result = evaluate_policy(run.policy(), "Pendulum-v1", episodes=11, seed=5)
    assert np.median(result.returns) > -200


class Corridor(gym.Env):
    """Cells 0 to 5: action 5 goes left, 6 goes right. The right end is worth 1, the left end 0.5."""

    observation_space = gym.spaces.Box(0, 1, (6,), np.float32)
    action_space = gym.spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(1, 5))
        return np.eye(6, dtype=np.float32)[self.cell], {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.cell += 1 if action == 6 else -1
        reward = {0: 0.5, 5: 1.0}.get(self.cell, 0.0)
        return np.eye(6, dtype=np.float32)[self.cell], reward, self.cell in (0, 5), False, {}


@pytest.mark.parametrize("method", ["dqn", "static-dqn", "ds-dqn", "rigl-dqn"])
def test_dqn_finds_the_values_of_a_corridor(method: str) -> None:
    """With γ = 0.9 it pays to go right from every cell: 0.9³ = 0.73 from cell 1, more than the 0.5 on the left."""
    given = {"gamma": 0.9, "tau": 0.05, "lr": 2e-3, "epsilon_steps": 500, "epsilon_end": 0.3}
    run = trained(method, Corridor, 2500, **given)
    cells = np.eye(6, dtype=np.float32)[1:5]
    assert run.policy().predict(cells)[0].tolist() == [6, 6, 6, 6]
    right = 0.9 ** np.arange(3, -1, -1)
    assert run.policy().outputs(cells)[:, 1] == pytest.approx(right, abs=0.08)
    left = np.array([0.5, *(0.9 * right[:3])])
    assert run.policy().outputs(cells)[:, 0] == pytest.approx(left, abs=0.12)


def test_a_sparse_dqn_balances_a_pole() -> None:
    """A random policy falls after about 20 steps, one that pushes where the pole leans after about 40."""
    options = {"hidden": (64, 64), "batch": 64, "random_steps": 500, "epsilon_steps": 2000, "eval_every": 0}
    with DQN("CartPole-v1", wiring=SET(every=100), sparsity=0.5, seed=1, **options) as agent:
        assert agent.learn(6000).evaluate(episodes=10, seed=5).mean > 90
