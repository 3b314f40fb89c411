"""The tables of a run: a row per evaluation, a row per layer and evaluation, and a row per training episode."""

from __future__ import annotations

from dataclasses import dataclass

NETWORKS = ("actor", "critic1", "critic2")
"""Networks whose links an evaluation row lists; empty for those that an agent does not have."""
STATISTICS = ("critic_loss", "actor_loss", "q", "alpha", "entropy", "links_replaced", "targets_follow")
"""Values of `agent.statistics()` in an evaluation row."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRow:
    """One evaluation, with the progress and costs of the run so far: a row of evaluations.csv."""

    step: int
    """Environment steps of the evaluated policy."""
    return_mean: float
    """Over the episodes of the evaluation, without noise."""
    return_std: float
    return_min: float
    return_max: float
    length_mean: float
    """Steps of an episode."""
    seconds: float
    """Wall-clock time of the run so far, over all sessions."""
    steps_per_second: float
    """Since the previous row."""
    memory_mb: float
    """Resident memory of the process without mapped files, such as the replay."""
    episodes: int
    """Training episodes that have ended."""
    updates: int
    links: int
    """#params: weights of the actor and two critics."""
    actor_links: str
    """Links per layer, with spaces."""
    critic1_links: str
    critic2_links: str
    paper_flops: float
    """FLOPs of training so far, by the paper's count."""
    full_flops: float
    """All FLOPs, including targets, acting and evaluation."""
    critic_loss: float | None = None
    """From here to the entropy: averages since the previous row; empty without updates."""
    actor_loss: float | None = None
    q: float | None = None
    """Values of the second critic for the batches."""
    alpha: float | None = None
    entropy: float | None = None
    links_replaced: float | None = None
    """Since the previous row, in all networks together; 0 without rewiring."""
    targets_follow: float | None = None
    """Share of the targets' links that the networks also have; 1 before the first rewiring."""


@dataclass(frozen=True)
class Episode:
    """A training episode: a row of progress.csv."""

    step: int
    """Environment steps when it ended."""
    return_: float
    length: int


@dataclass(frozen=True, kw_only=True)
class DiagnosticsRow:
    """A layer of a network at an evaluation: a row of diagnostics.csv. Empty cells: unknown or not applicable."""

    step: int
    """Environment steps."""
    network: str
    layer: int
    """From 1; the last one is linear and has no dead or dormant neurons."""
    neurons: int
    dead: int | None = None
    """Neurons that were 0 on the whole sample."""
    dormant: int | None = None
    """Neurons whose mean activity was at most 2.5% of their layer's mean; includes the dead ones."""
    effective_rank: int | None = None
    """Of the outputs of the last hidden layer."""
    gradient_norm: float | None = None
    """Root mean square over the latest updates, from Adam's second moments."""
    link_age: float | None = None
    """Mean age of the links, in updates of the network."""
    q_bias: float | None = None
    """In the last layer of a critic: mean of its values minus the discounted returns of the evaluation."""

    def measured(self) -> dict[str, float]:
        """The numbers that apply to this layer, by name."""
        names = ("dead", "dormant", "effective_rank", "gradient_norm", "link_age", "q_bias")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
