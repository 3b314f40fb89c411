"""CrossQ's statistics: whose batches they are, when they change, and that a policy has them in its weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rewirl.agents import ActionBox, CrossQAgent, CrossQOptions, Transitions, WiringOptions
from rewirl.policies import Policy
from rewirl.topology import SET, Dense, Rule

N_OBS, N_ACT, N = 5, 2, 32


def trained(updates: int, rule: Rule | None = None) -> tuple[CrossQAgent, Transitions]:
    rng = np.random.default_rng(3)
    records = (2 * rng.standard_normal((300, Transitions.width(N_OBS, N_ACT))) + 1).astype(np.float32)
    records[:, N_OBS : N_OBS + N_ACT] = np.tanh(records[:, N_OBS : N_OBS + N_ACT])
    records[:, N_OBS + N_ACT + 1] = 0
    options = CrossQOptions(hidden=(24, 16), critic_hidden=(48, 32), batch=N, norm_momentum=0.9, norm_warmup=10)
    wiring = WiringOptions(rule=rule or Dense(), sparsity=0.6 if rule else None)
    box = ActionBox([-2.0, 0.0], [2.0, 3.0])
    agent, batch = CrossQAgent(N_OBS, box, options, wiring, np.random.default_rng(0)), Transitions(N_OBS, N_ACT, N)
    for _ in range(updates):
        batch.fill(records, rng.integers(0, 300, N))
        agent.update(batch)
    return agent, batch


def test_critics_see_states_and_next_states_in_one_batch() -> None:
    agent, batch = trained(1)
    joint = np.concatenate([batch.state_action.array, batch.next_state_action.array], axis=1, dtype=np.float64)
    for critic in agent.critics:
        mean, variance = critic.statistics(0)
        np.testing.assert_allclose(mean, 0.1 * joint.mean(axis=1), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(variance, 0.9 + 0.1 * joint.var(axis=1), rtol=1e-5)


def test_statistics_change_in_the_networks_own_updates_alone() -> None:
    agent, _ = trained(7)
    assert [int(net.state()["batches"]) for net in agent.networks.values()] == [7 // 3, 7, 7]
    before = agent.state()
    agent.act(np.ones(N_OBS, dtype=np.float32))
    agent.explore(np.ones(N_OBS, dtype=np.float32))
    agent.policy()
    after = agent.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("rule", [None, SET(eta=0.2, every=5)])
def test_a_policy_acts_as_its_agent(rule: Rule | None, tmp_path: Path) -> None:
    agent, _ = trained(60, rule)
    agent.policy("Mine-v0").save(tmp_path / "p.safetensors")
    policy = Policy.load(tmp_path / "p.safetensors")
    assert policy.is_gaussian
    assert sum(policy.links) == agent.actor.count
    plain = [agent.actor.weights(layer) for layer in range(agent.actor.layers)]
    assert any(np.abs(agent.actor.plain(layer)[0] - plain[layer]).max() > 0.1 for layer in range(agent.actor.layers))
    observations = (2 * np.random.default_rng(1).standard_normal((50, N_OBS)) + 1).astype(np.float32)
    for obs in observations:
        np.testing.assert_allclose(policy.predict(obs)[0], agent.box.to_env(agent.act(obs)), rtol=1e-4, atol=1e-5)


def test_a_policy_is_still_right_after_more_updates() -> None:
    agent, batch = trained(6)
    obs = np.ones(N_OBS, dtype=np.float32)
    before = agent.act(obs).copy()
    for _ in range(30):
        agent.update(batch)
    after = agent.act(obs).copy()
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(agent.policy().predict(obs)[0], agent.box.to_env(after), rtol=1e-4, atol=1e-5)
