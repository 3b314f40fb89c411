"""Forward, backward and acting against dense matrices, on every instruction set."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Adam, Batch, Network, batch_of
from rewirl.topology import Links, Static, wire

from .oracle import (
    Dense,
    assert_close,
    batches,
    check_outputs,
    check_pass,
    normal,
    rewired,
    seeds,
    shuffle_parameters,
    some_links,
    tolerance,
    wirings,
)

pytestmark = pytest.mark.usefixtures("each_isa")


def network(wiring, rng):
    net = Network(wiring, rng)
    shuffle_parameters(net, rng)
    return net


@given(wirings(), batches, seeds)
def test_forward_and_every_gradient(wiring, batch, seed):
    rng = np.random.default_rng(seed)
    net = network(wiring, rng)
    want, size = check_pass(net, normal(rng, net.sizes[0], batch), normal(rng, net.sizes[-1], batch))
    for layer in range(net.layers - 1):
        allowed = tolerance(size.weights[layer], Dense.of(net).roundings(batch))
        assert_close(f"dense gradient of layer {layer}", net.dense_gradient(layer), want.weights[layer], allowed)


@pytest.mark.parametrize("batch", [1, 5, 100, 130])
@pytest.mark.parametrize("n_in", [1, 4, 17, 23, 97, 130])
def test_layers_with_all_links(n_in, batch):
    """Tiles of four inputs and lanes of sixteen, with all that can be left over; gradients of some inputs only."""
    rng = np.random.default_rng(n_in)
    net = network([Links.dense(n_in, 12), Links.dense(12, n_in), Links.dense(n_in, 4)], rng)
    x, dy = normal(rng, n_in, batch), normal(rng, 4, batch)
    check_pass(net, x, dy)
    whole = net.backward(batch_of(dy), inputs=(0, n_in)).array.copy()
    for begin in {0, n_in // 2, n_in - 1}:
        part = net.backward(batch_of(dy), weights=False, inputs=(begin, n_in)).array
        assert np.array_equal(part, whole[begin:])


@pytest.mark.parametrize("pattern", range(1, 16))
@pytest.mark.parametrize("rows", [4, 7])
def test_every_pattern_of_rows_in_every_number(pattern, rows):
    """Kernels work on four outputs at a time, each input linked to some of them: 15 loops, unrolled by 1 to 12."""
    rng = np.random.default_rng(pattern)
    for n_in in [*range(1, 16), 24, 41]:
        outputs = [o for o in range(rows) if pattern >> o % 4 & 1]
        if not outputs:
            continue
        places = np.array([i * rows + o for i in range(n_in) for o in outputs], dtype=np.int64)
        # Twice, since the way back runs the same kernels over the transposed links.
        back = np.sort([(p % rows) * n_in + p // rows for p in places])
        net = network([Links(n_in, rows, 1, places), Links(rows, n_in, 1, back)], rng)
        check_pass(net, normal(rng, n_in, 21), normal(rng, n_in, 21))
        x = normal(rng, n_in)
        check_outputs(Dense.of(net), x[:, None], net.act(x)[:, None])


@pytest.mark.parametrize("batch", [1, 100, 600])
@pytest.mark.parametrize(("density", "shared"), [(0.5, True), (0.65, True), (0.97, True), (0.1, False), (0.02, False)])
def test_quads_of_all_kinds(density, shared, batch):
    """Wide layers whose quads share columns by two, by three or all, and those so sparse that each link has its own."""
    rng = np.random.default_rng(batch)
    sizes = (250, 141, 231)
    wiring = [some_links(*shape, 1, round(density * shape[0] * shape[1]), rng) for shape in (sizes[:2], sizes[1:])]
    net = network(wiring, rng)
    assert (net.bytes()["links"] < 7 * net.count) is shared, "less than an index per link, both ways"
    check_pass(net, normal(rng, sizes[0], batch), normal(rng, sizes[-1], batch))
    x = normal(rng, sizes[0])
    check_outputs(Dense.of(net), x[:, None], net.act(x)[:, None])
    for layer in range(2):
        net.rewire(layer, rewired(net.links(layer), rng))
    check_pass(net, normal(rng, sizes[0], batch), normal(rng, sizes[-1], batch))


@pytest.mark.parametrize("rows", [4, 6, 9])
def test_rows_of_every_length_in_every_company(rows):
    """As many links as all four rows have are in quads, which are worked on by threes, and the rest are single."""
    rng = np.random.default_rng(rows)
    for shared in range(8):
        for more in range(4):
            lengths = [shared + int(rng.integers(more + 1)) for _ in range(rows)]
            places = [i * rows + o for o in range(rows) for i in rng.choice(40, lengths[o], replace=False)]
            if not places:
                continue
            back = np.sort([(p % rows) * 40 + p // rows for p in places])
            net = network([Links(40, rows, 1, np.sort(places)), Links(rows, 40, 1, back)], rng)
            check_pass(net, normal(rng, 40, 21), normal(rng, 40, 21))
            x = normal(rng, 40)
            check_outputs(Dense.of(net), x[:, None], net.act(x)[:, None])


@pytest.mark.parametrize("layer", [(65535, 5), (5, 65535)], ids=["inputs", "outputs"])
def test_the_widest_layer(layer):
    rng = np.random.default_rng(0)
    n_in, n_out = layer
    places = np.union1d(rng.choice(n_in * n_out, 5000), [0, n_in * n_out - 1])
    net = network([Links(n_in, n_out, 1, places)], rng)
    check_pass(net, normal(rng, n_in, 3), normal(rng, n_out, 3))


def test_as_many_entries_of_one_pattern_as_16_bits_count():
    rng = np.random.default_rng(0)
    net = network([Links.dense(65535, 4)], rng)
    check_pass(net, normal(rng, 65535, 2), normal(rng, 4, 2))


@given(wirings(), st.integers(1, 100), seeds, st.data())
def test_a_part_of_the_input_gradients_is_that_part_of_all(wiring, batch, seed, data):
    rng = np.random.default_rng(seed)
    net = network(wiring, rng)
    begin = data.draw(st.integers(0, net.sizes[0] - 1))
    end = data.draw(st.integers(begin + 1, net.sizes[0]))
    dy = batch_of(normal(rng, net.sizes[-1], batch))
    net.forward(batch_of(normal(rng, net.sizes[0], batch)))
    everything = net.backward(dy, inputs=(0, net.sizes[0])).array
    whole, gradients = everything.copy(), net.gradients.copy()

    everything[...] = np.nan  # the memory in which a part comes too
    net.gradients[...] = 7
    part = net.backward(dy, weights=False, inputs=(begin, end)).array
    np.testing.assert_array_equal(part, whole[begin:end])
    assert (net.gradients == 7).all(), "weight gradients were not asked for"

    nothing = net.backward(dy)
    assert nothing.features == 0
    np.testing.assert_array_equal(net.gradients, gradients)


@given(wirings(), seeds)
def test_acting_is_a_forward_of_one(wiring, seed):
    rng = np.random.default_rng(seed)
    net = network(wiring, rng)
    dense = Dense.of(net)
    for _ in range(3):
        x = normal(rng, net.sizes[0])
        check_outputs(dense, x[:, None], net.act(x)[:, None])
        check_outputs(dense, x[:, None], net.forward(batch_of(x[:, None])).array)


@given(wirings(max_layers=2), st.lists(batches, min_size=2, max_size=4), seeds)
def test_batches_of_several_sizes_in_turn(wiring, sizes, seed):
    rng = np.random.default_rng(seed)
    net = network(wiring, rng)
    for batch in sizes:
        check_pass(net, normal(rng, net.sizes[0], batch), normal(rng, net.sizes[-1], batch))


@given(wirings(max_layers=3), batches, seeds)
def test_outputs_may_be_given_back_as_gradients(wiring, batch, seed):
    """The gradient of y²/2 is y: the batch that forward gave, with whatever its padding holds."""
    rng = np.random.default_rng(seed)
    net = network(wiring, rng)
    x = batch_of(normal(rng, net.sizes[0], batch))
    y = net.forward(x)
    net.backward(batch_of(y.array))
    wanted = net.gradients.copy()
    net.backward(y)
    np.testing.assert_array_equal(net.gradients, wanted)


@given(wirings(max_layers=2), wirings(max_layers=2), batches, seeds)
def test_gradients_flow_from_one_network_into_another(actor_wiring, critic_wiring, batch, seed):
    """As in the actor's loss: the critic's gradient at the actions is where the actor's backward begins."""
    rng = np.random.default_rng(seed)
    actor, critic = network(actor_wiring, rng), network(critic_wiring, rng)
    n = min(actor.sizes[-1], critic.sizes[0])
    if actor.sizes[-1] != n:
        actor = network([*actor_wiring[:-1], Links.dense(actor.sizes[-2], n)], rng)
    x = normal(rng, actor.sizes[0], batch)
    critic.forward(batch_of(normal(rng, critic.sizes[0], batch)))
    dy = critic.backward(batch_of(normal(rng, critic.sizes[-1], batch)), inputs=(critic.sizes[0] - n, critic.sizes[0]))
    check_pass(actor, x, dy.array)
    wanted = actor.gradients.copy()
    actor.forward(batch_of(x))
    actor.backward(dy)  # the critic's own memory, rows in the middle of it
    np.testing.assert_array_equal(actor.gradients, wanted)


