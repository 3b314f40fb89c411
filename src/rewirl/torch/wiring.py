"""Makes a module sparse, keeps it sparse, and rewires it while it learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rewirl.topology import DEFAULT_SPARSITY, Links, Rule, as_rule, erdos_renyi, estimated_moments, layer_counts
from rewirl.topology._checks import finite_number, listed, whole_number
from rewirl.torch.layers import Choice, SparseLayer, chosen, layers_of, refuse_shared, shape_of
from rewirl.torch.targets import keep_largest, polyak

SECOND_MOMENTS = {"exp_avg_sq", "square_avg"}
"""Names of the mean of squared gradients in optimizers such as Adam and RMSprop: new links start with an estimate."""


def sparsify(
    module: nn.Module,
    *,
    rule: Rule | type[Rule],
    sparsity: float | None = None,
    lambdas: Sequence[float] | None = None,
    links: Mapping[str, Links] | None = None,
    layers: Choice | None = None,
    block: int = 1,
    seed: int | np.random.Generator | None = None,
) -> Wiring:
    """Makes the Linear and Conv2d layers of a module sparse, in place; the result keeps them sparse during learning.

    `rule` is SET(), RigL(), Static(), Dense(), or one of these classes for its defaults. By default half of the weights
    are removed. Give one of these for another number: `lambdas`, one λ for each sparse layer; `sparsity`, the share of
    weights to remove from all Linear and Conv2d layers, dense ones included; `links`, a wiring by names of layers.
    `layers` selects the sparse layers by name, or by a predicate of name and layer; the default is all except the last.
    A Conv2d counts as a layer from (in · height · width) to its output channels. `block` neighbouring outputs share an
    input. Links are drawn from `seed`, which may be a generator; without one, from PyTorch's generator.

    >>> from rewirl.topology import SET
    >>> net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> wiring = sparsify(net, rule=SET(eta=0.1, every=100), sparsity=0.8, seed=0)
    >>> optimizer = torch.optim.Adam(net.parameters())
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     net(torch.randn(16, 8)).square().mean().backward()
    ...     optimizer.step()
    ...     replaced = wiring.after_step(optimizer)
    >>> replaced, int(net[2].weight.count_nonzero()) + replaced >= wiring.links["2"].count
    (82, True)
    """
    module, rule = _plain(module), as_rule(rule)
    found = layers_of(module)
    names = chosen(found, layers if links is None else links)
    shapes = {name: shape_of(name, found[name]) for name in names}
    refuse_shared(module, names)
    given = sum(choice is not None for choice in (lambdas, sparsity, links))
    if rule.sparse and given > 1:
        raise ValueError("give one of lambdas, sparsity and links: they are ways to say the same thing")
    if not given:
        sparsity = DEFAULT_SPARSITY
    rng = np.random.default_rng(int(torch.randint(2**63 - 1, ())) if seed is None else seed)
    if links is not None:
        wired = [_fitting(name, links[name], shape) for name, shape in shapes.items()]
    elif rule.sparse:
        dense = sum(layer.weight.numel() for name, layer in found.items() if name not in names)
        counts = _counts(shapes, dense, sparsity, lambdas, block)
        wired = [erdos_renyi(*shapes[name], count, rng, block) for name, count in counts.items()]
    else:
        wired = [Links.dense(*shape) for shape in shapes.values()]
    keeps = rule.wants_gradients
    sparse = [SparseLayer(name, found[name], w, keeps_gradients=keeps) for name, w in zip(names, wired, strict=True)]
    return Wiring(module, sparse, rule, rng)


class Wiring:
    """The sparse layers of a module. Created by `sparsify`, to be used wherever the module is trained."""

    def __init__(self, module: nn.Module, layers: list[SparseLayer], rule: Rule, rng: np.random.Generator) -> None:
        self.module, self.rule, self.rng = module, rule, rng
        self._layers = layers
        self.updates = 0
        """Number of updates so far, for the rule's schedule."""
        self.adaptations = 0
        """Number of rewirings."""
        self.replaced = 0
        """Total number of replaced links."""

    @property
    def links(self) -> dict[str, Links]:
        """The current links of each sparse layer."""
        return {layer.name: layer.links for layer in self._layers}

    def parameter_groups(self, lr: float, sparse_rate: float = 1.0) -> list[dict[str, Any]]:
        """The module's parameters for an optimizer such as Adam, with learning rates for few links.

        The weights of a sparse layer with a share p of all possible links learn at lr / p^sparse_rate, everything else
        at lr. With 1, outputs change as much per step as those of dense layers do (Dey et al. 2024).

        >>> from rewirl.topology import SET
        >>> net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
        >>> wiring = sparsify(net, rule=SET(), lambdas=[1.778], seed=0)
        >>> groups = wiring.parameter_groups(lr=1e-3)
        >>> [(group["lr"], len(group["params"])) for group in groups]
        [(0.001, 3), (0.004, 1)]
        >>> optimizer = torch.optim.Adam(groups)
        """
        lr, sparse_rate = finite_number("lr", lr), finite_number("sparse_rate", sparse_rate)
        own = {id(layer.weight) for layer in self._layers}
        rest = [parameter for parameter in self.module.parameters() if id(parameter) not in own]
        groups: list[dict[str, Any]] = [{"params": rest, "lr": lr}] if rest else []
        for layer in self._layers:
            groups.append({"params": [layer.weight], "lr": lr / (1 - layer.links.sparsity) ** sparse_rate})
        return groups

    def after_step(self, optimizer: torch.optim.Optimizer, *, update: int | None = None) -> int:
        """To be called after every `optimizer.step()`; returns the number of replaced links.

        Weights, gradients and the optimizer's state are 0 except for links. If the rule is due, links are dropped and
        grown (Algorithm 2), with gradients of the last step if the rule needs them. Calls are counted as updates. For
        a module that is not trained at every update (TD3's actor), pass `update`: it is rewired at its first update
        at or after the time.
        """
        states = self._states(optimizer)
        now = self.updates + 1 if update is None else whole_number("update", update)
        if now <= self.updates:
            raise ValueError(f"update {now} was already: the next one is {self.updates + 1} or later")
        due = any(self.rule.due(t) for t in range(self.updates + 1, now + 1))
        self.updates = now
        self._mask(states)
        replaced = self._adapt(states) if due else 0
        if replaced:
            self._mask(states)  # what was dropped
        for layer in self._layers:
            layer.forget_gradient()
        return replaced

    def follow(self, target: nn.Module, tau: float) -> None:
        """θ' ← τθ + (1-τ)θ', then MaintainSparsity: `maintain`. With τ = 1 the target becomes a copy.

        The target keeps links of its own: what the module dropped stays as long as it is among the k largest.
        """
        if not 0 <= finite_number("tau", tau) <= 1:
            raise ValueError(f"tau must be from 0 to 1, not {tau:g}")
        polyak(self.module, _plain(target), tau)
        self.maintain(target)

    def maintain(self, target: nn.Module) -> None:
        """MaintainSparsity (Algorithm 3): of a target's sparse layers only the k largest weights stay, k the links.

        For a target that something else updates; `follow` does both.
        """
        target = _plain(target)
        for layer in self._layers:
            if layer.links.n_free:
                keep_largest(target.get_submodule(layer.name).get_parameter("weight"), layer.links)

    def statistics(self) -> dict[str, float]:
        """Statistics for logs: counts so far, links and sparsity of all sparse layers, sparsity of each."""
        links = self.links
        count = sum(wired.count for wired in links.values())
        return {
            "updates": float(self.updates),
            "adaptations": float(self.adaptations),
            "replaced": float(self.replaced),
            "links": float(count),
            "sparsity": 1 - count / sum(wired.n_in * wired.n_out for wired in links.values()),
            **{f"sparsity.{name}": wired.sparsity for name, wired in links.items()},
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next update depends on beside the module's and the optimizer's own state.

        Plain numbers, texts and tensors: `torch.load` reads it with `weights_only=True`.
        """
        return {
            "updates": self.updates,
            "adaptations": self.adaptations,
            "replaced": self.replaced,
            "rng": dict(self.rng.bit_generator.state),
            "places": {name: torch.from_numpy(links.places.copy()) for name, links in self.links.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned; everything is checked before anything changes.

        Also load the states of the module and the optimizer, before or after this, but after `sparsify`, which sets
        all weights outside its own wiring to 0.
        """
        counts = {name: _count(name, state) for name in ("updates", "adaptations", "replaced")}
        probe = type(self.rng.bit_generator)()
        probe.state = _entry("rng", state)
        wired = self._loaded_links(_entry("places", state))
        self.updates, self.adaptations, self.replaced = counts.values()
        self.rng.bit_generator.state = probe.state
        for layer, links in zip(self._layers, wired, strict=True):
            layer.wire(links)
            layer.mask(layer.weight.detach())

    def release(self) -> None:
        """Detaches from the module, which is then an ordinary dense one with zeros in it."""
        for layer in self._layers:
            layer.release()

    def _states(self, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
        """The optimizer's state of each sparse layer's weight."""
        owned = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for layer in self._layers:
            if id(layer.weight) not in owned:
                raise ValueError(
                    f"this {type(optimizer).__name__} does not have the weight of layer {layer.name!r}: "
                    "give the optimizer that has them all, or sparsify the layers of each optimizer on their own"
                )
        return [optimizer.state.get(layer.weight, {}) for layer in self._layers]

    def _mask(self, states: list[dict[str, Any]]) -> None:
        for layer, state in zip(self._layers, states, strict=True):
            weight = layer.weight
            # moments and the like have the weight's shape, whatever optimizers call them
            moments = (value for value in state.values() if isinstance(value, Tensor) and value.shape == weight.shape)
            for values in (weight.detach(), weight.grad, *moments):
                if values is not None:
                    layer.mask(values)

    def _adapt(self, states: list[dict[str, Any]]) -> int:
        """TopologicalAdaptation (Algorithm 2) of every layer, in the order and with the draws of the engine."""
        replaced, rule = 0, self.rule.at(self.updates)
        for layer, state in zip(self._layers, states, strict=True):
            if layer.links.n_free == 0:
                continue
            gradient = layer.gradient()
            if self.rule.wants_gradients and gradient is None:
                raise RuntimeError(
                    f"{type(self.rule).__name__} grows by gradients, and layer {layer.name!r} had none in this step: "
                    "call backward() before every step"
                )
            change = rule.rewire(layer.links, layer.weights(), self.rng, gradient)
            for name in SECOND_MOMENTS & state.keys() if len(change.grown) else ():
                moments = layer.at_links(state[name])
                layer.put(state[name], change.grown, estimated_moments(layer.links, moments, change.grown))
            layer.wire(change.links)
            replaced += len(change.grown) * layer.links.block
        self.adaptations += 1
        self.replaced += replaced
        return replaced

    def _loaded_links(self, places: Mapping[str, Tensor]) -> list[Links]:
        names = [layer.name for layer in self._layers]
        if list(places) != names:
            raise ValueError(f"the state is for the layers {', '.join(places)}, and these are {', '.join(names)}")
        wired = []
        for layer in self._layers:
            old = layer.links
            new = Links(old.n_in, old.n_out, old.block, places[layer.name].cpu().numpy())
            if new.count != old.count:
                raise ValueError(f"layer {layer.name!r} has {old.count} links, the state has {new.count}")
            wired.append(new)
        return wired


def _counts(
    shapes: Mapping[str, tuple[int, int]],
    dense: int,
    sparsity: float | None,
    lambdas: Sequence[float] | None,
    block: int,
) -> dict[str, int]:
    """Links of each sparse layer, in a module whose dense layers have `dense` links in total."""
    if lambdas is not None and (given := len(listed("lambdas", lambdas, "(7, 64)"))) != len(shapes):
        raise ValueError(f"{given} lambdas for {len(shapes)} sparse layers ({', '.join(shapes)}): give one for each")
    counts = layer_counts(list(shapes.values()), lambdas=lambdas, sparsity=sparsity, block=block, dense=dense)
    return dict(zip(shapes, counts, strict=True))


def _fitting(name: str, links: Links, shape: tuple[int, int]) -> Links:
    if (links.n_in, links.n_out) != shape:
        raise ValueError(
            f"layer {name!r} is {shape[0]} → {shape[1]}, the links given are for {links.n_in} → {links.n_out}"
        )
    return links


def _plain(module: nn.Module) -> nn.Module:
    """The module inside torch.compile, whose names have no prefix."""
    plain = getattr(module, "_orig_mod", module)
    if not isinstance(plain, nn.Module):
        raise TypeError(f"a torch.nn.Module is wanted, not {type(plain).__name__}")
    return plain


def _entry(name: str, state: Mapping[str, Any]) -> Any:
    if name not in state:
        raise ValueError(f"the state has no {name!r}; it has {', '.join(sorted(state)) or 'nothing'}")
    return state[name]


def _count(name: str, state: Mapping[str, Any]) -> int:
    count = whole_number(name, _entry(name, state))
    if count < 0:
        raise ValueError(f"{name} must not be negative, and is {count}")
    return count
