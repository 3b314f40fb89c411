"""What TD3 and SAC share: an actor, two critics, their targets, and how they are wired, counted and saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.agent import Agent, Diverged, Floats, State
from rewirl.agents.box import ActionBox
from rewirl.agents.costs import ActorCriticCosts, dense_links
from rewirl.agents.options import Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.nn import Batch, Network, RandomStream, Target, regress_each
from rewirl.policies.policy import ALGORITHMS
from rewirl.topology import wire

__all__ = ["ActorCritic", "Averages", "Diverged", "Floats", "State"]


class Averages:
    """Means of what `add` was given since the last `take`."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, value: float) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + value
        self._counts[name] = self._counts.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        out = {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums.clear()
        self._counts.clear()
        return out

    def state(self) -> State:
        """As arrays whose names say what was averaged."""
        return {name: np.array([self._sums[name], self._counts[name]]) for name in self._sums}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        self._sums = {name: float(value[0]) for name, value in state.items()}
        self._counts = {name: int(value[1]) for name, value in state.items()}


class ActorCritic(Agent):
    """Two critics Q_θ1, Q_θ2 on [s, a] and an actor π_φ, each an MLP of links."""

    critics_in_actor_loss: ClassVar[int] = 1
    """How many critics the actor's loss asks."""

    def __init__(
        self, n_obs: int, box: ActionBox, options: Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, box, options, wiring, rng)
        actor_sizes, critic_sizes = self._sizes(n_obs, self.n_act, options)
        # Algorithm 1, L1-L4: sparse networks from the first step, targets as their copies.
        self.actor = self._network(actor_sizes, wiring.actor)
        self.critics = (self._critic(critic_sizes), self._critic(critic_sizes))
        self.critic_targets = (Target(self.critics[0]), Target(self.critics[1]))
        self.networks = {"actor": self.actor, "critic1": self.critics[0], "critic2": self.critics[1]}
        self.targets = {"critic1": self.critic_targets[0], "critic2": self.critic_targets[1]}
        self._actor_adapts = False
        self._averages = Averages()
        self._links_replaced = 0
        self._adam = options.adam
        self._random = RandomStream(rng)
        self._noise = Batch(self.n_act, options.batch)
        self._y = Batch(1, options.batch)
        # The loss's gradient at the critics' outputs, and at the actor's.
        self._dqs = (Batch(1, options.batch), Batch(1, options.batch))
        self._da = Batch(actor_sizes[-1], options.batch)
        self._action_rows = (n_obs, n_obs + self.n_act)

    def _network(self, sizes: tuple[int, ...], w: WiringOptions, *, layer_norm: bool = False) -> Network:
        links = wire(sizes, self.rng, rule=w.rule, lambdas=w.lambdas, sparsity=w.sparsity, block=w.block)
        return Network(links, self.rng, layer_norm=layer_norm, sparse_init=self.options.sparse_init)

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
        """Updates of the critics for each of the actor."""
        return 1

    @property
    def acting(self) -> Network:
        return self.actor

    # ------------------------------------------------- shared steps of the updates

    def _draw_noise(self) -> Batch:
        """ε ~ N(0, 1) for every action of a batch."""
        self._random.normal(self._noise)
        return self._noise

    def _update_critics(self, batch: Transitions, y: Batch) -> None:
        """Both critics one step towards y, along the gradient of 1/N Σ (y - Q(s, a))², and, when it is time, to other
        links; the actor then adapts at its own first update from there on."""
        due = self.wiring.rule.due(self.updates)
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
        self._averages.add("q", q)  # of the second critic: one tells enough
        self._actor_adapts |= due

    def _adapt_actor(self) -> None:
        if self._actor_adapts:
            self._adapt(self.actor)
            self._actor_adapts = False

    def _adapt(self, network: Network) -> None:
        if not np.isfinite(network.parameters).all():
            raise Diverged(f"weights are not finite any more at update {self.updates}: none of them is the smallest")
        self._links_replaced += network.adapt(self.wiring.rule.at(self.updates), self.rng)

    # ---------------------------------------------------------- what others see

    def statistics(self) -> dict[str, float]:
        """Averages and links replaced since the last call, and how far the targets' links follow the online ones."""
        out = self._averages.take()
        out["links_replaced"] = float(self._links_replaced)
        self._links_replaced = 0
        follows = [t.follows(layer) for t in self.targets.values() for layer in range(t.online.layers - 1)]
        out["targets_follow"] = float(np.mean(follows)) if follows else 1.0
        return out

    def state(self) -> State:
        out: State = {
            "updates": np.array(self.updates),
            "actor_adapts": np.array(int(self._actor_adapts)),
            "links_replaced": np.array(self._links_replaced),
        }
        for group, members in self._stateful().items():
            for name, value in members.state().items():
                out[f"{group}.{name}"] = value
        return out

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        for group, members in self._stateful().items():
            prefix = f"{group}."
            members.load_state({k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)})
        self.updates = int(state["updates"])
        self._actor_adapts = bool(state["actor_adapts"])
        self._links_replaced = int(state["links_replaced"])

    def _stateful(self) -> dict[str, Network | Target | Averages]:
        # A network before its target: the target's weights are in the order of the network's links.
        parts: dict[str, Network | Target | Averages] = dict(self.networks)
        parts.update({f"{name}_target": target for name, target in self.targets.items()})
        parts["averages"] = self._averages
        return parts
