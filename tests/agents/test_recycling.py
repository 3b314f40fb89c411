"""Agents recycle dead neurons when it is time: every network, its target and the number of links."""

from __future__ import annotations

import numpy as np
import pytest

from rewirl import TD3
from rewirl.agents import (
    CrossQAgent,
    CrossQOptions,
    DQNAgent,
    DQNOptions,
    SACAgent,
    SACOptions,
    TD3Agent,
    TD3Options,
    Transitions,
    WiringOptions,
)
from rewirl.topology import SET, Dense, RigL, Rule, Static

N_OBS, N_ACT = 5, 3
AGENTS = {
    "td3": (TD3Agent, TD3Options(hidden=(16, 16), batch=32)),
    "sac": (SACAgent, SACOptions(hidden=(16, 16), batch=32)),
    "crossq": (CrossQAgent, CrossQOptions(hidden=(16, 16), critic_hidden=(20, 16), batch=32, policy_delay=2)),
    "dqn": (DQNAgent, DQNOptions(hidden=(16, 16), batch=32)),
}
RULES: dict[str, tuple[Rule, int]] = {
    "dense": (Dense(), 1),
    "static": (Static(), 1),
    "set": (SET(eta=0.2, every=10, min_links=2), 1),
    "set, blocks of 4": (SET(eta=0.2, every=10, min_links=2), 4),
    "rigl, blocks of 2": (RigL(eta=0.2, every=10, min_links=2), 2),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("algorithm", AGENTS)
def test_killed_neurons_are_recycled_when_it_is_time(algorithm: str, rule: str) -> None:
    kind, options = AGENTS[algorithm]
    chosen, block = RULES[rule]
    wiring = WiringOptions(
        rule=chosen, sparsity=0.5 if chosen.sparse else None, block=block, recycle=0.0, recycle_every=10
    )
    actions = kind.actions_class.of_size(N_ACT)
    agent = kind(N_OBS, actions, options, wiring, np.random.default_rng(0))
    counts = {name: network.counts for name, network in agent.networks.items()}
    for network in agent.networks.values():
        parameters = network.parameters.copy()
        for layer in (0, 1):
            parameters[network.bias_slots(layer)][:4] = -1000
        network.set_parameters(parameters)
    rng = np.random.default_rng(1)
    records = rng.standard_normal((200, Transitions.width(N_OBS, N_ACT))).astype(np.float32)
    records[:, N_OBS : N_OBS + N_ACT] = [actions.draw(rng) for _ in records]
    records[:, N_OBS + N_ACT + 1] = 0
    batch = Transitions(N_OBS, N_ACT, 32)

    def update(times: int) -> None:
        for _ in range(times):
            batch.fill(records, rng.integers(0, 200, 32))
            agent.update(batch)

    update(9)
    assert all((net.biases(layer)[:4] < -900).all() for net in agent.networks.values() for layer in (0, 1))
    update(2)  # the actor of TD3 learns at every other one
    for name, network in agent.networks.items():
        assert network.counts == counts[name]
        for layer in (0, 1):
            assert (np.abs(network.biases(layer)) < 2).all()
            if network.batch_norm:
                scale, shift = (network.parameters[at][:4] for at in network.norm_slots(layer + 1))
                assert (np.abs(scale - 1) < 0.1).all()
                assert (np.abs(shift) < 0.1).all()
                assert (network.statistics(layer + 1)[1][:4] > 0.9).all()  # of the dead it had fallen
            if name in agent.targets:
                assert (np.abs(agent.targets[name].biases(layer)) < 2).all()


def test_from_python() -> None:
    agent = TD3("Pendulum-v1", wiring=SET(every=50, min_links=3), recycle=0.1, hidden=(8, 8), random_steps=50, seed=1)
    assert agent.config.wiring().rule == SET(every=50, min_links=3)
    assert agent.config.wiring().recycle == 0.1
    agent.learn(120)
    dense = TD3("Pendulum-v1", recycle=0, adapt_every=50, hidden=(8, 8), random_steps=50)
    assert [update for update in range(120) if dense.config.wiring().due(update)] == [50, 100]
