"""Which networks an agent has, and which of their layers are sparse."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm

from rewirl.sb3.networks import agent_networks, clock

torch.set_num_threads(1)


class Images(gym.Env):
    observation_space = spaces.Box(0, 255, (3, 36, 36), np.uint8)

    def __init__(self, action_space: spaces.Space) -> None:
        self.action_space = action_space


def small(**more: object) -> dict[str, object]:
    """Created for each agent, because agents write into it."""
    return {"net_arch": [16, 8], **more}


BUFFER = {"buffer_size": 10}


@pytest.mark.parametrize(
    ("kind", "env", "expected"),
    [
        (TD3, "Pendulum-v1", {"actor": ["mu.0", "mu.2"], "critic1": ["q.0", "q.2"], "critic2": ["q.0", "q.2"]}),
        (DDPG, "Pendulum-v1", {"actor": ["mu.0", "mu.2"], "critic1": ["q.0", "q.2"]}),
        (
            SAC,
            "Pendulum-v1",
            {"actor": ["latent_pi.0", "latent_pi.2"], "critic1": ["q.0", "q.2"], "critic2": ["q.0", "q.2"]},
        ),
        (DQN, "CartPole-v1", {"q": ["q_net.0", "q_net.2"]}),
        (A2C, "CartPole-v1", {"actor": ["hidden.0", "hidden.2"], "value": ["hidden.0", "hidden.2"]}),
        (PPO, "Pendulum-v1", {"actor": ["hidden.0", "hidden.2"], "value": ["hidden.0", "hidden.2"]}),
    ],
)
def test_multi_layer_perceptrons(kind: type[BaseAlgorithm], env: str, expected: dict[str, list[str]]) -> None:
    options = {} if kind in (A2C, PPO) else BUFFER
    model = kind("MlpPolicy", env, policy_kwargs=small(), device="cpu", **options)
    networks = agent_networks(model)
    assert {network.name: network.sparse_layers for network in networks} == expected
    for network in networks:
        shapes = [tuple(p.shape) for p in network.module.parameters()]
        assert shapes[0][0] == 16
        if network.target is not None:
            assert [tuple(p.shape) for p in network.target.parameters()] == shapes
            assert not {id(p) for p in network.target.parameters()} & {id(p) for p in network.module.parameters()}
    trained = {id(p) for network in networks for group in network.optimizer.param_groups for p in group["params"]}
    assert {id(p) for network in networks for p in network.module.parameters()} <= trained
    with_target = {TD3: 3, DDPG: 2, SAC: 2, DQN: 1}.get(kind, 0)
    assert sum(network.target is not None for network in networks) == with_target


CONVOLUTIONAL = ["features.cnn.0", "features.cnn.2", "features.cnn.4", "features.linear.0"]


@pytest.mark.parametrize(
    ("kind", "shared", "names", "targets"),
    [
        (TD3, True, ["actor.features", "actor", "critic1", "critic2"], 4),
        (TD3, False, ["actor.features", "actor", "critic.features", "critic1", "critic2"], 5),
        (SAC, True, ["actor.features", "actor", "critic1", "critic2"], 3),
        (SAC, False, ["actor.features", "actor", "critic.features", "critic1", "critic2"], 3),
        (PPO, True, ["features", "actor", "value"], 0),
        (PPO, False, ["actor.features", "value.features", "actor", "value"], 0),
    ],
)
def test_features_of_images_are_networks_of_their_own(
    kind: type[BaseAlgorithm], shared: bool, names: list[str], targets: int
) -> None:
    env = Images(spaces.Box(-1, 1, (2,)))
    options = {} if kind is PPO else BUFFER
    model = kind("CnnPolicy", env, policy_kwargs=small(share_features_extractor=shared), device="cpu", **options)
    networks = agent_networks(model)
    assert [network.name for network in networks] == names
    assert sum(network.target is not None for network in networks) == targets
    for network in networks:
        if network.name.endswith("features"):
            assert network.sparse_layers == CONVOLUTIONAL
        owned = {id(p) for group in network.optimizer.param_groups for p in group["params"]}
        assert {id(p) for p in network.module.parameters()} <= owned


def test_a_network_without_hidden_layers_is_left_alone() -> None:
    model = PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": {"pi": [8], "vf": []}}, device="cpu")
    assert [network.name for network in agent_networks(model)] == ["actor"]
    model = PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": []}, device="cpu")
    with pytest.raises(ValueError, match="this PPO has no hidden layers"):
        agent_networks(model)


def test_state_dependent_exploration_has_one_output_layer() -> None:
    model = SAC("MlpPolicy", "Pendulum-v1", use_sde=True, policy_kwargs=small(), device="cpu", **BUFFER)
    assert agent_networks(model)[0].sparse_layers == ["latent_pi.0", "latent_pi.2"]


def test_other_algorithms_are_refused() -> None:
    with pytest.raises(TypeError, match="str is not known here: TD3, DDPG, SAC, DQN, A2C and PPO are"):
        agent_networks("PPO")


def test_updates_are_the_critics() -> None:
    model = TD3("MlpPolicy", "Pendulum-v1", policy_kwargs=small(), device="cpu", **BUFFER)
    assert clock(model) is model.critic.optimizer
    model = PPO("MlpPolicy", "CartPole-v1", device="cpu")
    assert clock(model) is model.policy.optimizer