def test_rows_of_a_batch_are_an_input():
    rng = np.random.default_rng(0)
    net = network([some_links(9, 6, 1, 30, rng)], rng)
    both = batch_of(normal(rng, 20, 37))
    got = net.forward(both.rows(5, 14)).array.copy()
    np.testing.assert_array_equal(got, net.forward(batch_of(both.array[5:14])).array)


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_nan_in_the_parameters_is_seen_in_the_outputs(layer, kind):
    rng = np.random.default_rng(0)
    net = network([Links.dense(5, 9), Links.dense(9, 7), Links.dense(7, 3)], rng)
    values = net.parameters.copy()
    weight_at, bias_at = net._core.ranges(layer)
    values[weight_at if kind == "weight" else bias_at] = np.nan
    net.set_parameters(values)
    x = normal(rng, 5, 20)
    for outputs in (net.forward(batch_of(x)).array, net.act(x[:, 0].copy())):
        broken = np.isnan(outputs).reshape(3, -1)
        assert broken.all(axis=1).any(), "no output shows the NaN"
        if layer < 2:
            assert broken.all(), "ReLU hid the NaN"


def test_nan_in_one_sample_stays_in_that_sample():
    rng = np.random.default_rng(0)
    net = network([some_links(5, 9, 1, 30, rng), Links.dense(9, 3)], rng)
    x = normal(rng, 5, 20)
    x[:, 4] = np.nan
    outputs = net.forward(batch_of(x)).array
    assert np.isnan(outputs[:, 4]).all()
    assert not np.isnan(np.delete(outputs, 4, axis=1)).any()


