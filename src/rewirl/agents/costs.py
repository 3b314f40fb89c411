"""What an agent costs: links, and floating-point operations by two counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rewirl.agents.options import SACOptions, TD3Options, WiringOptions


@dataclass(frozen=True)
class Costs:
    """Links of the three networks and what one update, and one action, takes of each.

    A pass of a batch of N through a network of k links is 2·k·N operations; back through it twice that.

    >>> dense = costs(17, 6, TD3Options(), WiringOptions())
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
    sac: bool

    @property
    def links(self) -> int:
        """#params: weights of the actor and two critics."""
        return self.actor + 2 * self.critic

    @property
    def dense_links(self) -> int:
        """What they would be without sparsity."""
        return self.dense_actor + 2 * self.dense_critic

    @property
    def sparsity(self) -> float:
        """Share of weights that do not exist."""
        return 1 - self.links / self.dense_links

    def paper_flops(self, updates: int) -> float:
        """The paper's count: T · N · 3 · 2 · (|θ1| + |θ2| + |φ|/d), forward and backward of what is trained."""
        return updates * self.batch * 3 * 2 * (2 * self.critic + self.actor / self.delay)

    def full_flops(self, updates: int, actions: int) -> float:
        """Everything: also the targets' forwards, the critics inside the actor's loss, and every action chosen."""
        targets = self.actor + 2 * self.critic  # the next action and its two values
        through_critics = (2 * self.critic if self.sac else self.critic) * 2  # forward and, for the action alone, back
        per_update = targets + 3 * 2 * self.critic + (3 * self.actor + through_critics) / self.delay
        return 2.0 * (updates * self.batch * per_update + actions * self.actor)


def costs(n_obs: int, n_act: int, options: TD3Options | SACOptions, wiring: WiringOptions) -> Costs:
    """What an agent with these options will cost, before it exists."""
    sac = isinstance(options, SACOptions)
    actor = (n_obs, *options.hidden, 2 * n_act if sac else n_act)
    critic = (n_obs + n_act, *options.hidden, 1)
    return Costs(
        actor=sum(wiring.counts(actor)),
        critic=sum(wiring.counts(critic)),
        dense_actor=_dense(actor),
        dense_critic=_dense(critic),
        batch=options.batch,
        delay=options.policy_delay if isinstance(options, TD3Options) else 1,
        sac=sac,
    )


def _dense(sizes: Sequence[int]) -> int:
    return sum(n_in * n_out for n_in, n_out in pairwise(sizes))
