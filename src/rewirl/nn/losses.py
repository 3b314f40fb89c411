"""Losses between networks, and their gradients, in the core: what TD3's and SAC's updates are made of."""

from rewirl._core import (
    ascend,
    ascend_lower,
    bellman,
    smooth,
    soft_bellman,
    squash,
    tanh,
    through_squash,
    through_tanh,
)

__all__ = [
    "ascend",
    "ascend_lower",
    "bellman",
    "smooth",
    "soft_bellman",
    "squash",
    "tanh",
    "through_squash",
    "through_tanh",
]
