"""Layer normalisation against torch.nn.functional.layer_norm, forward and backward, in networks and targets."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewirl import nn
from rewirl.nn import Adam, Network, Target, batch_of, regress_each
from rewirl.topology import Links, Static, wire

from .oracle import matrix, normal, seeds, shuffle_parameters, wirings

pytestmark = pytest.mark.usefixtures("each_isa")


def dense(net, layer):
    return matrix(net.links(layer), net.weights(layer))


def in_torch(net, x):
    """The same network in float64, with its parameters as tensors that collect gradients."""
    weights = [torch.tensor(dense(net, i), dtype=torch.float64, requires_grad=True) for i in range(net.layers)]
    biases = [torch.tensor(net.biases(i), dtype=torch.float64, requires_grad=True) for i in range(net.layers)]
    for i in range(net.layers):
        x = x @ weights[i].T + biases[i]
        if i + 1 < net.layers:
            x = torch.relu(torch.nn.functional.layer_norm(x, (x.shape[1],)))
    return x, weights, biases


def close(got, want, slack=3e-4):
    scale = max(float(np.abs(want).max()), 1e-3)
    np.testing.assert_allclose(got, want, rtol=slack, atol=slack * scale)


def well_spread(net, x):
    """Whether rounding errors stay small: no hidden layer has outputs that are nearly alike (a variance near 0), or
    so few that their gradients cancel."""
    for i in range(net.layers - 1):
        z = x @ dense(net, i).T.astype(np.float64) + net.biases(i)
        if z.shape[1] < 8 or (z.var(axis=1) < 1e-3 * (z**2).mean(axis=1) + 1e-6).any():
            return False
        normal = (z - z.mean(axis=1, keepdims=True)) / np.sqrt(z.var(axis=1, keepdims=True) + 1e-5)
        if (np.abs(normal) < 1e-4).any():  # at the corner of the ReLU rounding decides whether a gradient passes
            return False
        x = np.maximum(normal, 0)
    return True


def check(net, x, dy):
    n_in = net.sizes[0]
    y = net.forward(batch_of(x)).array.copy()
    dx = net.backward(batch_of(dy), inputs=(0, n_in)).array.copy()
    inputs = torch.tensor(x.T, dtype=torch.float64, requires_grad=True)
    out, weights, biases = in_torch(net, inputs)
    out.backward(torch.tensor(dy.T, dtype=torch.float64))
    close(y, out.detach().numpy().T)
    close(dx, inputs.grad.numpy().T)
    for i in range(net.layers):
        links = net.links(i)
        gradient = weights[i].grad.numpy().T.reshape(links.n_places, links.block)
        close(net.gradients[net.slots(i)], gradient[links.places])
        close(net.gradients[net.bias_slots(i)], biases[i].grad.numpy())
    close(net.act(np.ascontiguousarray(x[:, 0])), y[:, 0])


@given(wiring=wirings(max_layers=3), batch=st.integers(1, 150), seed=seeds)
def test_any_wiring(wiring, batch, seed):
    rng = np.random.default_rng(seed)
    net = Network(wiring, rng, layer_norm=True)
    shuffle_parameters(net, rng)
    x, dy = normal(rng, net.sizes[0], batch), normal(rng, net.sizes[-1], batch)
    if well_spread(net, x.T.astype(np.float64)):
        check(net, x, dy)


@pytest.mark.parametrize("batch", [1, 16, 100, 256])
def test_networks_as_agents_have_them(batch):
    rng = np.random.default_rng(batch)
    net = Network(wire((23, 64, 48, 2), rng, rule=Static(), sparsity=0.8), rng, layer_norm=True)
    x, dy = normal(rng, 23, batch), normal(rng, 2, batch)
    if not well_spread(net, x.T.astype(np.float64)):  # nudged until no ReLU is at its corner
        x *= np.float32(1.01)
    check(net, x, dy)


def test_a_target_normalises_as_its_network_does():
    rng = np.random.default_rng(0)
    net = Network([Links.dense(6, 16), Links.dense(16, 12), Links.dense(12, 2)], rng, layer_norm=True)
    x = batch_of(normal(rng, 6, 37))
    np.testing.assert_array_equal(Target(net).forward(x).array, net.forward(x).array)
    plain = Network([Links.dense(6, 16), Links.dense(16, 12), Links.dense(12, 2)], np.random.default_rng(0))
    assert np.abs(plain.forward(x).array - net.forward(x).array).max() > 0.01


def test_it_learns_and_threads_change_nothing():
    def losses(threads):
        nn.set_threads(threads)
        try:
            rng = np.random.default_rng(3)
            net = Network([Links.dense(5, 64), Links.dense(64, 64), Links.dense(64, 1)], rng, layer_norm=True)
            x = normal(rng, 5, 256)
            y = batch_of(np.sin(x).sum(axis=0, keepdims=True).astype(np.float32))
            return [regress_each([net], batch_of(x), y, Adam(lr=3e-3))[0][0] for _ in range(300)]
        finally:
            nn.set_threads(1)

    one = losses(1)
    assert one == losses(2)
    assert one[-1] < 0.05 * one[0]
