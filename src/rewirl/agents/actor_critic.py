"""What TD3 and SAC share: an actor, two critics and their targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import ActionBox, Actions
from rewirl.agents.agent import Diverged, Floats, State
from rewirl.agents.costs import ActorCriticCosts, dense_links
from rewirl.agents.options import Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.agents.wired import WiredAgent
from rewirl.nn import Batch, Network, RandomStream, Target, regress_each
from rewirl.policies.file_header import ALGORITHMS

__all__ = ["ActorCritic", "Diverged", "Floats", "State"]


class ActorCritic(WiredAgent):
    """Two critics Q_θ1, Q_θ2 on [s, a] and an actor π_φ, each an MLP of links."""

    actions_class: ClassVar[type[Actions]] = ActionBox
    critic_names: ClassVar[tuple[str, ...]] = ("critic1", "critic2")
    critics_in_actor_loss: ClassVar[int] = 1
    """Number of critics in the actor's loss."""

    def __init__(
        self, n_obs: int, box: ActionBox, options: Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        self.box = box
        actor_sizes, critic_sizes = self._sizes(n_obs, self.n_act, options)
        # Algorithm 1, L1-L4: sparse networks from the first step, targets as their copies.
        self.actor = self._network(actor_sizes, wiring.actor)
        self.critics = (self._critic(critic_sizes), self._critic(critic_sizes))
        self.critic_targets = (Target(self.critics[0]), Target(self.critics[1]))
        self.networks = {"actor": self.actor, "critic1": self.critics[0], "critic2": self.critics[1]}
        self.targets = {"critic1": self.critic_targets[0], "critic2": self.critic_targets[1]}
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
        return (n_obs, *options.hidden, ALGORITHMS[cls.policy_kind] * n_act), (n_obs + n_act, *options.hidden, 1)

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
        due = self.wiring.due(self.updates)
        # A rule that wants gradients can read them right after a critic's own update, and only then.
        alone = due and self.wiring.rule.wants_gradients
        for critics in [(critic,) for critic in self.critics] if alone else [self.critics]:
            for loss, mean_q in regress_each(critics, batch.state_action, y, self._adam):
                if not math.isfinite(loss):
                    raise Diverged(
                        f"the critic's loss is {loss} at update {self.updates}: "
                        "rewards or weights are not finite any more"
                    )
                self._averages.add("critic_loss", loss)
                q = mean_q
            for critic in critics if due else ():
                self._adapt(critic)
        self._averages.add("q", q)  # of the second critic only: the first behaves alike
        self._actor_adapts |= due

    def _adapt_actor(self) -> None:
        if self._actor_adapts:
            self._adapt(self.actor)
            self._actor_adapts = False

    def state(self) -> State:
        return {**super().state(), "actor_adapts": np.array(int(self._actor_adapts))}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        super().load_state(state)
        self._actor_adapts = bool(state["actor_adapts"])
