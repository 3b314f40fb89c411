"""Losses and their gradients, computed in the core: the parts of TD3's and SAC's updates."""

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