@pytest.mark.parametrize("sparse_init", [False, True])
@pytest.mark.parametrize("block", [1, 4])
def test_first_weights_are_uniform(block, sparse_init):
    """By the layer's inputs, or with sparse_init by the links into each neuron."""
    rng = np.random.default_rng(0)
    wiring = wire((16, 200, 200, 4), rng, rule=Static(), sparsity=0.8, block=block)
    net = Network(wiring, rng, sparse_init=sparse_init)
    for layer, n_in in enumerate(net.sizes[:-1]):
        links = net.links(layer)
        fan_in = np.bincount(links.output_blocks, minlength=links.n_out // links.block)[links.output_blocks]
        weights = net.weights(layer) * np.sqrt(fan_in if sparse_init else np.full(links.blocks, n_in))[:, None]
        biases = net.biases(layer) * np.sqrt(n_in)
        for values in (weights.ravel(), biases):
            assert abs(values).max() <= 1.000001
            assert abs(values.mean()) < 0.1 or len(values) < 50
            assert values.std() == pytest.approx(1 / np.sqrt(3), rel=0.1) or len(values) < 50
        assert abs(weights).max() > 0.95


def test_a_dense_layer_starts_within_one_over_root_of_its_inputs():
    net = Network([Links.dense(16, 200), Links.dense(200, 4)], np.random.default_rng(0))
    drawn = np.random.default_rng(0).uniform(-1, 1, 16 * 200 + 200).astype(np.float32) / np.float32(4)
    np.testing.assert_array_equal(net.weights(0).ravel(), drawn[:3200])
    np.testing.assert_array_equal(net.biases(0), drawn[3200:])


def test_dense_networks_count_every_link_and_sparse_ones_hold_less_memory():
    def held(sparsity):
        wiring = wire((17, 256, 256, 6), np.random.default_rng(0), rule=Static(), sparsity=sparsity)
        net = Network(wiring, np.random.default_rng(0))
        return net.count, net.dense_count, sum(net.bytes().values())

    links, all_links, dense_bytes = held(0.0)
    assert links == all_links == 17 * 256 + 256 * 256 + 256 * 6
    for sparsity in (0.5, 0.9):
        links, _, sparse_bytes = held(sparsity)
        assert links == pytest.approx((1 - sparsity) * all_links, abs=2)
        assert sparse_bytes < (1 - sparsity) * 1.7 * dense_bytes


def test_what_was_handed_out_outlives_the_network():
    rng = np.random.default_rng(0)
    net = network([Links.dense(5, 3)], rng)
    batch = batch_of(normal(rng, 5, 40))
    x, y, parameters = batch.array, net.forward(batch).array, net.parameters
    wanted = y.copy(), parameters.copy(), x.copy()
    del net, batch
    gc.collect()
    Batch(5, 40).array[...] = np.nan  # would take freed memory
    for got, want in zip((y, parameters, x), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_weights_are_used_as_they_are_now():
    """Both copies of the weights, there and back, follow every way in which weights change."""
    rng = np.random.default_rng(0)
    net = network([some_links(11, 14, 2, 40, rng), some_links(14, 5, 1, 31, rng)], rng)
    changes = [
        lambda: net.step(Adam(lr=0.3)),
        lambda: net.set_parameters(normal(rng, len(net.parameters))),
        lambda: net.rewire(0, some_links(11, 14, 2, 40, rng)),
        lambda: net.load_state(Network([some_links(11, 14, 2, 40, rng), some_links(14, 5, 1, 31, rng)], rng).state()),
    ]
    for change in changes:
        before = net.parameters.copy()
        check_pass(net, normal(rng, 11, 19), normal(rng, 5, 19))
        change()
        assert (net.parameters != before).any()
        check_pass(net, normal(rng, 11, 19), normal(rng, 5, 19))
