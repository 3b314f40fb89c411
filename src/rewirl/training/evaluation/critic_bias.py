"""Critic bias: how much critics overestimate the returns of the evaluation episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewirl.agents import Agent
from rewirl.nn import BatchNorm, Network, batch_of
from rewirl.policies.scaling import Scaling
from rewirl.topology import Links

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[np.generic]]

STATES = 20
"""States per episode at which values are compared."""


def rebuilt(
    sizes: Sequence[int],
    blocks: Sequence[int],
    state: Arrays,
    *,
    layer_norm: bool = False,
    batch_norm: BatchNorm | None = None,
) -> Network:
    """A copy of a network with the given state; ValueError if the state does not fit."""
    links = [
        Links(n_in, n_out, block, state[f"places.{layer}"])  # type: ignore[arg-type]
        for layer, (n_in, n_out, block) in enumerate(zip(sizes, sizes[1:], blocks, strict=False))
    ]
    network = Network(links, np.random.default_rng(0), layer_norm=layer_norm, batch_norm=batch_norm)
    network.load_state(state)
    return network


@dataclass(frozen=True)
class Critic:
    """Weights and links of a critic at the start of an evaluation."""

    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    layer_norm: bool
    batch_norm: BatchNorm | None
    arrays: Arrays

    @classmethod
    def of(cls, network: Network) -> Critic:
        state, names = network.state(), ("parameters", "places", "mean", "variance", "batches")
        kept = {name: array for name, array in state.items() if name.split(".")[0] in names}
        return cls.with_arrays(network, kept)

    @classmethod
    def with_arrays(cls, network: Network, arrays: Arrays) -> Critic:
        blocks = tuple(network.links(layer).block for layer in range(network.layers))
        return cls(network.sizes, blocks, network.layer_norm, network.batch_norm, arrays)

    def network(self) -> Network:
        """A separate network; ValueError if the arrays do not fit."""
        if "parameters" not in self.arrays:
            raise ValueError("a critic lacks its parameters")
        moments = np.zeros_like(self.arrays["parameters"])
        state = {"first_moments": moments, "second_moments": moments, "steps": np.array(0, dtype=np.int64)}
        arrays = {**self.arrays, **state}
        return rebuilt(self.sizes, self.blocks, arrays, layer_norm=self.layer_norm, batch_norm=self.batch_norm)


class Visit(NamedTuple):
    """A step of an evaluation episode."""

    obs: Floats
    action: Floats
    reward: float


class Visits:
    """States of evaluation episodes, the actions taken, and the discounted returns from there.

    An episode that a time limit cut off has no complete return. Its second half is left out, and the
    critic's own value of its last state replaces the missing part. At γ = 0.99 and 500 steps earlier its weight is
    γ^500 < 1%.
    """

    def __init__(self, gamma: float, scaling: Scaling | None = None) -> None:
        """`scaling` makes of observations and rewards what critics learn from."""
        self._gamma, self._scaling = gamma, scaling or Scaling()
        self._inputs: list[Floats] = []
        self._last_inputs: list[Floats] = []
        self._returns: list[float] = []
        self._discounts: list[float] = []

    def add_episode(self, steps: Sequence[Visit], last: tuple[Floats, Floats] | None) -> None:
        """`last` is the last observation and the action there, if a time limit truncated the episode; None if it
        terminated."""
        length, total, returns = len(steps), 0.0, [0.0] * len(steps)
        rewards = np.array([step.reward for step in steps])
        self._scaling.rewards(rewards)
        for t in reversed(range(length)):
            total = returns[t] = float(rewards[t]) + self._gamma * total
        usable = length if last is None else (length + 1) // 2
        for t in np.unique(np.linspace(0, usable - 1, min(usable, STATES)).round().astype(int)).tolist():
            own = self._input(steps[t].obs, steps[t].action)
            self._inputs.append(own)
            self._last_inputs.append(own if last is None else self._input(*last))
            self._returns.append(returns[t])
            self._discounts.append(0.0 if last is None else self._gamma ** (length - t))

    def _input(self, obs: Floats, action: Floats) -> Floats:
        return np.concatenate([self._scaling.observation(obs), action])

    def bias(self, critic: Network) -> float:
        """Mean of Q(s, a) minus the return from there."""
        values, last = (
            critic.forward(batch_of(np.stack(inputs, axis=1))).array[0].astype(np.float64)
            for inputs in (self._inputs, self._last_inputs)
        )
        return float(np.mean(values - (np.array(self._returns) + np.array(self._discounts) * last)))


def critics_of(agent: Agent) -> dict[str, Critic]:
    """Copies of an agent's critics, by name."""
    return {name: Critic.of(agent.networks[name]) for name in agent.critic_names}


def biases(critics: Mapping[str, Critic], visits: Visits) -> dict[str, float]:
    """The bias of each critic, by name; without critics that diverged."""
    found = {name: visits.bias(critic.network()) for name, critic in critics.items()}
    return {name: bias for name, bias in found.items() if math.isfinite(bias)}
