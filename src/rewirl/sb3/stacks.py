"""Networks of Stable-Baselines3's TD3 and SAC as stacks of layers with ReLU, as in the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from rewirl.nn import Network, Target
from rewirl.policies import PolicyLayer
from rewirl.topology import Links

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Stack:
    """One network. Each layer is one Linear, or two whose outputs follow each other (SAC's mean and log-std)."""

    layers: Sequence[Sequence[nn.Linear]]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(len(self.bias(layer)) for layer in range(len(self.layers) - 1))

    def weight(self, layer: int) -> Floats:
        """A copy of a layer's weights, (outputs, inputs)."""
        return np.concatenate([linear.weight.detach().cpu().numpy() for linear in self.layers[layer]])

    def bias(self, layer: int) -> Floats:
        """A copy of a layer's biases."""
        return np.concatenate([linear.bias.detach().cpu().numpy() for linear in self.layers[layer]])

    def beside(self, layer: int, links: Links) -> NDArray[np.int64]:
        """Places where a layer has weights and a wiring has no links, ascending."""
        return np.setdiff1d(np.flatnonzero(_by_place(self.weight(layer), links).any(axis=1)), links.places)

    @torch.no_grad()
    def fill(self, layer: int, weight: Floats, bias: Floats) -> None:
        """Overwrites a layer."""
        start = 0
        for linear in self.layers[layer]:
            end = start + linear.out_features
            linear.weight.copy_(torch.from_numpy(weight[start:end].copy()))
            linear.bias.copy_(torch.from_numpy(bias[start:end].copy()))
            start = end

    def copy_from(self, source: Network | Target) -> None:
        """Takes over the weights of a network of the engine, or of a target."""
        for layer in range(len(self.layers)):
            if isinstance(source, Target):
                self.fill(layer, source.dense(layer), source.biases(layer))
            else:
                self.fill(layer, PolicyLayer.from_network(source, layer).dense(), source.biases(layer))

    def copy_to(self, network: Network, wiring: Sequence[Links]) -> None:
        """Gives its weights, and the links that they are for, to a network of the engine."""
        for layer, links in enumerate(wiring):
            network.rewire(layer, links)
        values = network.parameters.copy()
        for layer, links in enumerate(wiring):
            values[network.slots(layer)] = _by_place(self.weight(layer), links)[links.places]
            values[network.bias_slots(layer)] = self.bias(layer)
        network.set_parameters(values)

    def copy_to_target(self, target: Target) -> None:
        """Gives its weights to a target of the engine, whose network has its own already."""
        state = target.state()
        for layer in range(len(self.layers)):
            links = target.online.links(layer)
            by_place, extra = _by_place(self.weight(layer), links), self.beside(layer, links)
            state[f"weights.{layer}"] = by_place[links.places].ravel()
            state[f"extra_places.{layer}"], state[f"extra_weights.{layer}"] = extra, by_place[extra].ravel()
            state[f"bias.{layer}"] = self.bias(layer)
        target.load_state(state)


def stacks_of(model: TD3 | SAC, *, targets: bool = False) -> dict[str, Stack]:
    """The networks of an agent by the engine's names, or their targets; refused if the engine has no such networks."""
    if not isinstance(model, (TD3, SAC)):
        raise TypeError(f"{type(model).__name__} cannot be converted: TD3, DDPG and SAC can")
    space = model.observation_space
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"the engine's networks take a Box of one dimension, this agent observes {space}")
    if not isinstance(model.actor.features_extractor, FlattenExtractor):
        raise ValueError("the engine has no features extractors, and this agent has one")
    critic = model.critic_target if targets else model.critic
    found = {f"critic{i}": _stack(q) for i, q in enumerate(critic.q_networks, start=1)}
    if isinstance(model, TD3):
        found["actor"] = _stack((model.actor_target if targets else model.actor).mu)
    elif not targets:
        if model.use_sde:
            raise ValueError("the engine has no state-dependent exploration (use_sde), and this agent has it")
        found["actor"] = _stack(model.actor.latent_pi, [model.actor.mu, model.actor.log_std])
    return found


def _stack(hidden: nn.Module, outputs: Iterable[object] = ()) -> Stack:
    modules = [module for module in hidden.modules() if not list(module.children())]
    if modules and isinstance(modules[-1], nn.Tanh):
        modules.pop()  # a TD3 actor's: the engine's agents and policies have it outside of the network
    last = [module for module in outputs if isinstance(module, nn.Linear)]
    kinds = [type(module) for module in (*modules, *last[:1])]
    if kinds[::2] != [nn.Linear] * len(kinds[::2]) or kinds[1::2] != [nn.ReLU] * len(kinds[1::2]):
        named = ", ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"the engine's networks are Linear layers with ReLU between them, this one is {named}")
    layers: list[list[nn.Linear]] = [[module] for module in modules if isinstance(module, nn.Linear)]
    return Stack([*layers, *([last] if last else [])])


def _by_place(matrix: Floats, links: Links) -> Floats:
    """(outputs, inputs) as (places, block)."""
    return np.ascontiguousarray(matrix.T).reshape(links.n_places, links.block)
