"""Batch normalisation against torch.nn.BatchNorm1d, and renormalisation against its formulas under autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewirl import nn
from rewirl.nn import Adam, Batch, BatchNorm, Network, Target, backward_each, batch_of, forward_each
from rewirl.topology import SET, Dense, Links, RigL, Static, wire

from .oracle import matrix, normal, rewired, seeds, wirings

pytestmark = pytest.mark.usefixtures("each_isa")

NEVER = BatchNorm(warmup=2**62)
"""Plain batch normalisation."""


class Reference:
    """The network in float64, each layer behind a normalisation; its running statistics are its own."""

    def __init__(self, net, normal_of):
        self.net, self.normal_of = net, normal_of
        self.running = [(torch.zeros(n).double(), torch.ones(n).double()) for n in net.sizes[:-1]]
        self.batches = 0

    def parameters(self):
        def leaf(values):
            return torch.tensor(values.astype(np.float64), requires_grad=True)

        net = self.net
        self.leaves = [
            (
                leaf(matrix(net.links(i), net.weights(i))),
                leaf(net.biases(i)),
                *(leaf(net.parameters[slots]) for slots in net.norm_slots(i)),
            )
            for i in range(net.layers)
        ]

    def forward(self, x, training):
        self.parameters()
        self.inputs, h = [], x
        for i, (weights, biases, gamma, beta) in enumerate(self.leaves):
            self.inputs.append(h)
            h = (self.normalised(i, h, training) * gamma + beta) @ weights.T + biases
            h = torch.relu(h) if i + 1 < len(self.leaves) else h
        self.batches += training
        return h

    def normalised(self, i, x, training):
        o = self.net.batch_norm
        m, v = self.running[i]
        s = (v + o.eps).sqrt()
        if not training:
            return (x - m) / s
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        with torch.no_grad():
            self.running[i] = (o.momentum * m + (1 - o.momentum) * mean, o.momentum * v + (1 - o.momentum) * variance)
        std = (variance + o.eps).sqrt()
        return self.normal_of((x - mean) / std, std.detach(), mean.detach(), s, m, self.batches >= o.warmup, o)


def renormalised(normal_x, std, mean, s, m, warm, o):
    """Ioffe 2017, equation 3; before that, ordinary batch normalisation."""
    if not warm:
        return normal_x
    r = (std / s).clamp(1 / o.r_max, o.r_max)
    d = ((mean - m) / s).clamp(-o.d_max, o.d_max)
    return normal_x * r + d


@st.composite
def fed_wirings(draw):
    """Every layer of a network, with a link into every neuron: one without any is constant, and what its normalisation
    leaves is rounding."""
    layers = []
    for links in draw(wirings(max_layers=3, max_width=40)):
        blocks = links.n_out // links.block
        some = np.arange(blocks) % links.n_in * blocks + np.arange(blocks)
        layers.append(Links(links.n_in, links.n_out, links.block, np.union1d(links.places, some)))
    return layers


def close(got, want, slack=3e-4):
    scale = max(float(np.abs(want).max()), 1e-3)
    np.testing.assert_allclose(got, want, rtol=slack, atol=slack * scale)


def shuffle(net, rng):
    values = net.parameters.copy()
    values[:] = rng.standard_normal(len(values))
    net.set_parameters(values.astype(np.float32))


def far_from_corners(reference):
    """Whether no ReLU is so near its corner that rounding decides if a gradient passes, and no feature is so nearly
    constant that what is left of it is rounding."""
    for h in reference.inputs[1:]:
        h = h.detach()
        if (h.std(0) < 0.03 * h.mean(0)).any():
            return False
        on = h[h > 0]
        if len(on) and float(on.min()) < 1e-4 * float(h.abs().max()):
            return False
    return True


def check(net, reference, x, dy, training):
    n_in = net.sizes[0]
    inputs = torch.tensor(x.T.astype(np.float64), requires_grad=True)
    out = reference.forward(inputs, training)
    y = net.forward(batch_of(x), training=training).array.copy()
    dx = net.backward(batch_of(dy), inputs=(0, n_in)).array.copy()
    out.backward(torch.tensor(dy.T.astype(np.float64)))
    if not far_from_corners(reference):
        return
    close(y, out.detach().numpy().T)
    close(dx, inputs.grad.numpy().T)
    flat = [leaf.grad.numpy() for leaves in reference.leaves for leaf in leaves]
    size = max(float(np.abs(g).max()) for g in flat)
    for i in range(net.layers):
        links = net.links(i)
        weights, *others = (leaf.grad.numpy() for leaf in reference.leaves[i])
        pairs = [(net.gradients[net.slots(i)], weights.T.reshape(links.n_places, links.block)[links.places])]
        slots = (net.bias_slots(i), *net.norm_slots(i))
        pairs += [(net.gradients[at], want) for at, want in zip(slots, others, strict=True)]
        if i + 1 < net.layers:
            pairs.append((net.dense_gradient(i), weights))
        for got, want in pairs:
            # A bias before a normalisation has no gradient where its neuron is always on: what is left is rounding.
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=max(1e-3 * float(np.abs(want).max()), 5e-5 * size))
        for got, want in zip(net.statistics(i), reference.running[i], strict=True):
            close(got, want.numpy(), 1e-5)


@given(wiring=fed_wirings(), batch=st.integers(8, 150), seed=seeds, warmup=st.integers(0, 3))
def test_any_wiring_in_training_and_outside(wiring, batch, seed, warmup):
    rng = np.random.default_rng(seed)
    net = Network(wiring, rng, batch_norm=BatchNorm(momentum=0.6, r_max=1.5, d_max=0.5, warmup=warmup))
    shuffle(net, rng)
    reference = Reference(net, renormalised)
    for training in (True, True, False, True, False):
        x = 2 * normal(rng, net.sizes[0], batch) + rng.uniform(-3, 3, (net.sizes[0], 1)).astype(np.float32)
        check(net, reference, x, normal(rng, net.sizes[-1], batch), training)


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("batch", [16, 100, 256])
def test_torchs_batch_norm(batch, block):
    """Against torch.nn.BatchNorm1d, which knows no renormalisation and has unbiased running variances."""
    rng = np.random.default_rng(batch)
    net = Network(wire((23, 64, 48, 2), rng, rule=Static(), sparsity=0.7, block=block), rng, batch_norm=NEVER)
    theirs = [torch.nn.BatchNorm1d(n, eps=1e-3, momentum=0.01).double() for n in net.sizes[:-1]]
    weights = [torch.tensor(matrix(net.links(i), net.weights(i))) for i in range(net.layers)]

    def forward(x):
        h = torch.tensor(x.T.astype(np.float64), requires_grad=True)
        inputs = h
        for i, norm in enumerate(theirs):
            h = norm(h) @ weights[i].T + torch.tensor(net.biases(i).astype(np.float64))
            h = torch.relu(h) if i + 1 < len(theirs) else h
        return inputs, h

    for _ in range(3):
        x, dy = normal(rng, 23, batch), normal(rng, 2, batch)
        inputs, out = forward(x)
        out.backward(torch.tensor(dy.T.astype(np.float64)))
        close(net.forward(batch_of(x), training=True).array, out.detach().numpy().T)
        close(net.backward(batch_of(dy), inputs=(0, 23)).array, inputs.grad.numpy().T)
        for i, norm in enumerate(theirs):
            close(net.gradients[net.norm_slots(i)[0]], norm.weight.grad.numpy())
            close(net.gradients[net.norm_slots(i)[1]], norm.bias.grad.numpy())
            norm.zero_grad()
    for i, norm in enumerate(theirs):
        mean, variance = net.statistics(i)
        close(mean, norm.running_mean.numpy(), 1e-4)
        start = 0.99**3  # of the initial variance of 1, which has no bias
        close((variance - start) * batch / (batch - 1) + start, norm.running_var.numpy(), 1e-4)
    for norm in theirs:
        norm.eval()
        norm.running_var.sub_(0.99**3).mul_((batch - 1) / batch).add_(0.99**3)
    x = normal(rng, 23, batch)
    close(net.forward(batch_of(x)).array, forward(x)[1].detach().numpy().T)


def trained(seed=0, *, rule=None, sizes=(6, 32, 24, 2), rounds=5, norm=None, block=1):
    rng = np.random.default_rng(seed)
    rule = rule or SET()
    given = {"sparsity": 0.6, "block": block} if rule.sparse else {}
    net = Network(wire(sizes, rng, rule=rule, **given), rng, batch_norm=norm or BatchNorm(warmup=2))
    for _ in range(rounds):
        train(net, rng)
    return net, rng


def train(net, rng):
    net.forward(batch_of(3 * normal(rng, net.sizes[0], 64) + 1), training=True)
    net.backward(batch_of(normal(rng, net.sizes[-1], 64)))
    net.step(Adam(lr=1e-2))


@pytest.mark.parametrize("block", [1, 2, 4])
def test_one_observation_is_a_batch_outside_of_training(block):
    net, rng = trained(block=block)
    x = normal(rng, 6, 20)
    together = net.forward(batch_of(x)).array.copy()
    alone = np.stack([net.act(np.ascontiguousarray(column)).copy() for column in x.T], axis=1)
    np.testing.assert_allclose(alone, together, rtol=1e-4, atol=1e-5)
    train(net, rng)  # weights and statistics change: nothing of before may be left
    assert np.abs(net.act(np.ascontiguousarray(x[:, 0])) - alone[:, 0]).max() > 1e-3


def test_a_plain_network_gives_the_same_outputs():
    net, rng = trained()
    x = normal(rng, 6, 20)
    h = x.astype(np.float64)
    for i in range(net.layers):
        weights, biases = net.plain(i)
        h = matrix(net.links(i), weights) @ h + biases[:, None]
        h = np.maximum(h, 0) if i + 1 < net.layers else h
    close(net.forward(batch_of(x)).array, h)


@pytest.mark.parametrize("rule", [SET(eta=0.3), RigL(eta=0.3)])
def test_a_saved_state_continues_to_the_bit(rule):
    net, _ = trained(rule=rule)
    other, _ = trained(seed=1, rule=rule, rounds=1)
    other.load_state(net.state())
    for one in (net, other):
        mine = np.random.default_rng(7)
        for _ in range(3):
            train(one, mine)
            assert one.adapt(rule, mine) > 0
    a, b = net.state(), other.state()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
    assert a["batches"] == 8


def test_rewiring_moves_links_alone():
    net, rng = trained()
    norms = [net.parameters[at].copy() for i in range(net.layers) for at in net.norm_slots(i)]
    statistics = [value.copy() for i in range(net.layers) for value in net.statistics(i)]
    net.rewire(1, rewired(net.links(1), rng))
    for before, at in zip(norms, (at for i in range(net.layers) for at in net.norm_slots(i)), strict=True):
        np.testing.assert_array_equal(net.parameters[at], before)
    for before, value in zip(statistics, (v for i in range(net.layers) for v in net.statistics(i)), strict=True):
        np.testing.assert_array_equal(value, before)
    x = normal(rng, 6, 30)
    reference = Reference(net, renormalised)
    reference.running = [tuple(torch.tensor(v.astype(np.float64)) for v in net.statistics(i)) for i in range(3)]
    reference.batches = 5
    close(
        net.forward(batch_of(x)).array,
        reference.forward(torch.tensor(x.T.astype(np.float64)), False).detach().numpy().T,
    )


def test_outside_of_training_statistics_stay():
    net, rng = trained()
    before = net.state()
    net.forward(batch_of(normal(rng, 6, 30)))
    net.act(normal(rng, 6))
    after = net.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("rule", [Dense(), SET()])
def test_threads_and_order_change_nothing(rule):
    def states(threads):
        nn.set_threads(threads, warn=lambda _: None)
        try:
            nets = [trained(seed, rule=rule, sizes=(9, 130, 70, 1), rounds=0)[0] for seed in (1, 2)]
            rng = np.random.default_rng(5)
            for _ in range(6):
                forward_each(nets, batch_of(normal(rng, 9, 300)), training=True)
                backward_each(nets, [batch_of(normal(rng, 1, 300)) for _ in nets], inputs=(7, 9))
                for net in nets:
                    net.step(Adam())
                nets[0].forward(batch_of(normal(rng, 9, 50)), training=True)  # not in `each`: layers are shared
            return [net.state() for net in nets]
        finally:
            nn.set_threads(1)

    for one, two in zip(states(1), states(3), strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])


def test_constant_and_dead_features_stay_finite():
    rng = np.random.default_rng(0)
    net = Network([Links.dense(4, 16), Links.dense(16, 1)], rng, batch_norm=BatchNorm(warmup=1))
    values = net.parameters.copy()
    values[net.bias_slots(0)] = -100  # every neuron is dead
    net.set_parameters(values)
    x = np.full((4, 32), 300, dtype=np.float32)
    for _ in range(4):
        net.forward(batch_of(x), training=True)
        net.backward(batch_of(np.ones((1, 32), dtype=np.float32)), inputs=(0, 4))
        net.step(Adam())
        assert np.isfinite(net.gradients).all()
        assert np.isfinite(net.parameters).all()
    assert net.statistics(1)[1].max() < 1  # the running variance falls from 1 towards 0


def test_what_is_refused():
    net, rng = trained()
    x, dy = batch_of(normal(rng, 6, 8)), batch_of(normal(rng, 2, 8))
    net.forward(x, training=True)
    with pytest.raises(ValueError, match="backward needs the gradients of weights"):
        net.backward(dy, weights=False, inputs=(0, 6))
    net.act(normal(rng, 6))  # replaces what the backward pass of training needs
    with pytest.raises(ValueError, match="needs a forward"):
        net.backward(dy)
    with pytest.raises(ValueError, match="cannot have a target"):
        Target(net)
    with pytest.raises(ValueError, match="not both"):
        Network([Links.dense(2, 2)], rng, layer_norm=True, batch_norm=BatchNorm())
    with pytest.raises(ValueError, match="without batch normalisation has no statistics"):
        Network([Links.dense(2, 2)], rng).statistics(0)
    with pytest.raises(ValueError, match="momentum < 1"):
        BatchNorm(momentum=1.0)
    with pytest.raises(ValueError, match="variances not negative"):
        net.set_statistics(0, np.zeros(6, np.float32), np.full(6, -1, np.float32))
    state = net.state()
    with pytest.raises(ValueError, match="variances not negative"):
        net.load_state({**state, "variance.1": -state["variance.1"] - 1})
    with pytest.raises(ValueError, match="batches must not be negative"):
        net.load_state({**state, "batches": np.array(-1)})


def test_a_network_without_it_ignores_training_and_has_no_memory_for_it():
    rng = np.random.default_rng(0)
    plain = Network([Links.dense(3, 4), Links.dense(4, 1)], rng)
    x = batch_of(normal(rng, 3, 9))
    once = plain.forward(x, training=True).array.copy()
    np.testing.assert_array_equal(plain.forward(x).array, once)
    assert "normalisation" not in plain.bytes()
    assert len(plain.parameters) == 3 * 4 + 4 + 4 + 1
    assert trained()[0].bytes()["normalisation"] > 0
    assert isinstance(x, Batch)
