"""Running statistics, against VecNormalize of Stable-Baselines3 and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from rewirl.agents import Transitions
from rewirl.agents.normaliser import Normaliser
from rewirl.nn import Batch, standardise

GAMMA = 0.9


def fed(n_envs: int, steps: int = 60):
    """A normaliser and VecNormalize that have seen the same."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    import tiny

    vec = vec_env.VecNormalize(vec_env.DummyVecEnv([tiny.Walk] * n_envs), gamma=GAMMA)
    vec.seed(3)
    vec.reset()
    ours, rng = Normaliser("observations,rewards", n_obs=3, gamma=GAMMA), np.random.default_rng(0)
    for obs in vec.get_original_obs():
        ours.saw(obs)
    ends = 0
    for _ in range(steps):
        _, _, ended, _ = vec.step(rng.uniform([-2, 0], [2, 1], (n_envs, 2)).astype(np.float32))
        for env, obs in enumerate(vec.get_original_obs()):
            ours.saw(obs)
            ours.earned(vec.get_original_reward()[env], ended[env], env)
        ends += int(ended.sum())
    assert ends  # the discounted return began anew
    return ours, vec


@pytest.mark.parametrize("n_envs", [1, 3])
def test_as_vecnormalize(n_envs):
    ours, vec = fed(n_envs)
    np.testing.assert_allclose(ours._observations.mean, vec.obs_rms.mean, rtol=1e-7)
    np.testing.assert_allclose(ours._observations.variance, vec.obs_rms.var, rtol=1e-7)
    np.testing.assert_allclose(ours._returns.variance, [vec.ret_rms.var], rtol=1e-5)  # its rewards are float32
    obs = np.array([[0, 1, -2], [50, -100, 3]], dtype=np.float32)
    np.testing.assert_allclose(ours.scaling.observation(obs), vec.normalize_obs(obs), rtol=1e-5)
    rewards = np.array([-3, 500, -1e6], dtype=np.float32)
    expected = vec.normalize_reward(rewards)
    ours.scaling.rewards(rewards)
    np.testing.assert_allclose(rewards, expected, rtol=1e-5)


def test_a_batch_is_normalised_where_networks_read_it():
    normaliser = Normaliser("observations,rewards", 2, GAMMA)
    rng = np.random.default_rng(1)
    for obs in rng.normal((5, -3), (2, 0.1), (50, 2)).astype(np.float32):
        normaliser.saw(obs)
        normaliser.earned(obs[0], ended=False)
    records = rng.normal(0, 30, (8, 7)).astype(np.float32)
    batch = Transitions(n_obs=2, n_act=1, size=8)
    batch.fill(records, np.arange(8))
    normaliser.normalise(batch, steps=3)
    scaling = normaliser.scaling
    for rows, columns in ((batch.obs, slice(0, 2)), (batch.next_obs, slice(5, 7))):
        right = np.clip((records[:, columns] - scaling.mean) / scaling.std, -10, 10)
        np.testing.assert_array_equal(rows.array.T, right)
        np.testing.assert_array_equal(scaling.observation(records[:, columns]), right)
    np.testing.assert_array_equal(batch.reward.array[0], np.clip(records[:, 3] / scaling.reward_std, -30, 30))
    np.testing.assert_array_equal(batch.action.array[0], records[:, 2])
    np.testing.assert_array_equal(batch.terminated.array[0], records[:, 4])


def test_nothing_is_normalised_unless_asked_for():
    normaliser = Normaliser(None, 2, GAMMA)
    obs = np.array([100, 200], dtype=np.float32)
    normaliser.saw(obs)
    normaliser.earned(1e9, ended=False)
    assert normaliser.scaling.observation(obs) is obs
    assert normaliser.state() == {}


def test_observations_of_any_size_stay_finite():
    normaliser = Normaliser("observations", 2, GAMMA)
    for value in (3e38, -3e38, 3e38):
        normaliser.saw(np.array([value, 7], dtype=np.float32))
    with np.errstate(over="ignore"):
        seen = normaliser.scaling.observation(np.array([-3e38, 8], dtype=np.float32))
    assert np.isfinite(seen).all()
    assert abs(seen[1]) <= 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("observations.mean", np.zeros(3)),
        ("observations.mean", np.array([0, np.inf])),
        ("observations.mean", np.zeros(2, dtype=np.float32)),
        ("observations.variance", np.array([1.0, -1.0])),
        ("observations.count", np.zeros(1)),
        ("running", np.zeros(0)),
        ("running", np.array([np.inf])),
        ("more", np.zeros(1)),
    ],
)
def test_a_damaged_state_is_refused(name, value):
    normaliser = Normaliser("observations,rewards", 2, GAMMA)
    with pytest.raises(ValueError, match="normalisation"):
        normaliser.load_state({**normaliser.state(), name: value})


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (2, 2)])
def test_statistics_of_another_number_of_features_are_refused(sizes: tuple[int, int]) -> None:
    mean, std = (np.ones(size, dtype=np.float32) for size in sizes)
    with pytest.raises(ValueError, match=r"feature"):
        standardise(Batch(3, 5), mean, std, 10.0)
