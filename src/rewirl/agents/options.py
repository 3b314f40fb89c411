"""Hyper-parameters of the algorithms, each with its meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Literal

from rewirl.limits import MAX_BATCH
from rewirl.nn import Adam, BatchNorm
from rewirl.topology import Dense, Rule, Static, link_counts


@dataclass(frozen=True, kw_only=True)
class WiringOptions:
    """Which links the networks have, and how they change."""

    rule: Rule = field(default_factory=Dense)
    """Dense(), Static(), SET(eta, every) or RigL(eta, every)."""
    lambdas: Sequence[float] | None = None
    """λ of each layer except the last: round(λ (n_in + n_out)) links."""
    sparsity: float | None = None
    """Share of all weights that are absent, instead of lambdas."""
    actor_sparsity: float | None = None
    """Sparsity of the actor, instead of `sparsity`."""
    critic_sparsity: float | None = None
    """Sparsity of each critic, instead of `sparsity`."""
    block: int = 1
    """Neighbouring outputs that share an input: 1 is the paper's unstructured wiring, 4 is faster."""
    recycle: float | None = None
    """Activity, relative to the mean of its layer, up to which a hidden neuron starts anew at a rewiring; 0 recycles
    dead neurons alone, None none."""
    recycle_every: int = 1000
    """Updates between two recyclings of networks that are not rewired."""

    def __post_init__(self) -> None:
        if self.recycle is not None:
            _check_number("recycle", self.recycle)
        if self.recycle_every < 1:
            raise ValueError(f"recycle_every must be at least 1, not {self.recycle_every}")

    def due(self, update: int) -> bool:
        """Whether networks rewire or recycle at this update, counted from 1.

        >>> WiringOptions(recycle=0).due(1000), WiringOptions().due(1000)
        (True, False)
        """
        if self.recycle is not None and isinstance(self.rule, Dense | Static):
            return update >= 1 and update % self.recycle_every == 0
        return self.rule.due(update)

    def counts(self, sizes: Sequence[int]) -> list[int]:
        """Links per layer of a network with these widths."""
        if not self.rule.sparse:
            return [n_in * n_out for n_in, n_out in pairwise(sizes)]
        return link_counts(sizes, lambdas=self.lambdas, sparsity=self.sparsity, block=self.block)

    @property
    def actor(self) -> WiringOptions:
        """The wiring options of the actor."""
        return self._with(self.actor_sparsity)

    @property
    def critic(self) -> WiringOptions:
        """The wiring options of each critic."""
        return self._with(self.critic_sparsity)

    def _with(self, sparsity: float | None) -> WiringOptions:
        return self if sparsity is None else replace(self, sparsity=sparsity, lambdas=None)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Hyper-parameters that all algorithms share."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""
    batch: int = 100
    """N: transitions per update."""
    gamma: float = 0.99
    """γ: discount."""
    lr: float = 1e-3
    """Learning rate of Adam."""
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls from lr to 0 by update lr_until: `constant` does not fall."""
    lr_until: int | None = None
    """Update at which a falling learning rate reaches 0; the last update unless given."""
    beta1: float = 0.9
    """Adam's β1."""
    beta2: float = 0.999
    """Adam's β2."""
    adam_eps: float = 1e-8
    """Adam's ε."""
    weight_decay: float = 2e-4
    """Weight decay: this times the weight is added to its gradient (L2)."""
    decoupled_decay: bool = False
    """Shrink weights by lr · weight_decay at each update (AdamW) instead of adding the decay to gradients."""
    sparse_init: bool = False
    """Draw initial weights from ±1/√(links into the neuron) instead of ±1/√(inputs of the layer)."""
    sparse_rate: float = 0.0
    """The weights of a layer with a share p of all possible links learn at lr / p^X: with fewer links into a neuron, a
    step of the same length changes its output less."""
    layer_norm: bool = False
    """Normalise the hidden layers of the critics, sample by sample, before their ReLU."""
    n_step: int = 1
    """n-step returns: rewards that a critic's target sums; fewer at the end of an episode."""
    n_step_from: int = 0
    """First update whose targets sum n_step rewards; earlier ones use one reward."""
    normalize: Literal["observations", "rewards", "observations,rewards"] | None = None
    """What is scaled with running statistics before networks see it: (observation - mean) / std, reward / std of
    returns; nothing unless given."""

    def __post_init__(self) -> None:
        for item in fields(self):
            _check_number(item.name, getattr(self, item.name))
        if not self.hidden:
            raise ValueError("hidden must have at least one width, e.g. 256 256")
        for name in ("gamma", "beta1", "beta2"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.beta1 == 1 or self.beta2 == 1:
            raise ValueError("beta1 and beta2 must be below 1: at 1 Adam never learns")
        if (self.lr_schedule == "constant") != (self.lr_until is None) or self.lr_until == 0:
            raise ValueError("lr_until must be at least 1, and needs lr_schedule linear or cosine")
        if self.n_step < 1:
            raise ValueError(f"n_step must be at least 1, not {self.n_step}")
        if self.normalize not in (None, "observations", "rewards", "observations,rewards"):
            raise ValueError(f"normalize must be observations, rewards or both with a comma, not {self.normalize!r}")
        if not 1 <= self.batch <= MAX_BATCH:
            raise ValueError(f"batch must be from 1 to {MAX_BATCH}, not {self.batch}")

    def lr_at(self, update: int) -> float:
        """The learning rate at an update, counted from 1.

        >>> options = Options(lr=0.1, lr_schedule="linear", lr_until=4)
        >>> [round(options.lr_at(update), 3) for update in (1, 2, 4, 5, 6)]
        [0.1, 0.075, 0.025, 0.0, 0.0]
        """
        if self.lr_until is None:
            return self.lr
        done = min((update - 1) / self.lr_until, 1.0)
        return self.lr * (1 - done if self.lr_schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)

    @property
    def critic_widths(self) -> tuple[int, ...]:
        """Widths of the hidden layers of critics."""
        return self.hidden

    @property
    def batch_norm(self) -> BatchNorm | None:
        """The batch normalisation of all networks; None without."""
        return None

    @property
    def adam(self) -> Adam:
        """The optimizer's hyper-parameters."""
        return Adam(
            self.lr, self.beta1, self.beta2, self.adam_eps, self.weight_decay, self.decoupled_decay, self.sparse_rate
        )


@dataclass(frozen=True, kw_only=True)
class TargetOptions(Options):
    """Hyper-parameters of algorithms with targets."""

    tau: float = 0.005
    """τ: weight of the online network in a target update."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tau <= 1:
            raise ValueError(f"tau must be from 0 to 1, not {self.tau}")


@dataclass(frozen=True, kw_only=True)
class EntropyOptions(Options):
    """Hyper-parameters of algorithms that maximise the entropy of their policy, too."""

    alpha: float | Literal["auto"] = 0.2
    """α: temperature, the weight of the entropy; `auto` learns it."""
    target_entropy: float | None = None
    """Target entropy of a learned temperature; minus the size of an action unless given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != "auto" and self.alpha < 0:
            raise ValueError(f"alpha must be positive or 'auto', not {self.alpha}")


@dataclass(frozen=True, kw_only=True)
class TD3Options(TargetOptions):
    """TD3 (Fujimoto et al. 2018) with the hyper-parameters of the paper's appendix."""

    policy_delay: int = 2
    """d: critic updates for each update of actor and targets."""
    exploration_noise: float = 0.1
    """σ of the noise added to actions, in half-ranges of the action box."""
    target_noise: float = 0.2
    """σ̃ of the noise added to the target policy's actions."""
    target_clip: float = 0.5
    """c: bound at which that noise is clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy_delay < 1:
            raise ValueError(f"policy_delay must be at least 1, not {self.policy_delay}")


@dataclass(frozen=True, kw_only=True)
class SACOptions(EntropyOptions, TargetOptions):
    """SAC (Haarnoja et al. 2018) with the hyper-parameters of the paper's appendix."""

    batch: int = 256
    """N: transitions per update."""
    lr: float = 3e-4
    """Learning rate of Adam."""
    weight_decay: float = 0.0
    """Weight decay: this times the weight is added to its gradient (L2)."""
    target_interval: int = 1
    """Updates from one target update to the next; the paper's hard updates are tau 1 every 1000."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_interval < 1:
            raise ValueError(f"target_interval must be at least 1, not {self.target_interval}")


@dataclass(frozen=True, kw_only=True)
class DQNOptions(TargetOptions):
    """Double DQN (van Hasselt et al. 2016) with Adam, an update at every step, and soft target updates."""

    batch: int = 128
    """N: transitions per update."""
    lr: float = 5e-4
    """Learning rate of Adam."""
    weight_decay: float = 0.0
    """Weight decay: this times the weight is added to its gradient (L2)."""
    loss: Literal["huber", "squared"] = "huber"
    """Loss of a value's error: `huber` is squared up to an error of 1 and linear beyond; `squared` is always
    squared."""
    target_interval: int = 1
    """Updates from one target update to the next; DQN's hard updates are tau 1 every 10000 or so."""
    epsilon_start: float = 1.0
    """ε at the start: probability of a random action during learning."""
    epsilon_end: float = 0.05
    """ε at the end."""
    epsilon_steps: int = 10_000
    """Steps over which ε falls linearly from start to end, counted after the random steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon_start", "epsilon_end"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.target_interval < 1:
            raise ValueError(f"target_interval must be at least 1, not {self.target_interval}")
        if self.loss not in ("huber", "squared"):
            raise ValueError(f"loss must be 'huber' or 'squared', not {self.loss!r}")


@dataclass(frozen=True, kw_only=True)
class CrossQOptions(EntropyOptions):
    """CrossQ (Bhatt et al. 2024) with the hyper-parameters of the paper."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the actor's hidden layers."""
    critic_hidden: tuple[int, ...] = (2048, 2048)
    """Widths of the critics' hidden layers."""
    batch: int = 256
    """N: transitions per update."""
    beta1: float = 0.5
    """Adam's β1."""
    weight_decay: float = 0.0
    """Weight decay: this times the weight is added to its gradient (L2)."""
    alpha: float | Literal["auto"] = "auto"
    """α: temperature, the weight of the entropy; `auto` learns it."""
    policy_delay: int = 3
    """d: critic updates for each update of actor and temperature."""
    norm_momentum: float = 0.99
    """Weight of the old running statistics in batch normalisation."""
    norm_warmup: int = 100_000
    """Updates of a network from which on batches are corrected towards the running statistics (renormalised)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.critic_hidden:
            raise ValueError("critic_hidden must have at least one width, e.g. 2048 2048")
        if self.policy_delay < 1:
            raise ValueError(f"policy_delay must be at least 1, not {self.policy_delay}")
        if not self.norm_momentum < 1:
            raise ValueError(f"norm_momentum must be below 1, not {self.norm_momentum}: at 1 statistics never change")
        if self.layer_norm:
            raise ValueError("layer_norm is for critics without batch normalisation, and those of CrossQ have it")

    @property
    def critic_widths(self) -> tuple[int, ...]:
        return self.critic_hidden

    @property
    def batch_norm(self) -> BatchNorm | None:
        return BatchNorm(momentum=self.norm_momentum, warmup=self.norm_warmup)


# May be negative; everything else is a count, a width, a rate or a share.
_SIGNED = {"target_entropy"}


def _check_number(name: str, value: Any) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError(f"{name} must be a finite number, not {number}")
        if isinstance(number, (int, float)) and number < 0 and name not in _SIGNED:
            raise ValueError(f"{name} must not be negative, and is {number}")
        if isinstance(value, tuple) and (not isinstance(number, int) or number < 1):
            raise ValueError(f"{name} must be whole numbers from 1, not {value}")
