"""The dense oracle: what a network computes, in PyTorch's matrices, and how far float32 may be from that."""

import os
import subprocess
import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from rewirl.nn import batch_of
from rewirl.topology import Links

torch.set_num_threads(1)

seeds = st.integers(0, 2**32 - 1)
batches = st.one_of(st.integers(1, 300), st.sampled_from((513, 600, 1100)))  # gradients sum in panels of 256 to 1024


@st.composite
def wirings(draw, max_width=70, max_layers=4):
    """Every layer of a network: odd widths, blocks where they fit, from all links to one."""
    sizes = draw(st.lists(st.integers(1, max_width), min_size=2, max_size=max_layers + 1))
    rng = np.random.default_rng(draw(seeds))
    layers = []
    for n_in, n_out in pairwise(sizes):
        block = draw(st.sampled_from([b for b in (1, 2, 4) if n_out % b == 0]))
        n_places = n_in * (n_out // block)
        blocks = draw(st.one_of(st.just(n_places), st.just(1), st.integers(1, n_places)))
        layers.append(some_links(n_in, n_out, block, blocks, rng))
    return layers


def some_links(n_in, n_out, block, blocks, rng):
    places = rng.choice(n_in * (n_out // block), blocks, replace=False)
    return Links(n_in, n_out, block, np.sort(places).astype(np.int64))


def rewired(links, rng):
    """Another wiring with as many links, some of them the same."""
    return some_links(links.n_in, links.n_out, links.block, links.blocks, rng)


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def shuffle_parameters(net, rng):
    """Weights and biases of both signs and of very different size; biases would be small beside 70 links."""
    size = 2.0 ** rng.integers(-6, 1, len(net.parameters))
    net.set_parameters((rng.standard_normal(len(net.parameters)) * size).astype(np.float32))


# ------------------------------------------------------------- as matrices


def cells(links):
    """Rows (outputs) and columns (inputs) of the links, shaped like their weights: (blocks, block)."""
    inputs, output_blocks = np.divmod(links.places, links.n_out // links.block)
    rows = output_blocks[:, None] * links.block + np.arange(links.block)
    return rows, np.broadcast_to(inputs[:, None], rows.shape)


def matrix(links, weights, dtype=np.float64):
    """A layer's weights as (outputs, inputs), zeros where there is no link."""
    out = np.zeros((links.n_out, links.n_in), dtype=dtype)
    out[cells(links)] = weights
    return out


def mask(links):
    return matrix(links, 1) > 0


def layer_of(net, flat, layer):
    """A layer's part of one of the flat arrays: a matrix of float32, and what belongs to the biases."""
    weights = flat[net.slots(layer)]
    return matrix(net.links(layer), weights, np.float32), flat[net.bias_slots(layer)].copy()


class Pass(NamedTuple):
    """A forward and a backward."""

    sums: list  # of each layer before its ReLU; the last are the outputs
    weights: list  # gradients, at every place of the matrices
    biases: list
    inputs: np.ndarray


class Dense:
    """A network as float64 matrices."""

    def __init__(self, weights, biases):
        self.weights = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in weights]
        self.biases = [torch.tensor(b, dtype=torch.float64, requires_grad=True) for b in biases]

    @classmethod
    def of(cls, net):
        layers = range(net.layers)
        return cls([matrix(net.links(i), net.weights(i)) for i in layers], [net.biases(i) for i in layers])

    @classmethod
    def of_target(cls, target):
        layers = range(target.online.layers)
        return cls([target.dense(i) for i in layers], [target.biases(i) for i in layers])

    def absolute(self):
        return Dense([abs(w.detach().numpy()) for w in self.weights], [abs(b.detach().numpy()) for b in self.biases])

    def forward(self, x, gates=None):
        """Sums of every layer. `gates` says which neurons are on; without it ReLU does."""
        sums, h = [], x
        for layer, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            sums.append(w @ h + b[:, None])
            if layer + 1 < len(self.weights):
                h = torch.relu(sums[-1]) if gates is None else sums[-1] * torch.from_numpy(gates[layer])
        return sums

    def run(self, x, dy, gates=None):
        x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        sums = self.forward(x, gates)
        loss = (sums[-1] * torch.tensor(dy)).sum()
        inputs, *rest = (g.numpy() for g in torch.autograd.grad(loss, [x, *self.weights, *self.biases]))
        layers = len(self.weights)
        return Pass([s.detach().numpy() for s in sums], rest[:layers], rest[layers:], inputs)

    @property
    def forward_roundings(self):
        """Roundings that a term goes through on its way to the outputs: in each layer a product, n_in sums, a bias."""
        return sum(w.shape[1] + 2 for w in self.weights)

    def roundings(self, batch):
        """The same for gradients: there, back, and the sum over the batch."""
        return self.forward_roundings + sum(w.shape[0] + 1 for w in self.weights) + batch + 1


# ------------------------------------------------------------ how far off


def tolerance(magnitude, roundings):
    """How far float32 may be from the exact sum of products whose absolute values sum to `magnitude`.

    At worst the roundings of a term add up: roundings · u with u = 2^-24. But they have random signs, so they grow as
    the root of their number, and eight standard deviations are not seen (Higham and Mary, 2019). True for any order
    of summation, fused or not; the rest is for subnormals that were flushed.
    """
    return 2.0**-24 * min(roundings, 8 * roundings**0.5) * magnitude + 1e-36


def assert_close(what, got, want, allowed):
    allowed = np.broadcast_to(allowed, want.shape)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    wrong = ~(np.abs(got - want) <= allowed)  # NaN is wrong
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{what}: {wrong.sum()} of {wrong.size} are wrong, first {got[at]!r} at {at} where {want[at]!r} ± "
            f"{allowed[at]:.2g} is right"
        )


def check_outputs(dense, x, got):
    """Outputs against a dense network. Neurons near zero may be on or off: ReLU is continuous, so bounds hold."""
    x = torch.tensor(x, dtype=torch.float64)
    everything_on = [np.ones((len(b), 1)) for b in dense.biases]
    with torch.no_grad():
        want = dense.forward(x)[-1].numpy()
        magnitude = dense.absolute().forward(x.abs(), everything_on)[-1].numpy()
    assert_close("outputs", got, want, tolerance(magnitude, dense.forward_roundings))


def check_pass(net, x, dy):
    """A forward and a backward of the network against the dense oracle: outputs and every gradient."""
    y = net.forward(batch_of(x)).array.copy()
    inputs = net.backward(batch_of(dy), inputs=(0, net.sizes[0])).array.copy()
    # Neurons that are on, as the network has it: near zero, float32 may see another sign than float64.
    gates = [net._core.layer_input(layer).array > 0 for layer in range(1, net.layers)]
    dense = Dense.of(net)
    want, size = dense.run(x, dy, gates), dense.absolute().run(abs(x), abs(dy), gates)
    there, back = dense.forward_roundings, dense.roundings(x.shape[1])
    for layer, gate in enumerate(gates):
        sums, near_zero = want.sums[layer], tolerance(size.sums[layer], there)
        assert (np.where(gate, sums, -sums) >= -near_zero).all(), f"layer {layer}: neurons are on that should be off"
    assert_close("outputs", y, want.sums[-1], tolerance(size.sums[-1], there))
    assert_close("input gradients", inputs, want.inputs, tolerance(size.inputs, back))
    for layer in range(net.layers):
        weights, biases = layer_of(net, net.gradients, layer)
        exists = mask(net.links(layer))
        allowed = tolerance(size.weights[layer], back)
        assert_close(f"weight gradients of layer {layer}", weights, want.weights[layer] * exists, allowed)
        allowed = tolerance(size.biases[layer], back)
        assert_close(f"bias gradients of layer {layer}", biases, want.biases[layer], allowed)
    return want, size


# ---------------------------------------------------------- another process


def run_python(code, **environment):
    """A fresh interpreter that sees the same rewirl."""
    command = [sys.executable, *(["-S"] if sys.flags.no_site else []), "-c", code]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
