"""Updates of target modules, and keeping them as sparse as their online modules (Algorithm 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import torch
from torch import Tensor, nn

from rewirl.topology import Links


@torch.no_grad()
def polyak(online: nn.Module, target: nn.Module, tau: float) -> None:
    """θ' ← τθ + (1-τ)θ' for every parameter; buffers (running means and the like) are copied."""
    parameters = _paired("parameter", dict(online.named_parameters()), dict(target.named_parameters()))
    buffers = _paired("buffer", dict(online.named_buffers()), dict(target.named_buffers()))
    for mine, theirs in parameters:
        theirs.mul_(1 - tau).add_(mine.to(theirs.device), alpha=tau)
    for mine, theirs in buffers:
        theirs.copy_(mine)


def _paired(kind: str, mine: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    for name in sorted(mine.keys() ^ theirs.keys()):
        only = "module" if name in mine else "target"
        raise ValueError(f"only the {only} has a {kind} {name!r}: a target must be built like its module")
    for name, tensor in mine.items():
        if tensor is theirs[name]:
            raise ValueError(f"the target's {kind} {name!r} is the module's own: a target is a copy (copy.deepcopy)")
        if tensor.shape != theirs[name].shape:
            shape, right = tuple(theirs[name].shape), tuple(tensor.shape)
            raise ValueError(f"the target's {kind} {name!r} has the shape {shape}: it must have the module's, {right}")
    return [(tensor, theirs[name]) for name, tensor in mine.items()]


@torch.no_grad()
def keep_largest(weight: Tensor, links: Links) -> None:
    """MaintainSparsity: a target's weight keeps its k largest magnitudes, k being the links of the online weight."""
    rows = weight.reshape(links.n_out // links.block, links.block, links.n_in)
    # (output blocks, inputs); added up one by one, as the engine does
    magnitude = reduce(torch.add, rows.abs().unbind(1))
    alive = magnitude != 0
    excess = int(alive.sum()) - links.blocks
    if excess <= 0:
        return
    # The excess-th smallest of those alive; sums and products with masks are far cheaper than choosing by them.
    far = (~alive).to(weight.dtype) * torch.finfo(weight.dtype).max
    limit = (magnitude + far).flatten().topk(excess, largest=False, sorted=False).values.max()
    goes = alive & (magnitude <= limit)
    surplus = int(goes.sum()) - excess
    if surplus > 0:
        stay = _places(magnitude == limit)[-surplus:]  # among equals, those at the lowest places are removed
        goes.t()[stay // goes.shape[0], stay % goes.shape[0]] = False
    weight.mul_(~goes.repeat_interleave(links.block, dim=0).reshape(weight.shape))


def _places(where: Tensor) -> Tensor:
    """Places of a mask (output blocks, inputs), ascending."""
    return where.t().reshape(-1).nonzero().ravel()
