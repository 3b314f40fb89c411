"""Training diagnostics of every layer of every network. docs/inspecting.md explains each number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from rewirl.agents import Agent, Transitions
from rewirl.nn import Network, dormant
from rewirl.training.measurements import DiagnosticsRow
from rewirl.training.replay import Replay

SAMPLE = 500
"""Minimum number of transitions on which activations are measured; rounded up to whole batches."""
DORMANT = 0.025
"""Largest activity of a dormant neuron, relative to the mean of its layer: τ of Sokar et al. (2023) for TD-learning."""
DELTA = 0.01
"""Share of the singular values that an effective rank leaves out: δ of Kumar et al. (2021)."""


@dataclass(frozen=True)
class Liveness:
    """Dead and dormant neurons of a hidden layer on a sample."""

    dead: int
    dormant: int


def liveness(outputs: NDArray[np.float32]) -> Liveness:
    """From a layer's outputs after ReLU, (neurons, samples).

    >>> liveness(np.array([[0, 0], [4, 4], [0, 0.05]], dtype=np.float32))
    Liveness(dead=1, dormant=2)
    """
    return Liveness(int(dormant(outputs, 0).sum()), int(dormant(outputs, DORMANT).sum()))


def effective_rank(outputs: NDArray[np.float32]) -> int:
    """The least k whose k largest singular values make up 1 - δ of the sum of all; 0 if all are 0.

    >>> effective_rank(np.outer([1, 2, 3], [1, 0, 1, 1]).astype(np.float32))
    1
    """
    features = outputs.astype(np.float64)
    # One BLAS thread is fastest at this size, by far on a busy machine. Nor do its bits
    # depend on the number of cores.
    with _blas().limit(limits=1):
        gram = features @ features.T if len(features) <= features.shape[1] else features.T @ features
        singular = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0))
    shares = np.cumsum(singular)
    return int(np.searchsorted(shares, (1 - DELTA) * shares[-1]) + 1) if shares[-1] > 0 else 0


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def diagnose(agent: Agent, replay: Replay, seed: int, step: int) -> list[DiagnosticsRow]:
    """A row for each layer of each network. Draws with a generator of its own, so that training is not affected."""
    batch = Transitions(agent.n_obs, agent.n_act, agent.options.batch)
    rounds = -(-SAMPLE // batch.size) if len(replay) else 0
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4, step)))
    seen: dict[str, list[list[NDArray[np.float32]]]] = {name: [] for name in agent.networks}
    for _ in range(rounds):
        batch.fill(replay.records, replay.slots_of(rng.integers(len(replay), size=batch.size)))
        agent.normaliser.normalise(batch)
        for name, network in agent.networks.items():
            network.forward(batch.state_action if name in agent.critic_names else batch.obs)
            seen[name].append([outputs.copy() for outputs in network.hidden_outputs()])
    rows = []
    for name, network in agent.networks.items():
        outputs = [np.concatenate(parts, axis=1) for parts in zip(*seen[name], strict=True)]
        rows += _rows(name, network, outputs, agent.options.beta2, step)
    return rows


def _rows(
    name: str, network: Network, outputs: list[NDArray[np.float32]], beta2: float, step: int
) -> list[DiagnosticsRow]:
    rows = []
    for layer in range(network.layers):
        alive = liveness(outputs[layer]) if layer < len(outputs) else None
        rows.append(
            DiagnosticsRow(
                step=step,
                network=name,
                layer=layer + 1,
                neurons=network.sizes[layer + 1],
                dead=alive.dead if alive else None,
                dormant=alive.dormant if alive else None,
                # An eigenvalue problem for every layer would cost more than 1% of training.
                effective_rank=effective_rank(outputs[layer]) if layer == len(outputs) - 1 else None,
                gradient_norm=network.gradient_norm(layer, beta2),
                link_age=float(network.link_ages(layer).mean()),
            )
        )
    return rows
