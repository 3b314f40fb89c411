"""CrossQ, dense or sparse: batch normalisation in place of target networks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from rewirl.agents.actions import ActionBox
from rewirl.agents.actor_critic import EntropyCritic
from rewirl.agents.options import CrossQOptions, Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.nn import Batch, backward_each, forward_each
from rewirl.nn.losses import soft_bellman


class CrossQAgent(EntropyCritic):
    """CrossQ (Bhatt et al. 2024): SAC whose critics, wide and with batch normalisation, are their own targets.

    >>> box = ActionBox([-2.0], [2.0])
    >>> options = CrossQOptions(hidden=(8, 8), critic_hidden=(16, 16), batch=4)
    >>> agent = CrossQAgent(3, box, options, WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(3, dtype=np.float32)).shape
    (1,)
    """

    algorithm: ClassVar[str] = "crossq"
    title: ClassVar[str] = "CrossQ"
    options_class: ClassVar[type[Options]] = CrossQOptions
    has_targets: ClassVar[bool] = False
    options: CrossQOptions

    def __init__(
        self, n_obs: int, box: ActionBox, options: CrossQOptions, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        # [s, a] and, behind it, [s', a']; the critics' values of the latter; the gradients at their joint outputs,
        # which stay 0 there
        self._joint = Batch(n_obs + self.n_act, 2 * options.batch)
        self._next_qs = (Batch(1, options.batch), Batch(1, options.batch))
        self._joint_dqs = (Batch(1, 2 * options.batch), Batch(1, 2 * options.batch))

    @classmethod
    def _actor_delay(cls, options: Options) -> int:
        assert isinstance(options, CrossQOptions)
        return options.policy_delay

    def update(self, batch: Transitions) -> None:
        o, n = self.options, batch.size
        self.updates += 1
        self._set_rate()

        # a' ~ π_φ(s'), by the running statistics
        self._sample(batch.next_obs, batch.next_action)

        # One pass of states and next states: the statistics of the batch are those of both distributions of actions.
        self._joint.array[:, :n] = batch.state_action.array
        self._joint.array[:, n:] = batch.next_state_action.array
        qs = [q.array for q in forward_each(self.critics, self._joint, training=True)]
        for next_q, q in zip(self._next_qs, qs, strict=True):
            next_q.array[...] = q[:, n:]

        # y = r + γ (min Q_θi(s', a') - α log π(a'|s')), by the critics themselves, without a gradient
        soft_bellman(batch.reward, batch.terminated, *self._next_qs, o.gamma, self.alpha, self._log_prob, self._y)

        # θi ← θi - λ ∇ 1/N Σ (y - Q_θi(s, a))², also through the statistics
        # every e updates the critics drop and grow links
        for dq, q in zip(self._joint_dqs, qs, strict=True):
            error = q[:, :n] - self._y.array
            dq.array[:, :n] = error * np.float32(2 / n)
            self._add_loss(float(np.mean(error.astype(np.float64) ** 2)))
        self._averages.add("q", float(qs[1][:, :n].mean()))
        for critics in self._rewired_together():
            backward_each(critics, [self._joint_dqs[self.critics.index(critic)] for critic in critics])
            for critic in critics:
                critic.step(self._adam)
            self._adapt_if_due(critics)

        # every d updates φ ← φ - λ ∇J_π(φ): the actor by the statistics of the batch, the critics by their running ones
        if self.updates % o.policy_delay == 0:
            log_prob = self._update_actor(batch)
            self._adapt_actor()
            if self.learns_alpha:
                self._update_temperature(log_prob)
        self._averages.add("alpha", self.alpha)
