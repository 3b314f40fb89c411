"""The layers of a module that can be made sparse, and the state of those that are."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from rewirl.topology import Links
from rewirl.topology._checks import Floats, layer_width

Layer: TypeAlias = nn.Linear | nn.Conv2d
Choice: TypeAlias = Iterable[str] | Callable[[str, Layer], bool]
"""Selection of sparse layers: names, or a predicate of name and layer."""


class SparseLayer:
    """A sparse layer and its links.

    Its weight stays an ordinary dense parameter that holds 0 where there is no link, so that other code that
    uses the module still works. A hook masks its gradient immediately, so that gradient clipping sees links only.
    """

    def __init__(self, name: str, module: Layer, links: Links, *, keeps_gradients: bool) -> None:
        self.name, self.module, self.links = name, module, links
        self._keeps_gradients = keeps_gradients
        self._gradient: Tensor | None = None
        self._bits: dict[tuple[torch.device, int], Tensor] = {}
        self._hook: RemovableHandle = self.weight.register_hook(self._on_gradient)  # type: ignore[no-untyped-call]
        self.mask(self.weight.detach())

    @property
    def weight(self) -> Tensor:
        """The layer's own weight."""
        return self.module.weight

    def wire(self, links: Links) -> None:
        """Replaces the links."""
        self.links = links
        self._bits.clear()

    def mask(self, values: Tensor) -> None:
        """Sets everything except links to 0, in place; `values` has the weight's shape."""
        if self.links.n_free:
            bits = self._bits_for(values)
            values.view(bits.dtype).bitwise_and_(bits)

    def weights(self) -> Floats:
        """The weights of `links.places` in that order, (blocks, block), as rules want them."""
        return self.at_links(self.weight.detach())

    def at_links(self, values: Tensor) -> Floats:
        """The same for any values of the weight's shape."""
        by_input = values.reshape(self.links.n_out, self.links.n_in).t()
        by_place = by_input.reshape(self.links.n_places, self.links.block)
        return _numpy(by_place[torch.from_numpy(self.links.places.copy()).to(values.device)])

    def put(self, values: Tensor, places: NDArray[np.int64], numbers: Floats) -> None:
        """Writes numbers, block by block, to some places of values of the weight's shape."""
        cells = places[:, None] * self.links.block + np.arange(self.links.block)
        inputs, outputs = (
            torch.from_numpy(part).to(values.device) for part in np.divmod(cells.ravel(), self.links.n_out)
        )
        rows = values.reshape(self.links.n_out, self.links.n_in)
        rows[outputs, inputs] = torch.from_numpy(numbers).to(values)

    def gradient(self) -> Floats | None:
        """The dense gradient (outputs, inputs) of the last step, if it is kept and there was one."""
        if self._gradient is None:
            return None
        return _numpy(self._gradient.reshape(self.links.n_out, self.links.n_in))

    def forget_gradient(self) -> None:
        """Ends the step."""
        self._gradient = None

    def release(self) -> None:
        """Makes the layer dense again."""
        self._hook.remove()

    def _on_gradient(self, gradient: Tensor) -> Tensor:
        if self.links.n_free == 0:
            return gradient
        if self._keeps_gradients:
            # Accumulates and is reset like .grad: gradients of other losses that passed through this layer (an actor's
            # through its critic) do not belong to this step.
            before, held = self._gradient, self.weight.grad
            if before is None or held is None or not held.any():
                self._gradient = gradient.detach()
            else:
                self._gradient = before + gradient.detach()
        bits = self._bits_for(gradient)
        if gradient.requires_grad:  # it may be differentiated again
            return gradient.masked_fill(bits == 0, 0)
        return (gradient.view(bits.dtype) & bits).view(gradient.dtype)

    def _bits_for(self, values: Tensor) -> Tensor:
        """A bit mask for each of `values`: all ones for a link, otherwise all zeros.

        An "and" with it sets anything to 0, also NaN, at a fraction of the cost of masked_fill.
        """
        key = values.device, values.element_size()
        if key not in self._bits:
            integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
            self._bits[key] = -_exists(self.links, values).to(integer)
        return self._bits[key]


