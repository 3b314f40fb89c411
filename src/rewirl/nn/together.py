"""The same for several networks, none of which needs another or is there twice: threads, if any, take one each.

Two critics that share nothing but their input gain more by that than by threads that share every layer, whose
activations then go to and fro between the caches of two cores. The results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewirl import _core
from rewirl._core import Batch
from rewirl.nn.network import Adam, Network
from rewirl.nn.target import Target


def forward_each(networks: Sequence[Network] | Sequence[Target], x: Batch) -> list[Batch]:
    """`forward(x)` of each."""
    return _core.forward_each([network._core for network in networks], x)  # type: ignore[arg-type]


def backward_each(
    networks: Sequence[Network], dys: Sequence[Batch], *, weights: bool = True, inputs: tuple[int, int] = (0, 0)
) -> list[Batch]:
    """`backward(dy)` of each with a gradient of its own. After it `Network.dense_gradient` may be gone."""
    return _core.backward_each([network._core for network in networks], dys, weights, *inputs)


def step_each(networks: Sequence[Network], adam: Adam) -> None:
    """`step(adam)` of each."""
    cores = [network._core for network in networks]
    _core.step_each(cores, adam.lr, adam.beta1, adam.beta2, adam.eps, adam.weight_decay)


def update_each(targets: Sequence[Target], tau: float) -> None:
    """`update(tau)` of each."""
    _core.update_each([target._core for target in targets], tau)
