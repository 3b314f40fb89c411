"""What an agent costs: links, and floating-point operations by two counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


class Costs(ABC):
    """Links of an agent's networks, and operations of its updates and actions.

    A pass of a batch of N through a network of k links takes 2·k·N operations; a backward pass takes twice as many.
    """

    @property
    @abstractmethod
    def links(self) -> int:
        """#params: weights of all networks that learn."""

    @property
    @abstractmethod
    def dense_links(self) -> int:
        """The same without sparsity."""

    @abstractmethod
    def paper_flops(self, updates: int) -> float:
        """Operations of this many updates by the paper's count: forward and backward passes of trained networks."""

    @abstractmethod
    def full_flops(self, updates: int, actions: int) -> float:
        """All operations, including targets and every chosen action."""

    @abstractmethod
    def dense(self) -> Costs:
        """Costs of the same agent with dense networks."""

    @property
    def sparsity(self) -> float:
        """Share of weights that are absent."""
        return 1 - self.links / self.dense_links


@dataclass(frozen=True)
class ActorCriticCosts(Costs):
    """Costs of an actor and two critics.

    >>> from rewirl.agents import TD3Agent, TD3Options, WiringOptions
    >>> dense = TD3Agent.costs(17, 6, TD3Options(), WiringOptions())
    >>> dense.links
    214784
    >>> f"{dense.paper_flops(updates=10**6):.4e}"
    '1.0744e+14'
    """

    actor: int
    """|φ|: links of the actor."""
    critic: int
    """|θ1| = |θ2|: links of one critic."""
    dense_actor: int
    dense_critic: int
    batch: int
    delay: int
    """d: critic updates for each actor update."""
    critics_in_actor_loss: int
    targets: bool = True
    """Whether critics have targets. Without any, the critics see next states in the same pass as states."""

    @property
    def links(self) -> int:
        return self.actor + 2 * self.critic

    @property
    def dense_links(self) -> int:
        return self.dense_actor + 2 * self.dense_critic

    def dense(self) -> ActorCriticCosts:
        return replace(self, actor=self.dense_actor, critic=self.dense_critic)

    def paper_flops(self, updates: int) -> float:
        """The paper's count: T · N · 3 · 2 · (|θ1| + |θ2| + |φ|/d), forward and backward passes of trained networks.
        Without targets the critics count twice, since next states are in the same pass."""
        return updates * self.batch * 3 * 2 * (self._samples * 2 * self.critic + self.actor / self.delay)

    def full_flops(self, updates: int, actions: int) -> float:
        """Also the forward passes of the targets, the critics in the actor's loss, and every chosen action."""
        next_values = self.actor + 2 * self.critic * self.targets  # the next action and, by targets, its two values
        through_critics = self.critics_in_actor_loss * self.critic * 2  # forward and, for the action alone, back
        per_update = next_values + 3 * 2 * self.critic * self._samples + (3 * self.actor + through_critics) / self.delay
        return 2.0 * (updates * self.batch * per_update + actions * self.actor)

    @property
    def _samples(self) -> int:
        """Samples of the critics' pass for each transition."""
        return 1 if self.targets else 2


@dataclass(frozen=True)
class ValueCosts(Costs):
    """Costs of one network with a value for each action, and of its target."""

    q: int
    """|θ|: links of the network."""
    dense_q: int
    batch: int

    @property
    def links(self) -> int:
        return self.q

    @property
    def dense_links(self) -> int:
        return self.dense_q

    def dense(self) -> ValueCosts:
        return replace(self, q=self.dense_q)

    def paper_flops(self, updates: int) -> float:
        """The paper's count: T · N · 3 · 2 · |θ|, forward and backward passes of the trained network."""
        return updates * self.batch * 3 * 2 * self.q

    def full_flops(self, updates: int, actions: int) -> float:
        """Also the network's next action, its value by the target, and every chosen action."""
        return 2.0 * self.q * (updates * self.batch * (3 + 2) + actions)


def dense_links(sizes: Sequence[int]) -> int:
    """Links of a dense network with these widths.

    >>> dense_links((3, 4, 2))
    20
    """
    return sum(n_in * n_out for n_in, n_out in pairwise(sizes))
