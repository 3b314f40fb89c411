"""Targets against Algorithm 3 in plain PyTorch: θ' ← τθ + (1-τ)θ' on matrices, then the k largest magnitudes stay."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewirl import _core
from rewirl.nn import Network, Target, batch_of
from rewirl.topology import SET, Links

from .oracle import Dense, check_outputs, mask, matrix, normal, rewired, seeds, shuffle_parameters, some_links, wirings

pytestmark = pytest.mark.usefixtures("each_isa")

FLUSHED = 2.0**-126  # what is smaller becomes 0


def online(net, layer):
    return matrix(net.links(layer), net.weights(layer), np.float32)


def scores(weights, block):
    """One magnitude per block: (output blocks, inputs)."""
    return np.abs(weights).reshape(-1, block, weights.shape[1]).sum(axis=1)


def maintain_sparsity(weights, k, block):
    """MaintainSparsity in PyTorch: all but the k blocks of largest magnitude become 0."""
    size = weights.abs().reshape(-1, block, weights.shape[1]).sum(dim=1)
    keep = torch.zeros(size.numel(), dtype=torch.bool)
    keep[torch.topk(size.ravel(), k).indices] = True
    return weights * keep.reshape(size.shape).repeat_interleave(block, dim=0)


def check_update(target, tau):
    """One update against Algorithm 3, from the target as it is: any order of equal magnitudes is right here."""
    net, tau32 = target.online, np.float32(tau)
    before = [(target.dense(i), target.biases(i).copy()) for i in range(net.layers)]
    target.update(tau)
    for layer, (old, old_bias) in enumerate(before):
        links, now = net.links(layer), target.dense(layer)
        parts = np.float64(tau32) * online(net, layer), np.float64(1 - tau32) * old
        want, allowed = sum(parts), 3 * 2.0**-24 * sum(map(np.abs, parts)) + 2 * FLUSHED
        stays = scores(now, links.block) > 0
        all_stay = np.repeat(stays, links.block, axis=0)
        assert (np.abs(now - want) <= allowed)[all_stay].all(), f"layer {layer}: θ' is not τθ + (1-τ)θ'"
        assert not now[~all_stay].any()
        # As many as there may be, and no pruned one larger than one that stays, but for roundings.
        size, slack = scores(want, links.block), scores(allowed, links.block)
        at_least, at_most = (size > slack).sum(), (size + slack > 2 * FLUSHED).sum()
        assert min(links.blocks, at_least) <= stays.sum() <= min(links.blocks, at_most)
        if not stays.all():
            kept = (size + slack)[stays].min(initial=np.inf)
            pruned = (size - slack)[~stays]
            if stays.sum() == links.blocks:
                assert pruned.max() <= kept, f"layer {layer}: a larger one was pruned"
            else:
                assert pruned.max() <= 2 * FLUSHED, f"layer {layer}: pruned although there was room"
        parts = np.float64(tau32) * net.biases(layer), np.float64(1 - tau32) * old_bias
        allowed = 3 * 2.0**-24 * sum(map(np.abs, parts)) + 2 * FLUSHED
        assert (np.abs(target.biases(layer) - sum(parts)) <= allowed).all(), f"layer {layer}: biases"
        shared, alive = (now * mask(links) != 0), now != 0
        if links.block == 1:
            assert target.alive(layer) == alive.sum() <= links.count
            assert target.follows(layer) == (shared.sum() / alive.sum() if alive.any() else 1.0)


def check_forward(target, rng, batch=21):
    x = normal(rng, target.online.sizes[0], batch)
    check_outputs(Dense.of_target(target), x, target.forward(batch_of(x)).array)


@given(
    wirings(max_width=24, max_layers=2),
    st.lists(st.sampled_from([0.0, 0.001, 0.005, 0.1, 0.5, 0.9, 1.0]), min_size=5, max_size=30),
    seeds,
)
def test_every_update_is_algorithm_3(wiring, taus, seed):
    rng = np.random.default_rng(seed)
    net = Network(wiring, rng)
    shuffle_parameters(net, rng)
    target = Target(net)
    for number, tau in enumerate(taus):
        if number % 3 == 1:
            layer = int(rng.integers(net.layers))
            before = target.dense(layer)
            net.rewire(layer, rewired(net.links(layer), rng))
            np.testing.assert_array_equal(target.dense(layer), before, "rewiring θ leaves θ' as it is")
        if number % 2 == 0:
            shuffle_parameters(net, rng)
        check_update(target, tau)
    check_forward(target, rng)


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("tau", [0.0, 0.005, 0.3, 1.0])
def test_hundreds_of_updates_with_rewirings_in_between(block, tau):
    """PyTorch goes its own way for 400 updates and 20 rewirings, and ends where the target does."""
    rng = np.random.default_rng(block)
    net = Network([some_links(19, 32, block, 250 // block, rng), some_links(32, 12, block, 160 // block, rng)], rng)
    target = Target(net)
    plain = [torch.tensor(online(net, i)) for i in range(2)]
    for update in range(1, 401):
        if update % 20 == 0:
            net.adapt(SET(eta=0.1), rng)
        # Adam would take the first step of all new links equally far: equal magnitudes are another test's.
        net.set_parameters(net.parameters + np.float32(0.003) * normal(rng, len(net.parameters)))
        target.update(tau)
        for layer in range(2):
            mixed = tau * torch.tensor(online(net, layer)) + (1 - tau) * plain[layer]
            plain[layer] = maintain_sparsity(mixed, net.links(layer).blocks, block)
            assert target.alive(layer) <= net.counts[layer]
        if update % 20 in (0, 1, 19):
            for layer in range(2):
                np.testing.assert_allclose(target.dense(layer), plain[layer], rtol=0, atol=1e-5)
    check_forward(target, rng)
    if tau == 0.005:
        assert 0.5 < target.follows(0) < 1, "it has links of its own"
    elif tau == 1:
        assert target.follows(0) == 1


@pytest.mark.parametrize("density", [0.5, 0.1])
def test_links_of_its_own_beside_all_kinds_of_quads(density):
    """A wide layer whose quads share columns, and one so sparse that each link has its own."""
    rng = np.random.default_rng(0)
    net = Network([some_links(250, 141, 1, round(density * 250 * 141), rng), Links.dense(141, 3)], rng)
    target = Target(net)
    for _ in range(4):
        net.adapt(SET(eta=0.2), rng)
        shuffle_parameters(net, rng)
        check_update(target, 0.1)
        check_forward(target, rng)
    assert 0.3 < target.follows(0) < 0.95
    again = Target(net)
    again.load_state(target.state())
    np.testing.assert_array_equal(again.dense(0), target.dense(0))


def test_a_target_begins_as_a_copy():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 4, 11, rng), Links.dense(12, 3)], rng)
    target = Target(net)
    x = batch_of(normal(rng, 9, 30))
    assert target.forward(x).array.tobytes() == net.forward(x).array.tobytes()
    for layer in range(2):
        np.testing.assert_array_equal(target.dense(layer), online(net, layer))
        assert target.follows(layer) == 1
        assert target.alive(layer) == net.counts[layer]


def test_hard_updates_copy_and_tau_0_leaves_all_as_it_is():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 1, 40, rng), Links.dense(12, 3)], rng)
    target = Target(net)
    for _ in range(5):
        before = [target.dense(i) for i in range(2)]
        shuffle_parameters(net, rng)
        net.rewire(0, rewired(net.links(0), rng))
        target.update(0)
        for layer in range(2):
            np.testing.assert_array_equal(target.dense(layer), before[layer])
        target.update(1)
        for layer in range(2):
            np.testing.assert_array_equal(target.dense(layer), online(net, layer))
            np.testing.assert_array_equal(target.biases(layer), net.biases(layer))
        x = batch_of(normal(rng, 9, 30))
        assert target.forward(x).array.tobytes() == net.forward(x).array.tobytes()


# ------------------------------------------------- magnitudes at the edges


def with_extra(block, value, extra_value, moved, blocks=30, n_in=13, n_out=16):
    """A target of one layer that holds `value` at the links of its network and `extra_value` at `moved` old ones."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(n_in * n_out // block, blocks + moved, replace=False))
    gone = np.sort(rng.choice(blocks + moved, moved, replace=False))
    links = Links(n_in, n_out, block, np.delete(places, gone))
    net = Network([links], rng)
    target = Target(net)
    target.load_state(
        {
            "weights.0": np.broadcast_to(np.float32(value), links.count).copy(),
            "bias.0": np.zeros(n_out, dtype=np.float32),
            "extra_places.0": places[gone],
            "extra_weights.0": np.broadcast_to(np.float32(extra_value), moved * block).copy(),
        }
    )
    return target


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("moved", [1, 2, 7])
def test_of_equal_magnitudes_those_at_the_lowest_places_go(block, moved):
    target = with_extra(block, 0.5, 0.5, moved)
    links, before = target.online.links(0), target.dense(0)
    target.update(0)
    by_place = target.dense(0).T.reshape(links.n_places, block)
    places = np.flatnonzero(before.T.reshape(links.n_places, block).any(axis=1))
    assert not by_place[places[:moved]].any()
    assert (by_place[places[moved:]] == 0.5).all()
    assert target.alive(0) == 30 * block


