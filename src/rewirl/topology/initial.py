"""Initial wiring of a network: the number of links of each layer, and their positions (Algorithm 1, L1-L2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rewirl.topology._checks import block_size, finite_number, layer_width, listed, whole_number
from rewirl.topology.links import Links, _owned
from rewirl.topology.rules import Rule

DEFAULT_SPARSITY = 0.5
"""Default where no sparsity is given and the paper has no λ."""


def link_counts(
    sizes: Sequence[int],
    *,
    lambdas: Sequence[float] | None = None,
    sparsity: float | None = None,
    block: int = 1,
) -> list[int]:
    """Links of each layer of a network with the widths `sizes`; the output layer is always dense.

    Give either `lambdas`, one λ for each layer except the last: round(λ (n_in + n_out)) links, at most all; or
    `sparsity`, the share of *all* weights (output layer included) that are absent, spread over the layers by
    Erdős-Rényi. `round` is Python's (halves to even). Links come in whole blocks.

    >>> link_counts((17, 256, 256, 6), lambdas=(7, 64))
    [1911, 32768, 1536]
    >>> sum(link_counts((17, 256, 256, 6), sparsity=0.5))
    35712
    """
    *sparse, output = _shapes(sizes)
    dense = math.prod(output)
    return [*layer_counts(sparse, lambdas=lambdas, sparsity=sparsity, block=block, dense=dense), dense]


def layer_counts(
    shapes: Sequence[tuple[int, int]],
    *,
    lambdas: Sequence[float] | None = None,
    sparsity: float | None = None,
    block: int = 1,
    dense: int = 0,
) -> list[int]:
    """Links of sparse layers with these (n_in, n_out), in a network whose dense layers have `dense` links in total.

    >>> layer_counts([(17, 256), (256, 256)], sparsity=0.5, dense=1536)
    [4352, 29824]
    """
    block = block_size(block, [n_out for _, n_out in shapes])
    if (lambdas is None) == (sparsity is None):
        raise ValueError("give either lambdas or sparsity, and not both: they are two ways to say one thing")
    if lambdas is not None:
        blocks = _blocks_by_lambda(list(shapes), lambdas, block)
    else:
        blocks = _blocks_by_sparsity(list(shapes), dense, sparsity, block)
    return [b * block for b in blocks]


def erdos_renyi(n_in: int, n_out: int, count: int, rng: np.random.Generator, block: int = 1) -> Links:
    """A uniformly random wiring of exactly `count` links.

    >>> erdos_renyi(17, 256, 1911, np.random.default_rng(0)).count
    1911
    """
    n_in, n_out = layer_width("n_in", n_in), layer_width("n_out", n_out)
    block = block_size(block, [n_out])
    count = whole_number("count", count)
    if not 0 <= count <= n_in * n_out:
        raise ValueError(f"count must be from 0 to {n_in} x {n_out} = {n_in * n_out} links, not {count}")
    if count % block:
        raise ValueError(f"{count} links are not a whole number of blocks: count must be a multiple of {block}")
    if count == n_in * n_out and block == 1:
        return Links.dense(n_in, n_out)
    chosen = rng.choice(n_in * (n_out // block), count // block, replace=False, shuffle=False)
    return Links(n_in, n_out, block, _owned(np.sort(chosen)))


def wire(
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    rule: Rule,
    lambdas: Sequence[float] | None = None,
    sparsity: float | None = None,
    block: int = 1,
) -> list[Links]:
    """The initial wiring of every layer of a network with the widths `sizes`.

    A rule that is not sparse makes every layer dense and ignores λ, sparsity and block.

    >>> from rewirl.topology.rules import SET
    >>> [layer.count for layer in wire((3, 8, 8, 1), np.random.default_rng(0), rule=SET(), lambdas=(1, 2))]
    [11, 32, 8]
    """
    shapes = _shapes(sizes)
    if not rule.sparse:
        return [Links.dense(n_in, n_out) for n_in, n_out in shapes]
    counts = link_counts(sizes, lambdas=lambdas, sparsity=sparsity, block=block)
    hidden = zip(shapes[:-1], counts[:-1], strict=True)
    wiring = [erdos_renyi(n_in, n_out, count, rng, block) for (n_in, n_out), count in hidden]
    return [*wiring, Links.dense(*shapes[-1])]


def _shapes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """(n_in, n_out) of each layer."""
    widths = [layer_width("every size", size) for size in listed("sizes", sizes, "(17, 256, 256, 6)")]
    if len(widths) < 2:
        raise ValueError(f"sizes must be at least two, inputs and outputs, not {len(widths)}")
    return list(pairwise(widths))


def _blocks_by_lambda(sparse: list[tuple[int, int]], lambdas: Sequence[float], block: int) -> list[int]:
    given = listed("lambdas", lambdas, "(7, 64)")
    if len(given) != len(sparse):
        raise ValueError(f"{len(given)} lambdas for {len(sparse)} sparse layers: give one for each layer but the last")
    blocks = []
    for layer, ((n_in, n_out), value) in enumerate(zip(sparse, given, strict=True), start=1):
        lam = finite_number(f"λ of layer {layer}", value)
        if lam < 0:
            raise ValueError(f"λ of layer {layer} must be positive, not {lam:g}")
        wanted = round(lam * (n_in + n_out) / block)
        if wanted == 0:
            least = block / 2 / (n_in + n_out)
            raise ValueError(f"λ = {lam:g} leaves layer {layer} without a link: it must be above {least:.6f}")
        blocks.append(min(wanted, n_in * (n_out // block)))  # p >= 1: the layer is dense
    return blocks


def _blocks_by_sparsity(sparse: list[tuple[int, int]], output: int, given: object, block: int) -> list[int]:
    sparsity = finite_number("sparsity", given)
    if not 0 <= sparsity < 1:
        raise ValueError(f"sparsity must be from 0 (dense) to below 1, not {sparsity:g}")
    total = sum(n_in * n_out for n_in, n_out in sparse) + output
    wanted = round((1 - sparsity) * total)
    fewest = output + len(sparse) * block
    if wanted < fewest:
        # rounded down, so that the suggested value works
        most = math.floor((1 - fewest / total) * 1e6) / 1e6
        raise ValueError(
            f"sparsity {sparsity:g} leaves {wanted} links, but a dense output layer and {block} in every "
            f"sparse layer need {fewest}: the largest sparsity possible is {most:.6f}"
        )
    return _spread(round((wanted - output) / block), sparse, block)


def _spread(total: int, sparse: list[tuple[int, int]], block: int) -> list[int]:
    """`total` blocks over layers in proportion to n_in + n_out, at most all and at least one in each.

    Erdős-Rényi with one ε for all layers: Σ min(positions, ε (n_in + n_out)) = total. Computed in integers, so exact.
    """
    places = [n_in * (n_out // block) for n_in, n_out in sparse]
    width = [n_in + n_out for n_in, n_out in sparse]
    blocks = [0] * len(sparse)
    left, rest = total, list(range(len(sparse)))
    # Layers with p >= 1 are full. The excess raises ε for the others, some of which may become full too.
    while full := [i for i in rest if left * width[i] >= places[i] * sum(width[j] for j in rest)]:
        for i in full:
            blocks[i] = places[i]
            left -= places[i]
        rest = [i for i in rest if i not in full]
    lost = {}
    for i in rest:
        blocks[i], lost[i] = divmod(left * width[i], sum(width[j] for j in rest))
    # Largest remainders: what is left after rounding down goes to the layers with the largest fractions.
    over = total - sum(blocks)
    for i in sorted(rest, key=lambda i: (-lost[i], i))[:over]:
        blocks[i] += 1
    while 0 in blocks:  # total >= layers, so the largest can spare one
        blocks[blocks.index(max(blocks))] -= 1
        blocks[blocks.index(0)] += 1
    return blocks
