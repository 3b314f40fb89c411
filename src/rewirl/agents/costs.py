"""What an agent costs: links, and floating-point operations by two counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


class Costs(ABC):
    """Links of an agent's networks, and what its updates and actions take.

    A pass of a batch of N through a network of k links is 2·k·N operations; back through it twice that.
    """

    @property
    @abstractmethod
    def links(self) -> int:
        """#params: weights of all networks that learn."""

    @property
    @abstractmethod
    def dense_links(self) -> int:
        """What they would be without sparsity."""

    @abstractmethod
    def paper_flops(self, updates: int) -> float:
        """Operations of so many updates by the paper's count: forward and backward of what is trained."""

    @abstractmethod
    def full_flops(self, updates: int, actions: int) -> float:
        """Everything, targets and every action chosen too."""

    @abstractmethod
    def dense(self) -> Costs:
        """What the same agent costs with all links."""

    @property
    def sparsity(self) -> float:
        """Share of weights that do not exist."""
        return 1 - self.links / self.dense_links


@dataclass(frozen=True)
class ActorCriticCosts(Costs):
    """Of an actor and two critics.

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

    @property
    def links(self) -> int:
        return self.actor + 2 * self.critic

    @property
    def dense_links(self) -> int:
        return self.dense_actor + 2 * self.dense_critic

    def dense(self) -> ActorCriticCosts:
        return replace(self, actor=self.dense_actor, critic=self.dense_critic)

    def paper_flops(self, updates: int) -> float:
        """The paper's count: T · N · 3 · 2 · (|θ1| + |θ2| + |φ|/d), forward and backward of what is trained."""
        return updates * self.batch * 3 * 2 * (2 * self.critic + self.actor / self.delay)

    def full_flops(self, updates: int, actions: int) -> float:
        """Everything: also the targets' forwards, the critics inside the actor's loss, and every action chosen."""
        targets = self.actor + 2 * self.critic  # the next action and its two values
        through_critics = self.critics_in_actor_loss * self.critic * 2  # forward and, for the action alone, back
        per_update = targets + 3 * 2 * self.critic + (3 * self.actor + through_critics) / self.delay
        return 2.0 * (updates * self.batch * per_update + actions * self.actor)


@dataclass(frozen=True)
class ValueCosts(Costs):
    """Of one network that gives the values of all actions, and its target."""

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
        """As the paper counts: forward and backward of what is trained, T · N · 3 · 2 · |θ|."""
        return updates * self.batch * 3 * 2 * self.q

    def full_flops(self, updates: int, actions: int) -> float:
        """Also the next action by the network, its value by the target, and every action chosen."""
        return 2.0 * self.q * (updates * self.batch * (3 + 2) + actions)


def dense_links(sizes: Sequence[int]) -> int:
    """Of a dense network with these widths.

    >>> dense_links((3, 4, 2))
    20
    """
    return sum(n_in * n_out for n_in, n_out in pairwise(sizes))
