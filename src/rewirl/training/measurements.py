"""What a run measures: a row for each evaluation and each training episode."""

from __future__ import annotations

from dataclasses import dataclass

NETWORKS = ("actor", "critic1", "critic2")
"""Networks whose links an evaluation row lists; empty for those that an agent does not have."""
STATISTICS = ("critic_loss", "actor_loss", "q", "alpha", "entropy", "links_replaced", "targets_follow")
"""Of `agent.statistics()`, what an evaluation row holds."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRow:
    """One evaluation, and what the run had done and cost by then: a row of evaluations.csv."""

    step: int
    """Environment steps when the policy was as evaluated."""
    return_mean: float
    """Over the episodes of the evaluation, no noise."""
    return_std: float
    return_min: float
    return_max: float
    length_mean: float
    """Steps of an episode."""
    seconds: float
    """Wall-clock of the run so far, all sessions together."""
    steps_per_second: float
    """Since the row before."""
    memory_mb: float
    """Resident memory of the process without what it maps from files, such as the replay."""
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
    """Of training so far, by the paper's count."""
    full_flops: float
    """Everything: targets, acting and evaluation too."""
    critic_loss: float | None = None
    """This and what follows to the entropy: averages since the row before; empty when there was no update."""
    actor_loss: float | None = None
    q: float | None = None
    """What the second critic said of the batches."""
    alpha: float | None = None
    entropy: float | None = None
    links_replaced: float | None = None
    """Since the row before, in all networks together; 0 when there was no adaptation."""
    targets_follow: float | None = None
    """Share of the targets' links that the networks have too, now; 1 before the first adaptation."""


@dataclass(frozen=True)
class Episode:
    """A training episode: a row of progress.csv."""

    step: int
    """Environment steps when it ended."""
    return_: float
    length: int
