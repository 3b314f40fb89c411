"""The wiring of an agent as plain data, which Stable-Baselines3 saves with the agent as it is: nothing is pickled."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from rewirl.sb3.networks import AgentNetwork
from rewirl.topology import Links
from rewirl.torch import Wiring

NAME = "sparse_training"
"""Attribute of the agent that holds its record."""


class Asked(NamedTuple):
    """The requested wiring: callbacks with equal requests continue each other's wiring."""

    sparsity: float | None
    lambdas: tuple[float, ...] | None
    block: int

    @classmethod
    def of(cls, sparsity: float | None, lambdas: Iterable[float] | None, block: int) -> Asked:
        """The request as plain numbers and lists."""
        plain = None if lambdas is None else tuple(float(value) for value in lambdas)
        return cls(None if sparsity is None else float(sparsity), plain, int(block))


def record_of(model: BaseAlgorithm) -> dict[str, Any] | None:
    """The record of an agent that was sparse before, as it was kept or loaded."""
    record: dict[str, Any] | None = model.__dict__.get(NAME)
    return record


def new_record(model: BaseAlgorithm, asked: Asked) -> dict[str, Any]:
    """An empty record, attached to the agent."""
    record = {"asked": asked._asdict(), "updates": 0, "rng": {}, "networks": {}}
    setattr(model, NAME, record)
    return record


def asked_in(record: dict[str, Any]) -> Asked:
    """The request when the agent was made sparse."""
    return Asked.of(**record["asked"])


def check(record: dict[str, Any], asked: Asked, networks: list[AgentNetwork]) -> None:
    """Refuses to continue a wiring that differs from the request."""
    before = asked_in(record)
    if before != asked:
        raise ValueError(f"this agent was made sparse with {_words(before)}: ask for the same, and not {_words(asked)}")
    names = [network.name for network in networks]
    if list(record["networks"]) != names:
        raise ValueError(f"this agent has the networks {', '.join(names)}, its wiring {', '.join(record['networks'])}")


def keep(record: dict[str, Any], name: str, wiring: Wiring, *, links: bool) -> None:
    """Updates a network's part of the record; links and generator only if they changed."""
    entry = record["networks"].setdefault(name, {})
    entry.update(updates=wiring.updates, adaptations=wiring.adaptations, replaced=wiring.replaced)
    if links:
        entry["links"] = {layer: _encoded(wired) for layer, wired in wiring.links.items()}
        record["rng"] = wiring.rng.bit_generator.state


def kept_links(record: dict[str, Any], network: AgentNetwork) -> dict[str, Links]:
    """The links of a network as the record has them."""
    found = {}
    for layer, entry in record["networks"][network.name]["links"].items():
        weight = network.module.get_submodule(layer).get_parameter("weight")
        places = np.frombuffer(base64.b64decode(entry["places"]), dtype="<i8").astype(np.int64)
        found[layer] = Links(weight[0].numel(), len(weight), entry["block"], places)
    return found


def restore(record: dict[str, Any], name: str, wiring: Wiring) -> None:
    """Counters and generator of a wiring that has its links already."""
    counters = {key: record["networks"][name][key] for key in ("updates", "adaptations", "replaced")}
    places = {layer: torch.from_numpy(links.places.copy()) for layer, links in wiring.links.items()}
    wiring.load_state_dict({**counters, "rng": record["rng"], "places": places})


def _encoded(links: Links) -> dict[str, Any]:
    return {"block": links.block, "places": base64.b64encode(links.places.astype("<i8").tobytes()).decode()}


def _words(asked: Asked) -> str:
    return ", ".join(f"{name} {value}" for name, value in asked._asdict().items() if value is not None)
