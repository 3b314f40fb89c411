"""state() and load_state(): a network that goes on from a copy ends with the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Adam, Network, Target, batch_of
from rewirl.topology import SET, Links

from .oracle import normal, rewired, seeds, shuffle_parameters, some_links, wirings


def go_on(net, target, rng, updates=12):
    """Everything that happens to a network, rewiring included."""
    for update in range(1, updates + 1):
        net.forward(batch_of(normal(rng, net.sizes[0], 10)))
        net.backward(batch_of(normal(rng, net.sizes[-1], 10)))
        net.step(Adam(lr=0.01, weight_decay=1e-3))
        if update % 4 == 0:
            net.adapt(SET(eta=0.3), rng)
        target.update(0.1)
    return net


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype == other[name].dtype
        assert value.tobytes() == other[name].tobytes(), name


@given(wirings(max_width=30, max_layers=3), seeds, st.booleans())
def test_going_on_from_a_state_is_going_on(wiring, seed, wired_differently):
    rng = np.random.default_rng(seed)
    net = Network(wiring, rng)
    shuffle_parameters(net, rng)
    target = Target(net)
    go_on(net, target, rng)
    state, target_state = net.state(), target.state()

    copy = Network([rewired(links, rng) for links in wiring] if wired_differently else wiring, rng)
    target_copy = Target(copy)
    if wired_differently:
        go_on(copy, target_copy, rng, updates=5)
    copy.load_state(state)
    target_copy.load_state(target_state)
    assert_same(copy.state(), state)
    assert_same(target_copy.state(), target_state)

    go_on(net, target, np.random.default_rng(1))
    go_on(copy, target_copy, np.random.default_rng(1))
    assert_same(copy.state(), net.state())
    assert_same(target_copy.state(), target.state())
    x = batch_of(normal(rng, net.sizes[0], 21))
    assert copy.forward(x).array.tobytes() == net.forward(x).array.tobytes()
    assert target_copy.forward(x).array.tobytes() == target.forward(x).array.tobytes()


def test_a_state_is_a_copy():
    rng = np.random.default_rng(0)
    net = Network([some_links(5, 8, 2, 9, rng)], rng)
    target = Target(net)
    state, target_state = net.state(), target.state()
    kept = [{k: v.copy() for k, v in s.items()} for s in (state, target_state)]
    go_on(net, target, rng)
    assert_same(state, kept[0])
    assert_same(target_state, kept[1])
    net.load_state(state)
    target.load_state(target_state)
    go_on(net, target, rng)
    assert_same(state, kept[0])
    assert_same(target_state, kept[1])


def test_a_state_is_plain_arrays_with_the_links_in_it():
    rng = np.random.default_rng(0)
    net = Network([some_links(5, 8, 2, 9, rng), Links.dense(8, 3)], rng)
    state = net.state()
    flat = {"parameters", "first_moments", "second_moments", "steps"}
    assert set(state) == flat | {"places.0", "places.1", "births.0", "births.1"}
    assert all(type(value) is np.ndarray for value in state.values())
    assert len(state["parameters"]) == 18 + 8 + 24 + 3
    np.testing.assert_array_equal(state["places.0"], net.links(0).places)


@pytest.mark.parametrize("damage", ["parameters", "second_moments", "steps", "places.0", "places.1"])
def test_a_refused_state_changes_nothing(damage):
    rng = np.random.default_rng(0)
    net, other = (Network([some_links(5, 8, 2, 9, rng), some_links(8, 3, 1, 9, rng)], rng) for _ in range(2))
    target = Target(net)
    go_on(net, target, rng)
    go_on(other, Target(other), rng)
    before, target_before, state = net.state(), target.state(), other.state()
    state[damage] = np.array(-1) if damage == "steps" else state[damage][::-1][1:].copy()
    with pytest.raises(ValueError, match=r"steps|sorted|shape"):
        net.load_state(state)
    assert_same(net.state(), before)
    assert_same(target.state(), target_before)