@pytest.mark.parametrize("block", [1, 2, 4])
def test_blocks_are_ranked_by_the_sum_of_their_magnitudes(block):
    """Signs must not cancel, and one large link does not save a block whose sum is smaller."""
    values = np.ones((30, block), dtype=np.float32)
    values[3] = 0.9 / block if block == 1 else [0.9 * block] + [0.0] * (block - 1)
    values[5, ::2] = -2
    target = with_extra(block, values.ravel(), 1.5, moved=1)
    target.update(0)
    assert not target.state()["weights.0"].reshape(30, block)[3].any()
    assert target.alive(0) == 30 * block


@pytest.mark.parametrize(("large", "small"), [(1e10, 1e-10), (1e20, 1.0), (1e38, 1e-37), (3.0, 1e-30)])
@pytest.mark.parametrize("block", [1, 2, 4])
def test_magnitudes_that_differ_by_many_orders(block, large, small):
    rng = np.random.default_rng(0)
    values = np.where(rng.random((30, 1)) < 0.5, large, small) * (1 + rng.random((30, 1))) / 8
    values = np.broadcast_to(values, (30, block)).astype(np.float32)
    target = with_extra(block, values.ravel(), small, moved=9)
    target.online.set_parameters(np.zeros(30 * block + 16, dtype=np.float32))
    for tau in (0, 0.005, 0.5):
        check_update(target, tau)
    assert target.alive(0) <= 30 * block


