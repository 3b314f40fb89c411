"""Small modules, a step of learning, and a mask worked out by hand, for the tests of wirings."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from rewirl.topology import Links


class Convolutional(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 4, 2), nn.Tanh(), nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))


class Perceptron(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(9, 12), nn.ReLU(), nn.LayerNorm(12), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 2))


INPUTS = {Convolutional: (1, 3, 3), Perceptron: (9,)}


def exists(links: Links, shape: torch.Size) -> torch.Tensor:
    """A mask worked out link by link."""
    mask = np.zeros((links.n_out, links.n_in), dtype=bool)
    for place in links.places:
        i, o = divmod(int(place), links.n_out // links.block)
        mask[o * links.block : (o + 1) * links.block, i] = True
    return torch.from_numpy(mask).reshape(shape)


def step(module: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, clip: float = 0) -> None:
    x = torch.randn(8, *INPUTS[type(module)], generator=generator)
    optimizer.zero_grad()
    (module(x) - 1).square().mean().backward()
    if clip:
        nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()
