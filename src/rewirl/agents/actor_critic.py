"""What TD3, SAC and CrossQ share: an actor, two critics and their targets; what SAC and CrossQ share: entropy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import ActionBox, Actions
from rewirl.agents.agent import Diverged, Floats, State
from rewirl.agents.costs import ActorCriticCosts, dense_links
from rewirl.agents.options import EntropyOptions, Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.agents.wired import WiredAgent
from rewirl.limits import LOG_STD
from rewirl.nn import Batch, Network, RandomStream, Target, backward_each, forward_each, regress_each
from rewirl.nn.losses import ascend_lower, squash, through_squash
from rewirl.policies.file_header import ALGORITHMS

__all__ = ["ActorCritic", "Diverged", "EntropyCritic", "Floats", "State"]


class ActorCritic(WiredAgent):
    """Two critics Q_θ1, Q_θ2 on [s, a] and an actor π_φ, each an MLP of links."""

    actions_class: ClassVar[type[Actions]] = ActionBox
    critic_names: ClassVar[tuple[str, ...]] = ("critic1", "critic2")
    critics_in_actor_loss: ClassVar[int] = 1
    """Number of critics in the actor's loss."""
    has_targets: ClassVar[bool] = True
    """Whether the critics have targets."""

    def __init__(
        self, n_obs: int, box: ActionBox, options: Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.box = box
        actor_sizes, critic_sizes = self._sizes(n_obs, self.n_act, options)
        # Algorithm 1, L1-L4: sparse networks from the first step, targets as their copies.
        self.actor = self._network(actor_sizes, wiring.actor)
        self.critics = (self._critic(critic_sizes), self._critic(critic_sizes))
        self.critic_targets = tuple(Target(critic) for critic in self.critics) if self.has_targets else ()
        self.networks = {"actor": self.actor, "critic1": self.critics[0], "critic2": self.critics[1]}
        self.targets = dict(zip(self.critic_names, self.critic_targets, strict=False))
        self._actor_adapts = False
        self._random = RandomStream(rng)
        self._noise = Batch(self.n_act, options.batch)
        self._y = Batch(1, options.batch)
        # The loss's gradient at the critics' outputs, and at the actor's.
        self._dqs = (Batch(1, options.batch), Batch(1, options.batch))
        self._da = Batch(actor_sizes[-1], options.batch)
        self._action_rows = (n_obs, n_obs + self.n_act)

    def _critic(self, sizes: tuple[int, ...]) -> Network:
        return self._network(sizes, self.wiring.critic, layer_norm=self.options.layer_norm)

    @classmethod
    def _sizes(cls, n_obs: int, n_act: int, options: Options) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Widths of the actor and of a critic."""
        outputs = ALGORITHMS[cls.policy_kind] * n_act
        return (n_obs, *options.hidden, outputs), (n_obs + n_act, *options.critic_widths, 1)

    @classmethod
    def costs(cls, n_obs: int, n_act: int, options: Options, wiring: WiringOptions) -> ActorCriticCosts:
        actor, critic = cls._sizes(n_obs, n_act, options)
        return ActorCriticCosts(
            actor=sum(wiring.actor.counts(actor)),
            critic=sum(wiring.critic.counts(critic)),
            dense_actor=dense_links(actor),
            dense_critic=dense_links(critic),
            batch=options.batch,
            delay=cls._actor_delay(options),
            critics_in_actor_loss=cls.critics_in_actor_loss,
            targets=cls.has_targets,
        )

    @classmethod
    def _actor_delay(cls, options: Options) -> int:
        """Critic updates for each actor update."""
        return 1

    # ------------------------------------------------- shared steps of the updates

    def _draw_noise(self) -> Batch:
        """ε ~ N(0, 1) for every action of a batch."""
        self._random.normal(self._noise)
        return self._noise

    def _update_critics(self, batch: Transitions, y: Batch) -> None:
        """One step of both critics along the gradient of 1/N Σ (y - Q(s, a))². If the rule is due, they are rewired,
        and the actor is rewired at its next update."""
        self._set_rate()
        for critics in self._rewired_together():
            for loss, mean_q in regress_each(critics, batch.state_action, y, self._adam):
                self._add_loss(loss)
                q = mean_q
            self._adapt_if_due(critics)
        self._averages.add("q", q)  # of the second critic only: the first behaves alike

    def _rewired_together(self) -> Sequence[tuple[Network, ...]]:
        """Critics in groups, each of which may be updated and then rewired, before the next."""
        # A rule that wants gradients can read them right after a critic's own update, and only then.
        alone = self.wiring.due(self.updates) and self.wiring.rule.wants_gradients
        return [(critic,) for critic in self.critics] if alone else [self.critics]

    def _adapt_if_due(self, critics: Sequence[Network]) -> None:
        if self.wiring.due(self.updates):
            for critic in critics:
                self._adapt(critic)
            self._actor_adapts = True

    def _add_loss(self, loss: float) -> None:
        """Takes a critic's loss into account; refuses one that is not finite."""
        if not math.isfinite(loss):
            raise Diverged(
                f"the critic's loss is {loss} at update {self.updates}: rewards or weights are not finite any more"
            )
        self._averages.add("critic_loss", loss)

    def _adapt_actor(self) -> None:
        if self._actor_adapts:
            self._adapt(self.actor)
            self._actor_adapts = False

    def state(self) -> State:
        return {**super().state(), "actor_adapts": np.array(int(self._actor_adapts))}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        super().load_state(state)
        self._actor_adapts = bool(state["actor_adapts"])


class EntropyCritic(ActorCritic):
    """An actor with a distribution of actions, squashed Gaussians, and a fixed or learned temperature."""

    policy_kind: ClassVar[str] = "sac"
    critics_in_actor_loss: ClassVar[int] = 2
    options: EntropyOptions

    def __init__(
        self, n_obs: int, box: ActionBox, options: EntropyOptions, wiring: WiringOptions, rng: np.random.Generator
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

    def _sample(self, obs: Batch, action: Batch, *, training: bool = False) -> Batch:
        """Draws actions for observations. Returns the actor's outputs; log π(a|s) and std are left in their batches."""
        out = self.actor.forward(obs, training=training)
        squash(out, self._draw_noise(), action, self._std, self._log_prob)
        return out

    def _update_actor(self, batch: Transitions) -> float:
        """One step along the gradient of 1/N Σ (α log π(a|s) - min Q_θi(s, a)), a = tanh(mean + std · noise)."""
        out = self._sample(batch.obs, batch.action, training=True)
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
