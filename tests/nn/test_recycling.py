"""Dead and dormant neurons start anew: what changes, what does not, and that a network recovers."""

from __future__ import annotations

import numpy as np
import pytest

from rewirl.nn import Adam, Network, Target, batch_of, dormant, recycle, regress_each
from rewirl.topology import SET, Dense, Links, Static, wire

RULES = {"set": SET(eta=0.3), "static": Static(), "dense": Dense()}


def network(rule: SET | Static | Dense, block: int = 1, *, sparse_init: bool = False) -> Network:
    rng = np.random.default_rng(1)
    return Network(wire((6, 16, 16, 4), rng, rule=rule, sparsity=0.5, block=block), rng, sparse_init=sparse_init)


def kill(net: Network, layer: int, neurons: list[int]) -> None:
    parameters = net.parameters.copy()
    parameters[net.bias_slots(layer)][neurons] = -1000
    net.set_parameters(parameters)


def matrix(net: Network, layer: int, values: np.ndarray | None = None) -> np.ndarray:
    """The layer's weights, or what `values` has for them, as (outputs, inputs)."""
    links = net.links(layer)
    out = np.zeros((links.n_places, links.block), dtype=np.float32)
    out[links.places] = (net.parameters if values is None else values)[net.slots(layer)]
    return out.reshape(links.n_in, links.n_out).T


X = batch_of(np.random.default_rng(5).normal(size=(6, 40)).astype(np.float32))


def trained(net: Network, targets: list[Target]) -> None:
    """A few steps, rewirings and Polyak averages, so that moments and links of the targets' own exist."""
    rng = np.random.default_rng(2)
    for _ in range(3):
        net.forward(X)
        net.backward(batch_of(rng.normal(size=(4, 40)).astype(np.float32)))
        net.step(Adam())
        net.adapt(SET(eta=0.3), rng)
        for target in targets:
            target.update(0.1)


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("rule", RULES)
def test_what_starts_anew_and_what_stays(rule: str, block: int) -> None:
    net = network(RULES[rule], block)
    target = Target(net)
    trained(net, [target])
    kill(net, 0, [0, 5, 6])
    kill(net, 1, [2, 15])
    before = [matrix(net, layer).copy() for layer in range(3)]
    biases = [net.biases(layer).copy() for layer in range(2)]
    of_target = [target.dense(layer) for layer in range(3)]
    counts, places = net.counts, [net.links(layer).places for layer in range(3)]
    y = net.forward(X).array.copy()
    dead = [dormant(outputs, 0) for outputs in net.hidden_outputs()]
    assert dead[0][[0, 5, 6]].all()
    assert dead[1][[2, 15]].all()

    assert recycle(net, [target], 0.0, np.random.default_rng(4)) == sum(map(sum, dead))

    assert net.counts == counts
    assert all(np.array_equal(net.links(layer).places, places[layer]) for layer in range(3))
    assert np.array_equal(net.forward(X).array, y), "a dead neuron contributed nothing"
    inputs = [np.zeros(6, dtype=bool), *dead]
    for layer in range(3):
        into = dead[layer] if layer < 2 else np.zeros(4, dtype=bool)
        out, changed = inputs[layer], into[:, None] | inputs[layer][None, :]
        now, mask = matrix(net, layer), matrix(net, layer, np.ones_like(net.parameters)) > 0
        assert (now[:, out] == 0).all(), "outgoing weights are 0"
        fresh = mask & into[:, None] & ~out[None, :]
        limit = 1 / np.sqrt(net.sizes[layer])
        assert (np.abs(now[fresh]) <= limit).all()
        assert (now[fresh] != before[layer][fresh]).all()
        assert np.array_equal(now[~changed], before[layer][~changed])
        for moments in (net.first_moments, net.second_moments):
            assert (matrix(net, layer, moments)[changed] == 0).all()
        assert np.array_equal(target.dense(layer)[changed], now[changed])
        assert np.array_equal(target.dense(layer)[~changed], of_target[layer][~changed])
        if layer < 2:
            assert (np.abs(net.biases(layer)[into]) <= limit).all()
            assert np.array_equal(net.biases(layer)[~into], biases[layer][~into])
            assert (net.first_moments[net.bias_slots(layer)][into] == 0).all()
            assert (net.second_moments[net.bias_slots(layer)][into] == 0).all()
            assert np.array_equal(target.biases(layer)[into], net.biases(layer)[into])
            assert not np.array_equal(target.biases(layer)[~into], net.biases(layer)[~into])


