"""SAC, dense or sparse: the paper's algorithm DS-SAC when its rule is SET."""

from __future__ import annotations

from typing import ClassVar

from rewirl.agents.actor_critic import EntropyCritic
from rewirl.agents.options import Options, SACOptions
from rewirl.agents.transitions import Transitions
from rewirl.nn import forward_each, update_each
from rewirl.nn.losses import soft_bellman


class SACAgent(EntropyCritic):
    """Soft actor-critic with fixed or learned temperature; comments cite the lines of the paper's DS-SAC.

    >>> import numpy as np
    >>> from rewirl.agents import ActionBox, WiringOptions
    >>> box = ActionBox([-2.0], [2.0])
    >>> agent = SACAgent(3, box, SACOptions(hidden=(8, 8), batch=4), WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(3, dtype=np.float32)).shape
    (1,)
    """

    algorithm: ClassVar[str] = "sac"
    options_class: ClassVar[type[Options]] = SACOptions
    options: SACOptions

    def update(self, batch: Transitions) -> None:
        o = self.options
        self.updates += 1

        # y = r + γ (min Q_θ̄i(s', a') - α log π(a'|s')), a' ~ π_φ(s'); nothing follows a terminal state
        self._sample(batch.next_obs, batch.next_action)
        q1, q2 = forward_each(self.critic_targets, batch.next_state_action)
        soft_bellman(batch.reward, batch.terminated, q1, q2, o.gamma, self.alpha, self._log_prob, self._y)

        # L13: θi ← θi - λ ∇J_Q(θi)
        # L14-L16: every e updates the critics drop and grow links
        self._update_critics(batch, self._y)

        # L17: φ ← φ - λ ∇J_π(φ)
        log_prob = self._update_actor(batch)

        # L18-L20: so does the actor
        self._adapt_actor()

        if self.learns_alpha:
            self._update_temperature(log_prob)
        self._averages.add("alpha", self.alpha)

        # L21-L22: θ̄i ← τθi + (1-τ)θ̄i, kept as sparse as it was
        if self.updates % o.target_interval == 0:
            update_each(self.critic_targets, o.tau)
