"""SAC, dense or sparse: the paper's algorithm DS-SAC when its rule is SET."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import ActionBox
from rewirl.agents.actor_critic import ActorCritic, Floats, State
from rewirl.agents.options import Options, SACOptions, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.limits import LOG_STD
from rewirl.nn import Batch, backward_each, forward_each, update_each
from rewirl.nn.losses import ascend_lower, soft_bellman, squash, through_squash


class SACAgent(ActorCritic):
    """Soft actor-critic with fixed or learned temperature; comments cite the lines of the paper's DS-SAC.

    >>> box = ActionBox([-2.0], [2.0])
    >>> agent = SACAgent(3, box, SACOptions(hidden=(8, 8), batch=4), WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(3, dtype=np.float32)).shape
    (1,)
    """

    algorithm: ClassVar[str] = "sac"
    policy_kind: ClassVar[str] = "sac"
    options_class: ClassVar[type[Options]] = SACOptions
    critics_in_actor_loss: ClassVar[int] = 2
    options: SACOptions

    def __init__(
        self, n_obs: int, box: ActionBox, options: SACOptions, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.learns_alpha = options.alpha == "auto"
        self.target_entropy = -float(self.n_act) if options.target_entropy is None else options.target_entropy
        # log α, its Adam moments and steps
        start = 0.0 if options.alpha == "auto" else math.log(options.alpha) if options.alpha > 0 else -math.inf
        self._temperature = np.array([start, 0.0, 0.0, 0.0])
        # Needed for the gradient of sampled actions.
        self._std, self._log_prob = Batch(self.n_act, options.batch), Batch(1, options.batch)

    @property
    def alpha(self) -> float:
        """The current temperature."""
        return math.exp(self._temperature[0])

    def act(self, obs: Floats) -> Floats:
        return np.tanh(self.actor.act(obs)[: self.n_act])

    def explore(self, obs: Floats) -> Floats:
        # L8: a ~ π_φ(a|s)
        out = self.actor.act(obs)
        low, high = LOG_STD
        std = np.exp(np.minimum(np.maximum(out[self.n_act :], low), high))
        return np.tanh(out[: self.n_act] + std * self.rng.standard_normal(self.n_act, dtype=np.float32))

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

    def _sample(self, obs: Batch, action: Batch) -> Batch:
        """Draws actions for observations. Returns the actor's outputs; log π(a|s) and std are left in their batches."""
        out = self.actor.forward(obs)
        squash(out, self._draw_noise(), action, self._std, self._log_prob)
        return out

    def _update_actor(self, batch: Transitions) -> float:
        """One step along the gradient of 1/N Σ (α log π(a|s) - min Q_θi(s, a)), a = tanh(mean + std · noise)."""
        out = self._sample(batch.obs, batch.action)
        q1, q2 = forward_each(self.critics, batch.state_action)
        q = ascend_lower(q1, q2, *self._dqs)
        da1, da2 = backward_each(self.critics, self._dqs, weights=False, inputs=self._action_rows)
        through_squash(out, self._noise, batch.action, self._std, da1, da2, self.alpha, self._da)
        self.actor.backward(self._da)
        self.actor.step(self._adam)
        log_prob = float(self._log_prob.array.mean())
        self._averages.add("actor_loss", self.alpha * log_prob - q)
        self._averages.add("entropy", -log_prob)
        return log_prob

    def _update_temperature(self, log_prob: float) -> None:
        """One step of Adam on log α along the gradient of -log α (log π + target entropy)."""
        o, t = self.options, self._temperature
        gradient = -(log_prob + self.target_entropy)
        t[3] += 1
        t[1] = o.beta1 * t[1] + (1 - o.beta1) * gradient
        t[2] = o.beta2 * t[2] + (1 - o.beta2) * gradient * gradient
        t[0] -= self._adam.lr * (t[1] / (1 - o.beta1 ** t[3])) / (math.sqrt(t[2] / (1 - o.beta2 ** t[3])) + o.adam_eps)

    def state(self) -> State:
        return {**super().state(), "temperature": self._temperature.copy()}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        super().load_state(state)
        self._temperature[...] = state["temperature"]
