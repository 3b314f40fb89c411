"""Vector environments: the same episodes as one by one, whatever the autoreset mode; none counted twice, none cut."""

from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RescaleAction, TimeLimit

import rewirl
from rewirl import SAC, TD3
from rewirl.errors import Failed, Refused
from rewirl.training import evaluate_policy
from rewirl.training.evaluation.vector import evaluate_vector

SMALL = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 0, "replay_size": 2000}


@pytest.fixture(scope="module")
def policy():
    return TD3("tiny/Walk-v0", seed=3, **SMALL).learn(150).policy()


def one_by_one(policy, make, shares, seed):
    """What the sub-environments must have played."""
    parts = [evaluate_policy(policy, make, episodes=share, seed=seed + i) for i, share in enumerate(shares) if share]
    return [value for part in parts for value in part.returns], [n for part in parts for n in part.lengths]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("episodes", "shares"), [(10, (4, 3, 3)), (3, (1, 1, 1)), (2, (1, 1, 0))])
def test_the_same_episodes_as_one_by_one(policy, mode, episodes, shares):
    envs = SyncVectorEnv([tiny.Walk] * 3, autoreset_mode=mode)
    seen = evaluate_vector(policy, envs, episodes=episodes, seed=11)
    returns, lengths = one_by_one(policy, tiny.Walk, shares, seed=11)
    assert list(seen.lengths) == lengths
    np.testing.assert_allclose(seen.returns, returns, rtol=1e-5)
    assert len(set(lengths)) > 1  # they end at different times


def test_environments_in_other_processes(policy):
    envs = AsyncVectorEnv([tiny.Walk] * 2)
    try:
        seen = evaluate_vector(policy, envs, episodes=4, seed=2)
    finally:
        envs.close()
    returns, lengths = one_by_one(policy, tiny.Walk, (2, 2), seed=2)
    assert list(seen.lengths) == lengths
    np.testing.assert_allclose(seen.returns, returns, rtol=1e-5)


def test_wrappers_and_agents(policy):
    def wrapped() -> gymnasium.Env:
        return TimeLimit(RescaleAction(tiny.Walk(), np.float32(-1), np.float32(1)), 5)

    agent = SAC(wrapped, seed=1, **SMALL).learn(100)
    seen = evaluate_vector(agent, SyncVectorEnv([wrapped] * 2), episodes=6, seed=4)
    assert max(seen.lengths) == 5
    returns, _ = one_by_one(agent.policy(), wrapped, (3, 3), seed=4)
    np.testing.assert_allclose(seen.returns, returns, rtol=1e-5)


def test_vector_wrappers_are_kept(policy):
    envs = gymnasium.wrappers.vector.TransformReward(SyncVectorEnv([tiny.Walk] * 2), lambda reward: reward * 0 + 1)
    seen = rewirl.evaluate_vector(policy, envs, episodes=4)
    assert seen.returns == tuple(map(float, seen.lengths))


def test_short_episodes_do_not_count_too_often():
    """Of two sub-environments one always takes 1 step and the other 9: half of the episodes are of each."""

    class Fixed(tiny.Walk):
        def __init__(self, length: int) -> None:
            self.length = length

        def step(self, action):
            obs, reward, *_, info = super().step(action)
            return obs, reward, False, self.steps == self.length, info

    class Still:
        def predict(self, obs, *, deterministic=True):
            return np.zeros((len(obs), 2), dtype=np.float32), None

    envs = SyncVectorEnv([partial(Fixed, 1), partial(Fixed, 9)])
    assert evaluate_vector(Still(), envs, episodes=6).lengths == (1, 1, 1, 9, 9, 9)


def test_refusals(policy):
    envs = SyncVectorEnv([tiny.Walk])
    with pytest.raises(Refused, match="at least 1 episode"):
        evaluate_vector(policy, envs, episodes=0)
    with pytest.raises(Refused, match="not for these environments: an observation of this policy is 3 numbers"):
        evaluate_vector(policy, gymnasium.make_vec("HalfCheetah-v5", num_envs=2))

    class Infinite(tiny.Walk):
        def step(self, action):
            obs, _, *rest = super().step(action)
            return obs, float("inf"), *rest

    with pytest.raises(Failed, match="sub-environment 1 gave a reward that is not finite, seed 8"):
        evaluate_vector(policy, SyncVectorEnv([tiny.Walk, Infinite]), episodes=2, seed=7)
