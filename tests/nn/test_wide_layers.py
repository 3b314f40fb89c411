"""Layers so wide that kernels fetch rows early, and so sparse that one pass computes both gradients."""

import numpy as np
import pytest

from rewirl.nn import Adam, BatchNorm, Network, Target, backward_each, batch_of, forward_each, set_threads
from rewirl.topology import Links

from .oracle import Dense, assert_close, check_outputs, check_pass, normal, shuffle_parameters, some_links, tolerance

SIZES = (19, 1030, 1201, 1)


def wide(rng, density=0.012, last=1.0, **how):
    """Widths that are no multiple of four, and neurons with no link at all; one output, with links to all or some."""
    shapes = [(n_in, n_out, share) for n_in, n_out, share in zip(SIZES, SIZES[1:], (0.2, density, last), strict=False)]
    wiring = [some_links(n_in, n_out, 1, round(share * n_in * n_out), rng) for n_in, n_out, share in shapes]
    net = Network(wiring, rng, **how)
    shuffle_parameters(net, rng)
    return net


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize("last", [1.0, 0.5])
@pytest.mark.parametrize("batch", [1, 16, 100, 129, 300])
def test_forward_and_every_gradient(batch, last):
    rng = np.random.default_rng(batch)
    net = wide(rng, last=last)
    want, size = check_pass(net, normal(rng, SIZES[0], batch), normal(rng, 1, batch))
    allowed = tolerance(size.weights[1], Dense.of(net).roundings(batch))
    assert_close("dense gradient", net.dense_gradient(1), want.weights[1], allowed)


@pytest.mark.usefixtures("each_isa")
def test_batches_of_two_sizes_in_turn():
    """Both in the same memory, as an agent's joint pass and its actor's."""
    rng = np.random.default_rng(0)
    net = wide(rng)
    for batch in (200, 100, 200, 70):
        check_pass(net, normal(rng, SIZES[0], batch), normal(rng, 1, batch))


@pytest.mark.usefixtures("each_isa")
def test_targets():
    rng = np.random.default_rng(0)
    net = wide(rng)
    target = Target(net)
    for layer in range(2):
        links = net.links(layer)
        net.rewire(layer, some_links(links.n_in, links.n_out, 1, links.count, rng))
    target.update(0.01)
    x = normal(rng, SIZES[0], 100)
    check_outputs(Dense.of_target(target), x, target.forward(batch_of(x)).array)


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize("batch", [3, 100, 300])
def test_gradients_do_not_depend_on_what_else_is_asked_for(batch):
    """One pass for both gradients, and the pass for input gradients alone."""
    rng = np.random.default_rng(batch)
    net = wide(rng)
    dy = batch_of(normal(rng, 1, batch))
    net.forward(batch_of(normal(rng, SIZES[0], batch)))
    both = net.backward(dy, inputs=(0, SIZES[0])).array.copy()
    alone = net.backward(dy, weights=False, inputs=(0, SIZES[0])).array
    np.testing.assert_allclose(both, alone, rtol=1e-4, atol=1e-4 * abs(alone).max())


@pytest.mark.usefixtures("each_isa")
def test_one_output_gives_the_same_as_two_of_which_one_gets_nothing():
    """Its gradients take a way of their own: with batch normalisation, in training and outside of it, too."""
    rng = np.random.default_rng(0)
    x, dy = normal(rng, 7, 37), normal(rng, 1, 37)
    for training in (False, True):
        got = []
        for outputs in (1, 2):
            places = np.arange(20) * outputs
            wiring = [Links.dense(7, 20), Links(20, outputs, 1, places)]
            net = Network(wiring, np.random.default_rng(1), batch_norm=BatchNorm(warmup=0))
            flat = np.random.default_rng(2).standard_normal(len(net.parameters)).astype(np.float32)
            for layer in range(2):  # the same numbers, wherever they stand
                for slots in (net.slots(layer).ravel(), net.bias_slots(layer), *net.norm_slots(layer)):
                    flat[slots] = np.random.default_rng(layer).standard_normal(1000)[: flat[slots].size]
            net.set_parameters(flat)
            net.forward(batch_of(x), training=training)
            padded = np.vstack([dy, np.zeros((outputs - 1, 37), dtype=np.float32)])
            dx = net.backward(batch_of(padded), inputs=(0, 7)).array.copy()
            got.append([dx, net.gradients[net.slots(0)], net.gradients[net.bias_slots(0)]])
        for one, two in zip(*got, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4 * abs(two).max())


@pytest.mark.usefixtures("each_isa", "keep_threads")
@pytest.mark.parametrize("normalised", [False, True])
def test_any_number_of_threads_gives_the_same_bits(normalised):
    def life():
        rng = np.random.default_rng(0)
        nets = [wide(rng, 0.05, batch_norm=BatchNorm() if normalised else None) for _ in range(2)]
        out = []
        for batch in (130, 300, 130):
            x, dys = batch_of(normal(rng, SIZES[0], batch)), [batch_of(normal(rng, 1, batch)) for _ in nets]
            out += [y.array.copy() for y in forward_each(nets, x, training=normalised)]
            out += [d.array.copy() for d in backward_each(nets, dys, inputs=(3, 9))]
            nets[0].forward(x, training=normalised)  # alone, so that threads share its layers
            out.append(nets[0].backward(dys[0], inputs=(3, 9)).array.copy())
            for net in nets:
                out.append(net.gradients.copy())
                net.step(Adam())
        return b"".join(value.tobytes() for value in out)

    set_threads(1)
    alone = life()
    for n in (2, 3):
        set_threads(n)
        assert life() == alone, f"{n} threads"
