"""Hyper-parameters of Adam, which runs in the core."""

from __future__ import annotations

from typing import NamedTuple


class Adam(NamedTuple):
    """Hyper-parameters of Adam (Kingma and Ba 2015), in the order in which the core takes them."""

    lr: float = 1e-3
    """Learning rate."""
    beta1: float = 0.9
    """Decay rate of the first moment."""
    beta2: float = 0.999
    """Decay rate of the second moment."""
    eps: float = 1e-8
    """Added to the denominator."""
    weight_decay: float = 0.0
    """Weight decay."""
    decoupled: bool = False
    """Whether the decay shrinks weights by lr · weight_decay (AdamW), or is added to their gradients (L2)."""
    sparse_rate: float = 0.0
    """The weights of a layer with a share p of all possible links learn at lr / p^sparse_rate."""
