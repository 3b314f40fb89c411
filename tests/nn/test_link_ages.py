"""Ages of links through rewirings, and what a state keeps of them."""

from __future__ import annotations

import numpy as np
import pytest

from rewirl.nn import Adam, Network, batch_of
from rewirl.topology import SET, Links, wire


def updated(net: Network, times: int) -> None:
    for _ in range(times):
        net.forward(batch_of(np.ones((net.sizes[0], 4), dtype=np.float32)))
        net.backward(batch_of(np.ones((net.sizes[-1], 4), dtype=np.float32)))
        net.step(Adam())


def network(*places: int) -> Network:
    return Network([Links(2, 3, 1, np.array(places))], np.random.default_rng(0))


def test_ages_after_known_rewirings() -> None:
    net = network(0, 2, 5)
    updated(net, 4)
    assert net.link_ages(0).tolist() == [4, 4, 4]
    net.rewire(0, Links(2, 3, 1, np.array([0, 1, 5])))
    updated(net, 3)
    assert net.link_ages(0).tolist() == [7, 3, 7]
    net.rewire(0, Links(2, 3, 1, np.array([1, 2, 3])))
    updated(net, 1)
    assert net.link_ages(0).tolist() == [4, 1, 1]


@pytest.mark.parametrize("block", [1, 4])
def test_adapted_links_are_young_and_all_others_old(block: int) -> None:
    rng = np.random.default_rng(1)
    net = Network(wire((12, 16, 8, 4), rng, rule=SET(eta=0.3), sparsity=0.5, block=block), rng)
    before = [net.links(layer).places for layer in range(net.layers)]
    updated(net, 5)
    assert net.adapt(SET(eta=0.3), rng) > 0
    updated(net, 2)
    for layer, places in enumerate(before):
        stayed = np.isin(net.links(layer).places, places)
        assert np.array_equal(net.link_ages(layer), np.where(stayed, 7, 2))


def test_a_state_has_the_ages_and_an_older_one_does_not_need_them() -> None:
    net = network(0, 2, 5)
    updated(net, 4)
    net.rewire(0, Links(2, 3, 1, np.array([0, 1, 5])))
    updated(net, 1)
    state, other = net.state(), network(1, 2, 3)
    other.load_state(state)
    assert other.link_ages(0).tolist() == [5, 1, 5]
    del state["births.0"]
    other.load_state(state)
    assert other.link_ages(0).tolist() == [5, 5, 5]
    for wrong in (np.array([0, 6, 0]), np.array([-1, 0, 0]), np.array([0, 0]), np.zeros(3, dtype=np.float32)):
        with pytest.raises(ValueError, match=r"births\.0"):
            other.load_state({**state, "births.0": wrong})


def test_the_gradient_norm_is_that_of_a_constant_gradient() -> None:
    net = network(0, 2, 5)
    assert net.gradient_norm(0, 0.999) is None
    updated(net, 3)  # a linear layer: the gradient does not depend on the weights
    assert net.gradient_norm(0, 0.999) == pytest.approx(np.linalg.norm(net.gradients), rel=1e-5)
