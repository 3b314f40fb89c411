"""The numbers of Adam, which the core applies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Adam:
    """Numbers of the optimizer (Kingma and Ba)."""

    lr: float = 1e-3
    """Learning rate."""
    beta1: float = 0.9
    """How slowly the first moment forgets."""
    beta2: float = 0.999
    """How slowly the second moment forgets."""
    eps: float = 1e-8
    """Keeps the division from zero."""
    weight_decay: float = 0.0
    """How strongly weights are pulled to 0."""
    decoupled: bool = False
    """Whether the decay shrinks weights by lr · weight_decay (AdamW), or is added to their gradients (L2)."""
