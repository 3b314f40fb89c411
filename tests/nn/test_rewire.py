"""Rewiring a network: what stays, what starts at zero, what follows a rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Adam, Network, batch_of
from rewirl.topology import SET, Dense, Links, RigL, Static

from .oracle import Dense as Oracle
from .oracle import check_pass, layer_of, mask, normal, rewired, seeds, shuffle_parameters, some_links, wirings

FLAT = ("parameters", "first_moments", "second_moments")


def trained(wiring, rng, steps=3, batch=20):
    """A network with moments that are not zero."""
    net = Network(wiring, rng)
    shuffle_parameters(net, rng)
    for _ in range(steps):
        update(net, rng, batch)
    return net


def update(net, rng, batch=20):
    net.forward(batch_of(normal(rng, net.sizes[0], batch)))
    net.backward(batch_of(normal(rng, net.sizes[-1], batch)))
    net.step(Adam(lr=0.01, weight_decay=1e-3))


def addresses(net):
    return [getattr(net, name).ctypes.data for name in (*FLAT, "gradients")]


@given(wirings(max_width=40), seeds, st.data())
def test_links_that_stay_keep_everything_and_new_ones_start_at_zero(wiring, seed, data):
    rng = np.random.default_rng(seed)
    net = trained(wiring, rng)
    layer = data.draw(st.integers(0, net.layers - 1))
    old, new = net.links(layer), rewired(net.links(layer), rng)
    before = {name: [layer_of(net, getattr(net, name), i) for i in range(net.layers)] for name in FLAT}
    counts, places = net.counts, addresses(net)

    net.rewire(layer, new)

    assert net.links(layer) == new
    assert net.counts == counts
    assert addresses(net) == places
    stay = mask(old) & mask(new)
    for name in FLAT:
        for i in range(net.layers):
            weights, biases = layer_of(net, getattr(net, name), i)
            wanted, wanted_biases = before[name][i]
            np.testing.assert_array_equal(weights, wanted * stay if i == layer else wanted, f"{name} of layer {i}")
            np.testing.assert_array_equal(biases, wanted_biases)
    check_pass(net, normal(rng, net.sizes[0], 33), normal(rng, net.sizes[-1], 33))


@given(wirings(max_width=30, max_layers=3), seeds)
def test_many_rewirings_and_updates(wiring, seed):
    rng = np.random.default_rng(seed)
    net = trained(wiring, rng)
    for _ in range(5):
        for layer in range(net.layers):
            net.rewire(layer, rewired(net.links(layer), rng))
        update(net, rng)
    check_pass(net, normal(rng, net.sizes[0], 33), normal(rng, net.sizes[-1], 33))


def test_the_flat_arrays_are_one_memory_for_life():
    rng = np.random.default_rng(0)
    net = trained([some_links(9, 14, 2, 30, rng), some_links(14, 3, 1, 20, rng)], rng)
    views = {name: getattr(net, name) for name in (*FLAT, "gradients")}
    net.rewire(0, rewired(net.links(0), rng))
    update(net, rng)
    net.load_state(trained([some_links(9, 14, 2, 30, rng), some_links(14, 3, 1, 20, rng)], rng).state())
    net.adapt(SET(eta=0.3), rng)
    for name, view in views.items():
        now = getattr(net, name)
        assert np.shares_memory(view, now)
        np.testing.assert_array_equal(view, now)


def test_parameters_cannot_be_written_behind_the_networks_back():
    """The weights are kept in two orders: a write to one would leave the other behind."""
    net = Network([Links.dense(3, 2)], np.random.default_rng(0))
    with pytest.raises(ValueError, match="read-only"):
        net.parameters[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        net.biases(0)[0] = 1


@pytest.mark.parametrize("block", [1, 2, 4])
def test_set_adapts_as_the_rule_says(block):
    rng = np.random.default_rng(0)
    wiring = [some_links(11, 16, block, 20, rng), some_links(16, 12, block, 25, rng), Links.dense(12, 3)]
    net = trained(wiring, rng)
    rule = SET(eta=0.3)
    draws = np.random.default_rng(5)
    changes = [rule.rewire(net.links(i), net.weights(i), draws) for i in range(2)]
    before = {name: [layer_of(net, getattr(net, name), i)[0] for i in range(3)] for name in FLAT}

    replaced = net.adapt(rule, np.random.default_rng(5))

    assert replaced == (6 + 8) * block
    for i, change in enumerate(changes):
        assert net.links(i) == change.links
        grown = mask(Links(change.links.n_in, change.links.n_out, block, change.grown))
        for name in FLAT:
            now = layer_of(net, getattr(net, name), i)[0]
            if name == "second_moments":  # how large: the test of estimates below
                assert (now[grown] > 0).all()
            else:
                assert not now[grown].any()
            np.testing.assert_array_equal(now * ~grown, before[name][i] * mask(change.links))
    assert net.links(2).n_free == 0
    assert net.counts == tuple(links.count for links in wiring)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_rigl_grows_where_the_dense_gradient_is_largest(block):
    rng = np.random.default_rng(0)
    wiring = [some_links(11, 16, block, 20, rng), some_links(16, 12, block, 25, rng), Links.dense(12, 3)]
    net = trained(wiring, rng)
    x, dy = normal(rng, 11, 50), normal(rng, 3, 50)
    net.forward(batch_of(x))
    net.backward(batch_of(dy))
    gradients = Oracle.of(net).run(x, dy).weights
    old = [net.links(i) for i in range(3)]

    assert net.adapt(RigL(eta=0.3), rng) == (6 + 8) * block

    for i in range(2):
        links = net.links(i)
        scores = abs(gradients[i]).reshape(-1, block, links.n_in).sum(axis=1).T.ravel()
        grown = np.setdiff1d(links.places, old[i].places)
        free = np.setdiff1d(np.arange(links.n_places), old[i].places)
        assert len(grown) == [6, 8][i]
        assert set(grown) == set(free[np.argsort(-scores[free])[: len(grown)]])


@pytest.mark.parametrize("rule", [Static(), Dense()], ids=lambda rule: rule.name)
def test_rules_that_never_change_leave_the_network_ready(rule):
    rng = np.random.default_rng(0)
    net = trained([some_links(9, 14, 1, 30, rng)], rng)
    dy = batch_of(normal(rng, 14, 5))
    net.forward(batch_of(normal(rng, 9, 5)))
    assert net.adapt(rule, rng) == 0
    net.backward(dy)  # would be refused had anything changed


def test_growth_without_a_free_place_changes_nothing():
    rng = np.random.default_rng(0)
    net = trained([Links.dense(9, 14)], rng)
    state = net.state()
    assert net.adapt(SET(eta=1.0), rng) == 0
    for name, value in net.state().items():
        np.testing.assert_array_equal(value, state[name])


def test_a_layer_of_one_link():
    rng = np.random.default_rng(0)
    net = trained([some_links(3, 5, 1, 1, rng), Links.dense(5, 2)], rng)
    seen = set()
    for _ in range(50):
        assert net.adapt(SET(eta=1.0), rng) == 1
        assert net.counts == (1, 10)
        seen.add(int(net.links(0).places[0]))
        check_pass(net, normal(rng, 3, 4), normal(rng, 2, 4))
    assert len(seen) > 10


def test_neurons_without_links():
    """Inputs that nobody reads, outputs that only have their bias."""
    rng = np.random.default_rng(0)
    net = Network([Links(9, 9, 1, np.array([40])), Links(9, 9, 1, np.array([4]))], rng)
    shuffle_parameters(net, rng)
    check_pass(net, normal(rng, 9, 20), normal(rng, 9, 20))


@pytest.mark.parametrize("block", [1, 2, 4])
def test_second_moments_of_new_links_are_estimated_from_their_neurons(block):
    rng = np.random.default_rng(0)
    wiring = [some_links(11, 16, block, 20, rng), some_links(16, 12, block, 25, rng), Links.dense(12, 3)]
    net = trained(wiring, np.random.default_rng(1))
    before = [(net.links(i), net.second_moments[net.slots(i)]) for i in range(3)]
    first = [net.first_moments[net.slots(i)] for i in range(3)]
    net.adapt(SET(eta=0.3), np.random.default_rng(5))
    for i, (links, moments) in enumerate(before):
        now = net.links(i)
        kept = np.isin(now.places, links.places)
        assert kept.all() == (i == 2)
        after = net.second_moments[net.slots(i)]
        stayed = np.isin(links.places, now.places)
        np.testing.assert_array_equal(after[kept], moments[stayed])
        np.testing.assert_array_equal(net.first_moments[net.slots(i)][kept], first[i][stayed])
        np.testing.assert_array_equal(net.first_moments[net.slots(i)][~kept], 0)
        # one link after the other, in matrices
        table = np.full((links.n_in, links.n_out), np.nan)
        cell = links.places[:, None] * links.block + np.arange(links.block)
        table.ravel()[cell] = moments
        mean = np.nanmean(table)
        for place, value in zip(now.places[~kept], after[~kept], strict=True):
            for r in range(block):
                x, y = divmod(int(place) * block + r, links.n_out)
                row, column = table[x], table[:, y]
                of_input = np.nanmean(row) if not np.isnan(row).all() else mean
                of_output = np.nanmean(column) if not np.isnan(column).all() else mean
                np.testing.assert_allclose(value[r], of_input * of_output / mean, rtol=1e-5)


def test_moments_of_new_links_are_zero_while_there_are_none():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 8, 1, 20, rng), Links.dense(8, 1)], rng)
    assert net.adapt(SET(eta=0.5), rng) == 10
    np.testing.assert_array_equal(net.second_moments, 0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_second_moments_that_are_none_are_refused(wrong):
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 8, 1, 20, rng), Links.dense(8, 1)], rng)
    change = SET(eta=0.1).rewire(net.links(0), net.weights(0), rng)
    before = net.links(0)
    with pytest.raises(ValueError, match="second moment"):
        net._core.rewire(0, change.dropped, change.grown, np.array([0.0, wrong], dtype=np.float32))
    with pytest.raises(ValueError, match="second_moments must have 2 numbers, not 3"):
        net._core.rewire(0, change.dropped, change.grown, np.zeros(3, dtype=np.float32))
    assert net.links(0) == before


def test_a_layer_holds_nothing_of_another_that_was_rewired_before():
    rng = np.random.default_rng(0)
    unstructured = Network([some_links(64, 128, 1, 3000, rng)], rng)
    blocks = Network([some_links(64, 128, 4, 700, rng)], rng)
    before = blocks.bytes()
    for net in (unstructured, blocks):
        net.rewire(0, rewired(net.links(0), rng))
    after = blocks.bytes()
    assert after["weights by inputs"] == before["weights by inputs"] == 0
    assert after["links"] == before["links"]
