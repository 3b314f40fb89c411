"""Hyper-parameters of batch normalisation, which runs in the core."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class BatchNorm:
    """Hyper-parameters of batch renormalisation (Ioffe 2017) with a warm-up."""

    momentum: float = 0.99
    """Weight of the old running statistics, when those of a batch are added."""
    eps: float = 1e-3
    """Added to variances."""
    r_max: float = 3.0
    """r, the batch's standard deviation over the running one, is clipped to 1 / r_max and r_max."""
    d_max: float = 5.0
    """d, the batch's mean minus the running one over the running standard deviation, is clipped to ±d_max."""
    warmup: int = 100_000
    """Batches of training that are normalised by their own statistics alone: with r = 1 and d = 0."""

    def __post_init__(self) -> None:
        if not (0 <= self.momentum < 1 and self.eps > 0 and self.r_max >= 1 and self.d_max >= 0 and self.warmup >= 0):
            raise ValueError(
                "batch normalisation needs 0 ≤ momentum < 1, eps > 0, r_max ≥ 1, d_max ≥ 0 and warmup ≥ 0, not "
                f"{', '.join(map(str, astuple(self)))}"
            )