def test_by_hand() -> None:
    """3 inputs, 2 hidden neurons, 1 output. Neuron 0 is dead: the first and third link lead into it."""
    net = Network([Links(3, 2, 1, np.array([0, 1, 4])), Links.dense(2, 1)], np.random.default_rng(0))
    parameters = net.parameters.copy()
    parameters[net.slots(0).ravel()] = [-1, 2, -3]  # inputs 0 → 0, 0 → 1, 2 → 0
    parameters[net.bias_slots(0)] = [-1, 1]
    parameters[net.slots(1).ravel()] = [5, 7]
    parameters[net.bias_slots(1)] = 9
    net.set_parameters(parameters)
    net.forward(batch_of(np.ones((3, 2), dtype=np.float32)))
    assert recycle(net, [], 0.0, np.random.default_rng(1)) == 1
    first, kept, third = net.parameters[net.slots(0).ravel()]
    assert kept == 2
    assert -1 / np.sqrt(3) <= min(first, third)
    assert max(first, third) <= 1 / np.sqrt(3)
    assert net.biases(0)[1] == 1
    assert net.biases(0)[0] != -1
    assert net.parameters[net.slots(1).ravel()].tolist() == [0, 7]
    assert net.biases(1).tolist() == [9]


def test_a_threshold_takes_dormant_neurons_too_and_nothing_without_any() -> None:
    net = network(Static())
    net.forward(X)
    activity = net.hidden_outputs()[0].mean(axis=1) / net.hidden_outputs()[0].mean()
    assert 0 < (activity <= 0.5).sum() < 16
    of_second = dormant(net.hidden_outputs()[1], 0.5).sum()
    dead = sum(dormant(outputs, 0).sum() for outputs in net.hidden_outputs())
    assert recycle(net, [], 0.5, np.random.default_rng(0)) == (activity <= 0.5).sum() + of_second > dead
    for layer in range(2):
        parameters = net.parameters.copy()
        parameters[net.bias_slots(layer)] = 100  # all alive
        net.set_parameters(parameters)
    net.forward(X)
    before, rng = net.parameters.copy(), np.random.default_rng(0)
    assert recycle(net, [], 0.0, rng) == 0
    assert np.array_equal(net.parameters, before)
    assert rng.random() == np.random.default_rng(0).random()


def test_weights_are_as_large_as_sparse_init_asks() -> None:
    largest = {}
    for sparse_init in (False, True):
        rng = np.random.default_rng(0)
        net = Network(wire((64, 64, 64, 1), rng, rule=SET(), sparsity=0.9), rng, sparse_init=sparse_init)
        kill(net, 1, list(range(64)))
        net.forward(batch_of(rng.normal(size=(64, 9)).astype(np.float32)))
        recycle(net, [], 0.0, rng)
        largest[sparse_init] = np.abs(net.weights(1)).max()
    assert largest[False] <= 1 / 8 < largest[True]


@pytest.mark.parametrize("block", [1, 2, 4])
def test_a_network_with_killed_neurons_recovers(block: int) -> None:
    """Half of the first layer has lost its inputs and is dead: with recycling and a minimum of links they come back."""
    rng = np.random.default_rng(0)
    x = batch_of(rng.normal(size=(6, 64)).astype(np.float32))
    y = batch_of((x.array[:1] * x.array[1:2]).copy())
    alive, losses = {}, {}
    for recycles in (False, True):
        rng = np.random.default_rng(3)
        links = Links(6, 16, block, np.concatenate([np.arange(8 // block) + i * (16 // block) for i in range(6)]))
        layers = [links, *wire((16, 16, 1), rng, rule=SET(), sparsity=0.3, block=1)]
        net = Network(layers, rng)
        kill(net, 0, list(range(8, 16)))
        for update in range(1, 1501):
            ((loss, _),) = regress_each([net], x, y, Adam(weight_decay=2e-4))
            if update % 100 == 0:
                net.adapt(SET(eta=0.2, min_links=2), rng)
                if recycles:
                    recycle(net, [], 0.0, rng)
                assert net.counts[0] == 48
        net.forward(x)
        alive[recycles] = 16 - dormant(net.hidden_outputs()[0], 0).sum()
        losses[recycles] = loss
    assert alive[False] <= 8
    assert alive[True] >= 14
    assert np.isfinite(losses[True])
