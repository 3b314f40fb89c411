"""Sparse networks attached to an agent: what happens after each step of its optimizers."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from rewirl.sb3 import record as records
from rewirl.sb3.networks import AgentNetwork, agent_networks, clock
from rewirl.topology import Rule
from rewirl.torch import Wiring, sparsify


class Attachment:
    """The wirings of an agent's networks, and the hooks that maintain them."""

    def __init__(self, model: BaseAlgorithm, rule: Rule, asked: records.Asked, seed: int | None) -> None:
        self._networks = agent_networks(model)
        self._clock = clock(model)
        record = records.record_of(model)
        if record is None:
            self.wirings = self._wire(rule, asked, seed)
            record = records.new_record(model, asked)
            for name, wiring in self.wirings.items():
                records.keep(record, name, wiring, links=True)
        else:
            records.check(record, asked, self._networks)
            self.wirings = self._rewire(rule, record)
        self._record = record
        self._hooks = self._hook()

    def maintain(self) -> None:
        """Prunes the targets, because the agent's own target updates make them denser."""
        for network in self._networks:
            if network.target is not None:
                self.wirings[network.name].maintain(network.target)

    def remove(self) -> None:
        """Detaches from the agent; its record stays."""
        self.maintain()
        for hook in self._hooks:
            hook.remove()
        for wiring in self.wirings.values():
            wiring.release()

    def _wire(self, rule: Rule, asked: records.Asked, seed: int | None) -> dict[str, Wiring]:
        for network in self._networks:  # on a copy first: a refusal must not leave half an agent sparse
            self._sparsify(network, copy.deepcopy(network.module), rule, asked, np.random.default_rng(0))
        rng = np.random.default_rng(int(torch.randint(2**63 - 1, ())) if seed is None else seed)
        wirings = {}
        for network in self._networks:
            wiring = self._sparsify(network, network.module, rule, asked, rng)
            if network.target is not None:
                wiring.follow(network.target, 1)  # Algorithm 1, L4
            wirings[network.name] = wiring
        return wirings

    def _sparsify(
        self, network: AgentNetwork, module: torch.nn.Module, rule: Rule, asked: records.Asked, rng: np.random.Generator
    ) -> Wiring:
        try:
            return sparsify(module, rule=rule, layers=network.sparse_layers, seed=rng, **asked._asdict())
        except ValueError as error:
            raise ValueError(f"network {network.name!r}: {error}") from error

    def _rewire(self, rule: Rule, record: dict[str, Any]) -> dict[str, Wiring]:
        rng = np.random.default_rng(0)
        wirings = {}
        for network in self._networks:
            wiring = sparsify(network.module, rule=rule, links=records.kept_links(record, network), seed=rng)
            records.restore(record, network.name, wiring)
            wirings[network.name] = wiring
        return wirings

    def _hook(self) -> list[RemovableHandle]:
        optimizers = {id(network.optimizer): network.optimizer for network in self._networks}
        optimizers[id(self._clock)] = self._clock
        hooks = [optimizer.register_step_post_hook(self._after_step) for optimizer in optimizers.values()]
        for network in self._networks:
            for part in network.target.values() if network.target is not None else ():
                hooks.append(part.register_forward_pre_hook(self._before_target(network)))
        return hooks

    def _after_step(self, optimizer: Optimizer, *_: object) -> None:
        if optimizer is self._clock:
            self._record["updates"] += 1
        for network in self._networks:
            if network.optimizer is optimizer:
                wiring = self.wirings[network.name]
                replaced = wiring.after_step(optimizer, update=self._record["updates"])
                records.keep(self._record, network.name, wiring, links=replaced > 0)

    def _before_target(self, network: AgentNetwork) -> Any:
        # Agents update targets in a function that cannot be hooked, but use them before the next update.
        def maintain(*_: object) -> None:
            assert network.target is not None
            self.wirings[network.name].maintain(network.target)

        return maintain


_attached: WeakKeyDictionary[BaseAlgorithm, Attachment] = WeakKeyDictionary()


def attach(model: BaseAlgorithm, rule: Rule, asked: records.Asked, seed: int | None) -> Attachment:
    """Makes an agent sparse, and detaches what an interrupted run left on it."""
    detach(model)
    _attached[model] = Attachment(model, rule, asked, seed)
    return _attached[model]


def detach(model: BaseAlgorithm) -> None:
    """Ends an agent's attachment, if it has one."""
    if (attachment := _attached.pop(model, None)) is not None:
        attachment.remove()
