"""The networks that a Stable-Baselines3 agent is made of."""

from __future__ import annotations

from dataclasses import dataclass

from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import nn
from torch.optim import Optimizer

from rewirl.torch.layers import Layer


@dataclass(frozen=True, eq=False)
class AgentNetwork:
    """One network of an agent, wired separately as in the engine."""

    name: str
    """Its name: actor, critic1, critic2 as in the engine; others by their purpose."""
    module: nn.ModuleDict
    """Its parts in the order of the forward pass."""
    optimizer: Optimizer
    """Its optimizer."""
    target: nn.ModuleDict | None = None
    """The same parts of its target."""
    dense: int = 1
    """Number of output layers at its end, which stay dense."""

    @property
    def sparse_layers(self) -> list[str]:
        """Names of the layers to make sparse."""
        names = [name for name, part in self.module.named_modules() if isinstance(part, Layer)]
        return names[: len(names) - self.dense]


def agent_networks(model: BaseAlgorithm) -> list[AgentNetwork]:
    """The networks of an agent that have a layer to make sparse.

    A features extractor that has layers counts as a network of its own, all of it sparse.
    """
    if isinstance(model, TD3):  # DDPG too
        found = _td3(model)
    elif isinstance(model, SAC):
        found = _sac(model)
    elif isinstance(model, DQN):
        found = _dqn(model)
    elif isinstance(model, (A2C, PPO)):
        found = _on_policy(model)
    else:
        raise TypeError(f"{type(model).__name__} is not known here: TD3, DDPG, SAC, DQN, A2C and PPO are")
    sparse = [network for network in found if network.sparse_layers]
    if not sparse:
        raise ValueError(
            f"this {type(model).__name__} has no hidden layers (net_arch): there is nothing to wire sparse"
        )
    return sparse


def clock(model: BaseAlgorithm) -> Optimizer:
    """The optimizer whose steps are the agent's updates: the critics', where actors follow with a delay."""
    optimizer: Optimizer = model.critic.optimizer if isinstance(model, (TD3, SAC)) else model.policy.optimizer
    return optimizer


def _td3(model: TD3) -> list[AgentNetwork]:
    actor, critic = model.actor, model.critic
    actor_target, critic_target = model.actor_target, model.critic_target
    return [
        _features("actor", actor, actor.optimizer, actor_target),
        AgentNetwork("actor", _parts(mu=actor.mu), actor.optimizer, _parts(mu=actor_target.mu)),
        *([] if critic.share_features_extractor else [_features("critic", critic, critic.optimizer, critic_target)]),
        *_critics(model),
    ]


def _sac(model: SAC) -> list[AgentNetwork]:
    actor, critic = model.actor, model.critic
    # With gSDE the log-std is a parameter, and no layer.
    outputs = {"mu": actor.mu, **({"log_std": actor.log_std} if isinstance(actor.log_std, nn.Module) else {})}
    shared = critic.share_features_extractor
    return [
        _features("actor", actor, actor.optimizer, model.critic_target if shared else None),
        AgentNetwork("actor", _parts(latent_pi=actor.latent_pi, **outputs), actor.optimizer, dense=len(outputs)),
        *([] if shared else [_features("critic", critic, critic.optimizer, model.critic_target)]),
        *_critics(model),
    ]


def _dqn(model: DQN) -> list[AgentNetwork]:
    optimizer, q, target = model.policy.optimizer, model.q_net, model.q_net_target
    return [
        _features("q", q, optimizer, target),
        AgentNetwork("q", _parts(q_net=q.q_net), optimizer, _parts(q_net=target.q_net)),
    ]


def _on_policy(model: A2C | PPO) -> list[AgentNetwork]:
    policy = model.policy
    extractors = {"features": policy.pi_features_extractor}
    if not policy.share_features_extractor:
        extractors = {"actor.features": policy.pi_features_extractor, "value.features": policy.vf_features_extractor}
    mlp = policy.mlp_extractor
    return [
        *(AgentNetwork(name, _parts(features=m), policy.optimizer, dense=0) for name, m in extractors.items()),
        AgentNetwork("actor", _parts(hidden=mlp.policy_net, out=policy.action_net), policy.optimizer),
        AgentNetwork("value", _parts(hidden=mlp.value_net, out=policy.value_net), policy.optimizer),
    ]


def _critics(model: TD3 | SAC) -> list[AgentNetwork]:
    pairs = zip(model.critic.q_networks, model.critic_target.q_networks, strict=True)
    return [
        AgentNetwork(f"critic{i}", _parts(q=q), model.critic.optimizer, _parts(q=target))
        for i, (q, target) in enumerate(pairs, start=1)
    ]


def _features(name: str, owner: nn.Module, optimizer: Optimizer, target: nn.Module | None) -> AgentNetwork:
    def parts(of: nn.Module) -> nn.ModuleDict:
        return _parts(features=of.get_submodule("features_extractor"))

    return AgentNetwork(f"{name}.features", parts(owner), optimizer, parts(target) if target else None, dense=0)


def _parts(**modules: nn.Module) -> nn.ModuleDict:
    return nn.ModuleDict(modules)