def layers_of(module: nn.Module) -> dict[str, Layer]:
    """Linear and Conv2d layers by name, in the order of the module."""
    found = {name: child for name, child in module.named_modules() if isinstance(child, Layer)}
    if not found:
        raise ValueError(f"{type(module).__name__} has no Linear or Conv2d layer: there is nothing to wire sparse")
    return found


def shape_of(name: str, layer: Layer) -> tuple[int, int]:
    """(n_in, n_out) of a layer; for a convolution, all inputs of an output channel count."""
    if "weight" not in layer._parameters:
        raise ValueError(f"layer {name!r} computes its weight from others (a parametrization): remove that first")
    if isinstance(layer.weight, nn.UninitializedParameter):
        raise ValueError(f"layer {name!r} has no shape yet: run one batch through the module first")
    if not layer.weight.requires_grad:
        raise ValueError(f"layer {name!r} is frozen (requires_grad is False): leave it out of layers")
    if any(isinstance(getattr(hook, "__self__", None), SparseLayer) for hook in _hooks(layer.weight)):
        raise ValueError(f"layer {name!r} is sparse already: call release() of its wiring first")
    n_out, n_in = layer.weight.shape[0], layer.weight[0].numel()
    return layer_width(f"inputs of layer {name!r}", n_in), layer_width(f"outputs of layer {name!r}", n_out)


def chosen(found: dict[str, Layer], choice: Choice | None) -> list[str]:
    """Names of the layers to make sparse, in the order of `found`; by default all except the last."""
    if choice is None:
        *names, last = found
        if not names:
            raise ValueError(f"{last!r} is the only layer, and the last one stays dense unless layers names it")
        return names
    if callable(choice):
        names = [name for name, layer in found.items() if choice(name, layer)]
    elif isinstance(choice, str):
        raise TypeError(f"layers must be names such as [{choice!r}], or a function of name and layer, not a text")
    else:
        wanted = set(choice)
        for name in wanted - set(found):
            nearest = difflib.get_close_matches(name, list(found), n=1, cutoff=0.5)
            hint = f", did you mean {nearest[0]!r}?" if nearest else ""
            raise ValueError(f"there is no Linear or Conv2d layer {name!r}{hint}; there are {', '.join(found)}")
        names = [name for name in found if name in wanted]
    if not names:
        raise ValueError(f"layers chooses none: choose from {', '.join(found)}")
    return names


def refuse_shared(module: nn.Module, names: Iterable[str]) -> None:
    """Refuses a weight that several modules share: it cannot have two wirings."""
    owners: dict[int, dict[int, str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        owner, _, _ = name.rpartition(".")
        owners.setdefault(id(parameter), {}).setdefault(id(module.get_submodule(owner)), owner)
    for name in names:
        users = list(owners[id(module.get_submodule(name).weight)].values())
        if len(users) > 1:
            raise ValueError(f"the weight of layer {name!r} is shared by {' and '.join(map(repr, users))}: untie them")


def _hooks(weight: Tensor) -> list[object]:
    return list((weight._backward_hooks or {}).values())


def _exists(links: Links, like: Tensor) -> Tensor:
    """True where something of the weight's shape and device has a link."""
    by_place = torch.zeros(links.n_places, dtype=torch.bool)
    by_place[torch.from_numpy(links.places.copy())] = True
    by_input = by_place.repeat_interleave(links.block).reshape(links.n_in, links.n_out)
    return by_input.t().reshape(like.shape).contiguous().to(like.device)


def _numpy(values: Tensor) -> Floats:
    # float32 stays float32, or blocks would not be ranked to the bit as the engine ranks them
    array: Floats = values.to("cpu", torch.promote_types(values.dtype, torch.float32)).numpy()
    return array
