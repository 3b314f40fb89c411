"""An agent of sparse networks and their targets: how they are wired, rewired and saved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import Actions
from rewirl.agents.agent import Agent, Diverged, State
from rewirl.agents.normaliser import Normaliser
from rewirl.agents.options import Options, WiringOptions
from rewirl.nn import Network, Target, recycle
from rewirl.topology import wire


class Averages:
    """Averages of the values passed to `add` since the last `take`."""

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
        """The averages as arrays, by name."""
        return {name: np.array([self._sums[name], self._counts[name]]) for name in self._sums}

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        self._sums = {name: float(value[0]) for name, value in state.items()}
        self._counts = {name: int(value[1]) for name, value in state.items()}


class WiredAgent(Agent):
    """A subclass puts its networks into `networks` and their targets into `targets`, and extends `state` by everything
    else that the next update depends on."""

    def __init__(
        self, n_obs: int, actions: Actions, options: Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        super().__init__(n_obs, actions, options, wiring, rng)
        self._averages = Averages()
        self._links_replaced = 0
        self._adam = options.adam

    def _network(self, sizes: tuple[int, ...], w: WiringOptions, *, layer_norm: bool = False) -> Network:
        links = wire(sizes, self.rng, rule=w.rule, lambdas=w.lambdas, sparsity=w.sparsity, block=w.block)
        o = self.options
        return Network(links, self.rng, layer_norm=layer_norm, batch_norm=o.batch_norm, sparse_init=o.sparse_init)

    def _set_rate(self) -> None:
        """The learning rate of this update."""
        if self.options.lr_until is not None:
            self._adam = self._adam._replace(lr=self.options.lr_at(self.updates))

    def _adapt(self, network: Network) -> None:
        if not np.isfinite(network.parameters).all():
            raise Diverged(f"weights are not finite any more at update {self.updates}: none of them is the smallest")
        self._links_replaced += network.adapt(self.wiring.rule.at(self.updates), self.rng)
        if self.wiring.recycle is not None:
            # After the rewiring, so that the links which a neuron has just got are drawn anew as well.
            targets = [target for target in self.targets.values() if target.online is network]
            recycle(network, targets, self.wiring.recycle, self.rng)

    def statistics(self) -> dict[str, float]:
        """Averages and replaced links since the last call, and the share of the targets' links that the networks also
        have."""
        out = self._averages.take()
        out["links_replaced"] = float(self._links_replaced)
        self._links_replaced = 0
        follows = [t.follows(layer) for t in self.targets.values() for layer in range(t.online.layers - 1)]
        out["targets_follow"] = float(np.mean(follows)) if follows else 1.0
        return out

    def state(self) -> State:
        out: State = {"updates": np.array(self.updates), "links_replaced": np.array(self._links_replaced)}
        for group, members in self._stateful().items():
            for name, value in members.state().items():
                out[f"{group}.{name}"] = value
        return out

    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        for group, members in self._stateful().items():
            prefix = f"{group}."
            members.load_state({k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)})
        self.updates = int(state["updates"])
        self._links_replaced = int(state["links_replaced"])

    def _stateful(self) -> dict[str, Network | Target | Averages | Normaliser]:
        # A network before its target: the target's weights are in the order of the network's links.
        parts: dict[str, Network | Target | Averages | Normaliser] = dict(self.networks)
        parts.update({f"{name}_target": target for name, target in self.targets.items()})
        parts["averages"], parts["normaliser"] = self._averages, self.normaliser
        return parts
