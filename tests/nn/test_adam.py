"""Adam against torch.optim.Adam, in float32 and in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Adam, Network, batch_of
from rewirl.topology import Links

from .oracle import layer_of, mask, matrix, normal, seeds, some_links

pytestmark = pytest.mark.usefixtures("each_isa")

TD3 = Adam(lr=1e-3, weight_decay=2e-4)
SAC = Adam(lr=3e-4)


def in_torch(parameters, adam):
    """PyTorch's optimizer with the numbers as the core has them, rounded to float32."""
    kind = torch.optim.AdamW if adam.decoupled else torch.optim.Adam
    lr, beta1, beta2, eps, decay = (
        float(np.float32(v)) for v in (adam.lr, adam.beta1, adam.beta2, adam.eps, adam.weight_decay)
    )
    return kind(parameters, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay, foreach=False)


def assert_follows(got, want, adam, steps, bound=64):
    """Each step rounds the weight once (u·|w|), and the step itself, at most a few lr long, a few times: its errors are
    those of m/√v, whose parts differ by up to 1/√(1-β2) ≈ 32. None of them is forgotten, so they add up."""
    u = 2.0**-24
    allowed = steps * u * (np.abs(want) + bound * adam.lr) + u * np.abs(want)
    off = np.abs(got - want) / allowed
    assert (off <= 1).all(), f"off by {off.max():.2f} of what is allowed"


OTHER = Adam(lr=0.1, beta1=0.5, beta2=0.9, eps=1e-3, weight_decay=0.1)
DECOUPLED = Adam(lr=1e-2, weight_decay=0.1, decoupled=True)


@pytest.mark.parametrize("adam", [TD3, SAC, OTHER, DECOUPLED])
@given(n=st.integers(1, 90), scale=st.sampled_from([1e-20, 1e-9, 1e-4, 1.0, 1e9]), seed=seeds)
def test_many_steps(adam, n, scale, seed):
    rng = np.random.default_rng(seed)
    net = Network([some_links(n, 3, 1, n, rng)], rng)
    weights = [torch.tensor(net.parameters, dtype=t, requires_grad=True) for t in (torch.float32, torch.float64)]
    optimizers = [in_torch([w], adam) for w in weights]
    steps = 25
    for _ in range(steps):
        gradients = normal(rng, len(net.parameters)) * np.float32(scale)
        gradients[rng.random(len(gradients)) < 0.2] = 0  # links on inputs that rest
        net.gradients[...] = gradients
        net.step(adam)
        for w, optimizer in zip(weights, optimizers, strict=True):
            w.grad = torch.tensor(gradients, dtype=w.dtype)
            optimizer.step()
    in_float32, exact = (w.detach().numpy() for w in weights)
    assert_follows(net.parameters, exact, adam, steps)
    assert_follows(net.parameters, in_float32, adam, 2 * steps)  # PyTorch rounds too


@pytest.mark.parametrize("adam", [TD3._replace(sparse_rate=1.0), DECOUPLED._replace(sparse_rate=0.5)])
def test_sparse_layers_learn_at_rates_of_their_own(adam):
    """Weights of a layer with a share p of all links at lr / p^sparse_rate; biases and dense layers at lr."""
    rng = np.random.default_rng(0)
    wiring = [some_links(7, 33, 1, 61, rng), some_links(33, 12, 2, 75, rng), Links.dense(12, 2)]
    net = Network(wiring, rng)
    rates = np.full(len(net.parameters), adam.lr)
    for layer, share in enumerate((61 / (7 * 33), 2 * 75 / (33 * 12), 1.0)):
        rates[net.slots(layer)] /= share**adam.sparse_rate
    assert len(set(rates)) == 3
    weights = [torch.tensor([w], dtype=torch.float64, requires_grad=True) for w in net.parameters]
    optimizer = in_torch([{"params": [w], "lr": lr} for w, lr in zip(weights, rates, strict=True)], adam)
    for _ in range(25):
        gradients = normal(rng, len(net.parameters))
        net.gradients[...] = gradients
        net.step(adam)
        for w, gradient in zip(weights, gradients, strict=True):
            w.grad = torch.tensor([float(gradient)], dtype=torch.float64)
        optimizer.step()
    expected = np.array([w.item() for w in weights])
    assert_follows(net.parameters, expected, adam._replace(lr=rates.max()), 25)


def test_the_bias_correction_fades_over_thousands_of_steps():
    rng = np.random.default_rng(0)
    net = Network([Links.dense(7, 5)], rng)
    weights = torch.tensor(net.parameters, dtype=torch.float64, requires_grad=True)
    optimizer = in_torch([weights], TD3)
    for step in range(1, 3001):
        gradients = normal(rng, len(net.parameters))
        net.gradients[...] = gradients
        net.step(TD3)
        weights.grad = torch.tensor(gradients, dtype=torch.float64)
        optimizer.step()
        if step in (1, 2, 10, 100, 1000, 3000):
            assert_follows(net.parameters, weights.detach().numpy(), TD3, step)


def test_moments_are_those_of_the_paper():
    rng = np.random.default_rng(0)
    net = Network([Links.dense(7, 5)], rng)
    m = v = np.zeros(len(net.parameters))
    beta1, beta2 = float(np.float32(0.9)), float(np.float32(0.999))
    for _ in range(50):
        net.gradients[...] = normal(rng, len(net.parameters))
        g = net.gradients.astype(np.float64)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        net.step(SAC)
    # a moment is an average of at most 50 gradients of size 5: each rounding is of that size at most
    np.testing.assert_allclose(net.first_moments, m, rtol=0, atol=50 * 5 * 2.0**-24)
    np.testing.assert_allclose(net.second_moments, v, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_training_is_that_of_a_masked_dense_network(dtype):
    """Forward, backward and Adam together: after 200 updates no weight is further off than a tenth of one update."""
    rng = np.random.default_rng(0)
    wiring = [some_links(5, 33, 1, 60, rng), some_links(33, 18, 2, 100, rng), Links.dense(18, 2)]
    net = Network(wiring, rng)
    masks = [torch.tensor(mask(links)) for links in wiring]
    weights = [torch.tensor(matrix(links, net.weights(i)), dtype=dtype) for i, links in enumerate(wiring)]
    biases = [torch.tensor(net.biases(i), dtype=dtype) for i in range(3)]
    for tensor in (*weights, *biases):
        tensor.requires_grad_()
    optimizer = in_torch([*weights, *biases], TD3)
    first = None
    for _ in range(200):
        x = normal(rng, 5, 100)
        y = np.stack([np.sin(x[0] + x[1]), x[2] * x[3]])
        out = net.forward(batch_of(x)).array
        net.backward(batch_of((out - y) * np.float32(2 / y.size)))
        net.step(TD3)
        h = torch.tensor(x, dtype=dtype)
        for layer in range(3):
            h = (weights[layer] * masks[layer]) @ h + biases[layer][:, None]
            h = torch.relu(h) if layer < 2 else h
        loss = ((h - torch.tensor(y, dtype=dtype)) ** 2).mean()
        first = first or loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.9 * first, "it learns"
    for layer in range(3):
        w, b = layer_of(net, net.parameters, layer)
        np.testing.assert_allclose(w, (weights[layer] * masks[layer]).detach(), rtol=0, atol=TD3.lr / 10)
        np.testing.assert_allclose(b, biases[layer].detach(), rtol=0, atol=TD3.lr / 10)