@pytest.mark.parametrize("large", [False, True], ids=["small first", "large first"])
def test_magnitudes_that_jump_from_one_update_to_the_next(large):
    """How small is small is remembered between updates: only as a guess."""
    rng = np.random.default_rng(0)
    net = Network([some_links(20, 20, 1, 150, rng)], rng)
    target = Target(net)
    for number in range(20):
        scale = np.float32(1e15 if number % 2 == large else 1e-15)
        net.set_parameters(normal(rng, 170) * scale)
        net.rewire(0, rewired(net.links(0), rng))
        net.set_parameters(normal(rng, 170) * scale)
        check_update(target, 0.4)
        check_update(target, 0.4)


def test_zeros_are_no_links():
    """Zeros are not kept in place of links, nor counted, however many there are."""
    target = with_extra(1, 0.0, 1.0, moved=20)
    target.update(0)
    assert target.alive(0) == 20
    assert target.follows(0) == 0
    target.online.set_parameters(np.zeros(46, dtype=np.float32))
    target.update(1)
    assert target.alive(0) == 0
    assert target.follows(0) == 1
    check_update(target, 0.5)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 5, 1, 1), (2, 4, 4, 1), (70, 2, 2, 1)])
def test_layers_of_one_link(shape):
    rng = np.random.default_rng(0)
    net = Network([some_links(*shape, rng)], rng)
    target = Target(net)
    for _ in range(60):
        net.rewire(0, rewired(net.links(0), rng))
        shuffle_parameters(net, rng)
        check_update(target, 0.3)
        assert target.alive(0) <= shape[2]
        check_forward(target, rng)


def test_nan_is_seen_and_does_no_harm():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 1, 40, rng), Links.dense(12, 3)], rng)
    target = Target(net)
    net.set_parameters(np.full(len(net.parameters), np.nan, dtype=np.float32))
    net.rewire(0, rewired(net.links(0), rng))
    for _ in range(3):
        target.update(0.5)
    assert np.isnan(target.forward(batch_of(normal(rng, 9, 5))).array).all()


# ------------------------------------------------------- lives of targets


def test_two_targets_of_one_network_go_their_own_ways():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 2, 20, rng), some_links(12, 3, 1, 20, rng)], rng)
    slow, hard = Target(net), Target(net)
    for number in range(30):
        shuffle_parameters(net, rng)
        net.adapt(SET(eta=0.2), rng)
        check_update(slow, 0.01)
        if number % 5 == 0:
            check_update(hard, 1.0)
        check_forward(slow, rng)
        check_forward(hard, rng)
    late = Target(net)
    np.testing.assert_array_equal(late.dense(0), online(net, 0))
    assert slow.follows(0) < 1


def test_a_target_outlives_its_network():
    rng = np.random.default_rng(0)
    core = _core.Network([(5, 8, 1, np.arange(20))])
    core.set_parameters(normal(rng, 28))
    target, x = _core.Target(core), batch_of(normal(rng, 5, 9))
    want = target.forward(x).array.copy()
    del core
    gc.collect()
    target.update(0.5)
    np.testing.assert_array_equal(target.forward(x).array, want)
    weights = target.weights(0)
    kept = weights.copy()
    del target
    gc.collect()
    np.testing.assert_array_equal(weights, kept)


def test_a_network_outlives_its_targets():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 1, 40, rng)], rng)
    for _ in range(5):
        targets = [Target(net), Target(net)]
        net.rewire(0, rewired(net.links(0), rng))
        del targets[0]
        net.rewire(0, rewired(net.links(0), rng))
        check_update(targets[0], 0.5)
        del targets
        net.rewire(0, rewired(net.links(0), rng))


def test_memory_is_that_of_the_links():
    rng = np.random.default_rng(0)
    net = Network([some_links(50, 60, 1, 300, rng)], rng)
    target = Target(net)
    assert sum(target.bytes().values()) == (300 + 60) * 4
    net.rewire(0, rewired(net.links(0), rng))
    extra = 300 - np.isin(target.online.links(0).places, np.flatnonzero(target.dense(0).T.ravel())).sum()
    assert target.bytes()["target weights"] == (300 + 60 + extra) * 4
