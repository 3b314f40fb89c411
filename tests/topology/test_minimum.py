"""A minimum of inputs per neuron: small wirings worked out by hand, and what always holds."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.topology import SET, Links, RigL, minimum
from rewirl.topology._checks import BLOCKS


def f32(*values):
    return np.array(values, dtype=np.float32)


def fan_in(links):
    return np.bincount(links.output_blocks, minlength=links.n_out // links.block)


# Two inputs of neuron 0 (0.1, 0.2), three of neuron 1 (0.3, 0.4, 0.5) and none of neuron 2; 4 inputs in all.
UNEVEN = Links(4, 3, 1, np.array([0, 1, 3, 4, 10]))
WEIGHTS = f32(0.1, 0.3, 0.2, 0.4, 0.5)


@pytest.mark.parametrize("rule", [SET, RigL])
@pytest.mark.parametrize(
    ("min_links", "eta", "dropped", "counts"),
    [
        # the three smallest go, wherever they are
        (0, 0.6, [0, 1, 3], None),
        # 5 links for 3 neurons: a minimum of 4 is one of 1, and the last link of neuron 0 (0.2) stays
        (1, 0.6, [0, 1, 4], None),
        (4, 0.6, [0, 1, 4], None),
        # three links may go, though c would be 4; they feed neuron 2 first
        (1, 0.8, [0, 1, 4], None),
        # a single link goes: it comes to neuron 2
        (1, 0.2, [0], [1, 3, 1]),
    ],
)
def test_what_goes_by_hand(rule, min_links, eta, dropped, counts):
    gradients = np.zeros((3, 4), dtype=np.float32)
    gradients[:2] = 1  # the last neuron is silent
    change = rule(eta=eta, min_links=min_links).rewire(UNEVEN, WEIGHTS, np.random.default_rng(0), gradients)
    assert change.dropped.tolist() == dropped
    assert change.links.count == 5
    if min_links:
        assert (fan_in(change.links) >= 1).all()
    if counts:
        assert fan_in(change.links).tolist() == counts


def test_rigl_without_a_minimum_leaves_the_silent_neuron_alone():
    gradients = np.ones((3, 4), dtype=np.float32)
    gradients[2] = 0
    change = RigL(eta=0.6).rewire(UNEVEN, WEIGHTS, np.random.default_rng(0), gradients)
    assert fan_in(change.links)[2] == 0


@pytest.mark.parametrize(
    ("most", "come"), [(0, [0, 0, 0]), (1, [0, 0, 1]), (2, [0, 0, 2]), (4, [0, 1, 3]), (5, [0, 2, 3]), (9, [0, 2, 4])]
)
def test_neurons_with_fewest_inputs_come_first(most, come):
    links = Links(6, 3, 1, np.array([0, 1, 3, 4, 6, 9, 12, 15]))
    assert fan_in(links).tolist() == [6, 2, 0]
    for seed in range(5):
        places = minimum.missing(links, 4, most, np.random.default_rng(seed))
        assert np.bincount(places % 3, minlength=3).tolist() == come
        assert sorted(set(places.tolist()) - set(links.places.tolist())) == places.tolist()


@pytest.mark.parametrize("rule", [SET, RigL])
@given(st.data())
def test_what_always_holds(rule, data):
    block = data.draw(st.sampled_from(BLOCKS))
    n_in, n_out = data.draw(st.integers(1, 12)), block * data.draw(st.integers(1, 4))
    taken = data.draw(st.sets(st.integers(0, n_in * n_out // block - 1)))
    links = Links(n_in, n_out, block, np.array(sorted(taken), dtype=np.int64))
    few = st.sampled_from((0.0, -0.0, 0.5, -0.5, 0.25, -1.0, 2.0))
    weights = f32(*data.draw(st.lists(few, min_size=links.count, max_size=links.count)))
    gradients = f32(*data.draw(st.lists(few, min_size=n_in * n_out, max_size=n_in * n_out))).reshape(n_out, n_in)
    chosen = rule(eta=data.draw(st.floats(0, 1)), min_links=data.draw(st.integers(1, 5)))

    change = chosen.rewire(links, weights, np.random.default_rng(1), gradients)

    least = min(chosen.min_links, n_in, len(taken) * block // n_out)
    assert change.links.count == links.count
    assert len(change.dropped) == len(change.grown)
    assert not set(change.grown.tolist()) & taken
    before = fan_in(links)
    gone = np.bincount(change.dropped % (n_out // block), minlength=len(before))
    come = np.bincount(change.grown % (n_out // block), minlength=len(before))
    assert (before - gone >= np.minimum(before, least)).all()
    needed = int(np.maximum(least - before, 0).sum())
    c = min(round(chosen.eta * len(taken)), links.n_free)
    assert np.minimum(come, np.maximum(least - before, 0)).sum() >= min(c, needed)
    if c >= needed and c:
        assert (fan_in(change.links) >= least).all()


@pytest.mark.parametrize("block", BLOCKS)
def test_a_minimum_is_reached_and_kept(block):
    rng = np.random.default_rng(0)
    n = 8  # neurons, or blocks of them
    links = Links(16, n * block, block, np.sort(np.concatenate([np.arange(16) * n, np.arange(16) * n + 1])))
    for _ in range(40):
        links = SET(eta=0.1, min_links=3).rewire(links, rng.normal(size=links.count).astype("f"), rng).links
    assert links.blocks == 32
    assert fan_in(links).min() >= 3
    for _ in range(100):
        links = SET(eta=0.5, min_links=3).rewire(links, rng.normal(size=links.count).astype("f"), rng).links
        assert fan_in(links).min() >= 3


def test_zero_changes_nothing():
    rng = np.random.default_rng(0)
    links = Links(9, 8, 1, np.sort(rng.choice(72, 30, replace=False)))
    weights = rng.normal(size=30).astype("f")
    one, other = (rule.rewire(links, weights, np.random.default_rng(3)) for rule in (SET(0.3), SET(0.3, min_links=0)))
    assert one.links == other.links


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_wrong_minima_are_refused(value, error):
    with pytest.raises(error, match="min_links must"):
        SET(min_links=value)


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(minimum).failed == 0
