"""Double DQN, dense or sparse, for tasks with discrete actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import Actions, Choices
from rewirl.agents.agent import Diverged, Floats, State
from rewirl.agents.costs import ValueCosts, dense_links
from rewirl.agents.options import DQNOptions, Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.agents.wired import WiredAgent
from rewirl.nn import Batch, Target


class DQNAgent(WiredAgent):
    """One network Q_θ with a value for each action, and its target Q_θ'. Actions are one-hot.

    >>> agent = DQNAgent(4, Choices(2), DQNOptions(hidden=(8, 8), batch=4), WiringOptions(), np.random.default_rng(0))
    >>> agent.act(np.zeros(4, dtype=np.float32)).sum()
    np.float32(1.0)
    """

    algorithm: ClassVar[str] = "dqn"
    policy_kind: ClassVar[str] = "dqn"
    acting_name: ClassVar[str] = "q"
    options_class: ClassVar[type[Options]] = DQNOptions
    actions_class: ClassVar[type[Actions]] = Choices
    options: DQNOptions

    def __init__(
        self, n_obs: int, choices: Choices, options: DQNOptions, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, choices, options, wiring, rng)
        self.choices = choices
        self.q = self._network((n_obs, *options.hidden, self.n_act), wiring)
        self.target = Target(self.q)
        self.networks, self.targets = {"q": self.q}, {"q": self.target}
        self._explored = 0
        """Actions chosen during learning."""
        self._dq = Batch(self.n_act, options.batch)

    @classmethod
    def costs(cls, n_obs: int, n_act: int, options: Options, wiring: WiringOptions) -> ValueCosts:
        if options.layer_norm:
            raise ValueError("layer_norm is for critics: the network of DQN acts, and policies have no such layers")
        if wiring.actor_sparsity is not None or wiring.critic_sparsity is not None:
            raise ValueError("DQN has one network: give sparsity instead of actor_sparsity and critic_sparsity")
        sizes = (n_obs, *options.hidden, n_act)
        return ValueCosts(q=sum(wiring.counts(sizes)), dense_q=dense_links(sizes), batch=options.batch)

    @property
    def epsilon(self) -> float:
        """ε of the next action."""
        o = self.options
        share = min(self._explored / o.epsilon_steps, 1.0) if o.epsilon_steps else 1.0
        return o.epsilon_start + share * (o.epsilon_end - o.epsilon_start)

    def act(self, obs: Floats) -> Floats:
        return self.choices.one_hot(self.q.act(obs).argmax())

    def explore(self, obs: Floats) -> Floats:
        # a random action with probability ε, argmax_a Q_θ(s, a) otherwise
        random = self.rng.random() < self.epsilon
        self._explored += 1
        return self.choices.draw(self.rng) if random else self.act(obs)

    def update(self, batch: Transitions) -> None:
        o = self.options
        self.updates += 1
        self._set_rate()

        # a* = argmax_a Q_θ(s', a); y = r + γ Q_θ'(s', a*); nothing follows a terminal state
        best = self.q.forward(batch.next_obs).array.argmax(axis=0)
        following = np.take_along_axis(self.target.forward(batch.next_obs).array, best[None], axis=0)
        y = batch.reward.array + np.float32(o.gamma) * (1 - batch.terminated.array) * following

        # θ ← θ - λ ∇ 1/N Σ loss(Q_θ(s, a) - y), where the one-hot a selects the output
        chosen = batch.action.array
        q = (self.q.forward(batch.obs).array * chosen).sum(axis=0, keepdims=True)
        loss, slope = _huber(q - y) if o.loss == "huber" else _squared(q - y)
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} at update {self.updates}: rewards or weights are not finite any more")
        self._dq.array[...] = chosen * (slope / np.float32(o.batch))
        self.q.backward(self._dq)
        self.q.step(self._adam)
        self._averages.add("critic_loss", loss)
        self._averages.add("q", float(q.mean()))

        # every e updates the network drops and grows links
        if self.wiring.due(self.updates):
            self._adapt(self.q)

        # θ' ← τθ + (1-τ)θ', kept as sparse as it was
        if self.updates % o.target_interval == 0:
            self.target.update(o.tau)

    def state(self) -> State:
        return {**super().state(), "explored": np.array(self._explored)}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        super().load_state(state)
        self._explored = int(state["explored"])


def _huber(error: Floats) -> tuple[float, Floats]:
    """The mean loss of errors, and its derivative at each."""
    size = np.abs(error)
    return float(np.where(size <= 1, 0.5 * error * error, size - 0.5).mean()), np.clip(error, -1, 1)


def _squared(error: Floats) -> tuple[float, Floats]:
    return float((error * error).mean()), 2 * error
