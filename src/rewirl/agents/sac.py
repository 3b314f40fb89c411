"""SAC, dense or sparse: the paper's algorithm DS-SAC when its rule is SET."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actor_critic import ActorCritic, Floats, State, mean_of
from rewirl.agents.box import ActionBox
from rewirl.agents.options import SACOptions, WiringOptions
from rewirl.agents.transitions import Transitions

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0


class Sample(NamedTuple):
    """Actions of a tanh-squashed Gaussian and what their gradient needs, each (n_act, batch)."""

    action: Floats
    log_prob: Floats
    """log π(a|s) per sample, over actions in units of the policy."""
    noise: Floats
    std: Floats
    free: NDArray[np.bool_]
    """Where log-std was not clamped, so that it has a gradient."""


class SACAgent(ActorCritic):
    """Soft actor-critic with fixed or learned temperature; comments cite the lines of the paper's DS-SAC.

    >>> box = ActionBox([-2.0], [2.0])
    >>> agent = SACAgent(3, box, SACOptions(hidden=(8, 8), batch=4), WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(3, dtype=np.float32)).shape
    (1,)
    """

    algorithm: ClassVar[str] = "sac"
    outputs_per_action: ClassVar[int] = 2

    def __init__(
        self, n_obs: int, box: ActionBox, options: SACOptions, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.options = options
        self.learns_alpha = options.alpha == "auto"
        self.target_entropy = -float(self.n_act) if options.target_entropy is None else options.target_entropy
        # log α, its Adam moments and steps
        start = 0.0 if options.alpha == "auto" else math.log(options.alpha) if options.alpha > 0 else -math.inf
        self._temperature = np.array([start, 0.0, 0.0, 0.0])

    @property
    def alpha(self) -> float:
        """The temperature as it is now."""
        return math.exp(self._temperature[0])

    def act(self, obs: Floats) -> Floats:
        return np.tanh(self.actor.act(obs)[: self.n_act])

    def explore(self, obs: Floats) -> Floats:
        # L8: a ~ π_φ(a|s)
        out = self.actor.act(obs)
        std = np.exp(np.minimum(np.maximum(out[self.n_act :], np.float32(LOG_STD_MIN)), np.float32(LOG_STD_MAX)))
        return np.tanh(out[: self.n_act] + std * self.rng.standard_normal(self.n_act, dtype=np.float32))

    def update(self, batch: Transitions) -> None:
        o = self.options
        self.updates += 1

        # y = r + γ (min Q_θ̄i(s', a') - α log π(a'|s')), a' ~ π_φ(s'); nothing follows a terminal state
        following = self._sample(self.actor.forward(batch.next_obs).array)
        batch.next_action[...] = following.action
        q1, q2 = (target.forward(batch.next_state_action).array[0] for target in self.critic_targets)
        soft_value = np.minimum(q1, q2) - np.float32(self.alpha) * following.log_prob
        y = batch.reward + o.gamma * (1 - batch.terminated) * soft_value

        # L13: θi ← θi - λ ∇J_Q(θi)
        # L14-L16: every e updates the critics drop and grow links
        self._update_critics(batch, y)

        # L17: φ ← φ - λ ∇J_π(φ)
        log_prob = self._update_actor(batch)

        # L18-L20: so does the actor
        self._adapt_actor()

        if self.learns_alpha:
            self._update_temperature(log_prob)
        self._averages.add("alpha", self.alpha)

        # L21-L22: θ̄i ← τθi + (1-τ)θ̄i, kept as sparse as it was
        if self.updates % o.target_interval == 0:
            for target in self.critic_targets:
                target.update(o.tau)

    def _sample(self, out: Floats) -> Sample:
        mean, log_std = out[: self.n_act], out[self.n_act :]
        clamped = np.minimum(np.maximum(log_std, np.float32(LOG_STD_MIN)), np.float32(LOG_STD_MAX))
        std = np.exp(clamped)
        noise = self.rng.standard_normal(mean.shape, dtype=np.float32)
        u = mean + std * noise
        # log N(u; mean, std) - log(1 - tanh²u), the second written so that it does not overflow
        size = np.abs(u)
        squash = 2 * (np.float32(math.log(2)) - size - np.log(1 + np.exp(-2 * size)))
        log_prob = (-0.5 * noise * noise - clamped - np.float32(0.5 * math.log(2 * math.pi)) - squash).sum(axis=0)
        return Sample(np.tanh(u), log_prob, noise, std, clamped == log_std)

    def _update_actor(self, batch: Transitions) -> float:
        """One step along the gradient of 1/N Σ (α log π(a|s) - min Q_θi(s, a)), a = tanh(mean + std · noise)."""
        alpha, n = np.float32(self.alpha), np.float32(batch.size)
        sample = self._sample(self.actor.forward(batch.obs).array)
        batch.action[...] = sample.action
        q1, q2 = (critic.forward(batch.state_action).array[0] for critic in self.critics)
        lower = q1 <= q2  # each sample's gradient comes from the critic that gives its minimum
        dq_da = np.zeros_like(sample.action)
        for critic, chosen in zip(self.critics, (lower, ~lower), strict=True):
            np.multiply(chosen, -1 / n, out=self._dq.array[0])
            dq_da += critic.backward(self._dq, weights=False, inputs=self._action_rows).array
        a = sample.action
        du = dq_da * (1 - a * a) + (2 * alpha / n) * a  # d(-log(1 - tanh²u))/du = 2 tanh u
        self._da.array[: self.n_act] = du
        self._da.array[self.n_act :] = (du * sample.std * sample.noise - alpha / n) * sample.free
        self.actor.backward(self._da)
        self.actor.step(self._adam)
        log_prob = mean_of(sample.log_prob)
        self._averages.add("actor_loss", float(alpha) * log_prob - mean_of(np.minimum(q1, q2)))
        self._averages.add("entropy", -log_prob)
        return log_prob

    def _update_temperature(self, log_prob: float) -> None:
        """One step of Adam on log α along the gradient of -log α (log π + target entropy)."""
        o, t = self.options, self._temperature
        gradient = -(log_prob + self.target_entropy)
        t[3] += 1
        t[1] = o.beta1 * t[1] + (1 - o.beta1) * gradient
        t[2] = o.beta2 * t[2] + (1 - o.beta2) * gradient * gradient
        t[0] -= o.lr * (t[1] / (1 - o.beta1 ** t[3])) / (math.sqrt(t[2] / (1 - o.beta2 ** t[3])) + o.adam_eps)

    def state(self) -> State:
        return {**super().state(), "temperature": self._temperature.copy()}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        super().load_state(state)
        self._temperature[...] = state["temperature"]
