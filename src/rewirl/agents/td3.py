"""TD3, dense or sparse: Algorithm 1 of the paper (DS-TD3 when its rule is SET)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from rewirl.agents.actions import ActionBox
from rewirl.agents.actor_critic import ActorCritic, Floats
from rewirl.agents.options import Options, TD3Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.nn import Target, forward_each, update_each
from rewirl.nn.losses import ascend, bellman, smooth, tanh, through_tanh


class TD3Agent(ActorCritic):
    """Twin delayed deep deterministic policy gradient; comments cite the lines of Algorithm 1.

    >>> box = ActionBox([-2.0], [2.0])
    >>> agent = TD3Agent(3, box, TD3Options(hidden=(8, 8), batch=4), WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(3, dtype=np.float32)).shape
    (1,)
    """

    algorithm: ClassVar[str] = "td3"
    policy_kind: ClassVar[str] = "td3"
    options_class: ClassVar[type[Options]] = TD3Options
    options: TD3Options

    def __init__(
        self, n_obs: int, box: ActionBox, options: TD3Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.actor_target = Target(self.actor)
        self.targets["actor"] = self.actor_target

    @classmethod
    def _actor_delay(cls, options: Options) -> int:
        assert isinstance(options, TD3Options)
        return options.policy_delay

    def act(self, obs: Floats) -> Floats:
        return np.tanh(self.actor.act(obs))

    def explore(self, obs: Floats) -> Floats:
        # L7-L8: a ~ π_φ(s) + ε, ε ~ N(0, σ)
        noise = self.options.exploration_noise * self.rng.standard_normal(self.n_act, dtype=np.float32)
        # np.clip costs several times as much on small arrays
        return np.minimum(np.maximum(self.act(obs) + noise, np.float32(-1)), np.float32(1))

    def update(self, batch: Transitions) -> None:
        o = self.options
        self.updates += 1

        # L11: ã ← π_φ'(s') + ε, ε ~ clip(N(0, σ̃), -c, c)
        tanh(self.actor_target.forward(batch.next_obs), batch.next_action)
        smooth(batch.next_action, self._draw_noise(), o.target_noise, o.target_clip)

        # L12: y ← r + γ min Q_θ'i(s', ã); nothing follows a terminal state
        q1, q2 = forward_each(self.critic_targets, batch.next_state_action)
        bellman(batch.reward, batch.terminated, q1, q2, o.gamma, self._y)

        # L13: θi ← argmin 1/N Σ (y - Q_θi(s, a))²
        # L14-L16: every e updates the critics drop and grow links
        self._update_critics(batch, self._y)

        # L17: every d updates
        if self.updates % o.policy_delay == 0:
            # L18-L19: ∇_φ J = 1/N Σ ∇_a Q_θ1(s, a)|a=π(s) ∇_φ π(s)
            tanh(self.actor.forward(batch.obs), batch.action)
            dq = self._dqs[0]
            q = ascend(self.critics[0].forward(batch.state_action), dq)
            dq_da = self.critics[0].backward(dq, weights=False, inputs=self._action_rows)
            through_tanh(batch.action, dq_da, self._da)
            self.actor.backward(self._da)
            self.actor.step(self._adam)
            self._averages.add("actor_loss", -q)

            # L20-L22: so does the actor
            self._adapt_actor()

            # L23-L27: θ' ← τθ + (1-τ)θ', φ' ← τφ + (1-τ)φ', each kept as sparse as it was
            update_each((self.actor_target, *self.critic_targets), o.tau)
