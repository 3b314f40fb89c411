"""Operations on several independent networks at once; each thread takes whole networks.

For two critics this is faster than sharing every layer among threads, where activations move between the caches of
cores. Results are bit-identical.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewirl import _core
from rewirl._core import Batch
from rewirl.nn.adam import Adam
from rewirl.nn.network import Network
from rewirl.nn.target import Target


def forward_each(networks: Sequence[Network] | Sequence[Target], x: Batch, *, training: bool = False) -> list[Batch]:
    """`forward(x)` of each; with `training`, which is for networks, in training mode."""
    cores = [network._core for network in networks]
    return _core.forward_each(cores, x, training) if training else _core.forward_each(cores, x)  # type: ignore[arg-type]


def backward_each(
    networks: Sequence[Network], dys: Sequence[Batch], *, weights: bool = True, inputs: tuple[int, int] = (0, 0)
) -> list[Batch]:
    """`backward(dy)` of each network with its own gradient. Invalidates `Network.dense_gradient`."""
    return _core.backward_each([network._core for network in networks], dys, weights, *inputs)


def regress_each(networks: Sequence[Network], x: Batch, y: Batch, adam: Adam) -> list[tuple[float, float]]:
    """One regression step of each network towards y at x; outputs have one number. Computes forward, the gradient of
    1/N Σ (output - y)², backward, and `step(adam)` if the loss is finite. Returns the loss and mean output of each.

    >>> import numpy as np
    >>> from rewirl.nn import batch_of
    >>> from rewirl.topology import Dense, wire
    >>> rng = np.random.default_rng(0)
    >>> nets = [Network(wire((3, 8, 1), rng, rule=Dense()), rng) for _ in range(2)]
    >>> x, y = Batch(3, 4), batch_of(np.ones((1, 4), dtype=np.float32))
    >>> losses = [[loss for loss, _ in regress_each(nets, x, y, Adam())] for _ in range(2)]
    >>> all(later < first for first, later in zip(*losses, strict=True))
    True
    """
    cores = [network._core for network in networks]
    return _core.regress_each(cores, x, y, *adam)


def update_each(targets: Sequence[Target], tau: float) -> None:
    """`update(tau)` of each."""
    _core.update_each([target._core for target in targets], tau)
