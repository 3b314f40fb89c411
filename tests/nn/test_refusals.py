"""What is refused changes nothing: networks work on as they were."""

from pathlib import Path

import numpy as np
import pytest

from rewirl import _core
from rewirl.nn import Batch, Network, Target
from rewirl.topology import SET

from .oracle import check_pass, normal
from .test_bad_input import FLOATS, links, refuses, small


def test_a_network_works_on_after_refusals():
    net = small()
    rng = np.random.default_rng(1)
    target = Target(net)
    net.forward(Batch(6, 7))
    for call in (
        lambda: net.forward(Batch(5, 2)),
        lambda: net.backward(Batch(3, 2)),
        lambda: net.rewire(0, links(6, 8, 2, 9)),
        lambda: net._core.rewire(0, np.arange(10)[::-1].copy(), np.arange(10)),
        lambda: net._core.rewire(0, net.links(0).places[:2], net.links(0).places[-2:]),
        lambda: target.update(2),
        lambda: target.forward(Batch(7, 2)),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    check_pass(net, normal(rng, 6, 7), normal(rng, 3, 7))


@pytest.mark.skipif(
    Path("/proc/sys/vm/overcommit_memory").exists()
    and Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "1",
    reason="this system gives memory that it has not",
)
def test_a_batch_that_no_memory_has_leaves_the_network_as_it_was():
    net = _core.Network([(1, 1, 1, np.arange(1)), (1, 65535, 1, np.arange(65535))])
    net.forward(Batch(1, 4))
    for _ in range(2):
        with pytest.raises(MemoryError):
            net.forward(Batch(1, 2**22))  # a terabyte of outputs
    net.backward(Batch(65535, 4), True, 0, 0)


def test_the_core_takes_no_extra_link_where_there_is_one():
    net = small()
    refused, taken = "extra link 0 of a target is also a link of its network", net.links(0).places[:1]
    refuses(ValueError, refused, Target(net)._core.set_extra, 0, taken, np.ones(2, FLOATS))


def test_own_outputs_are_no_inputs():
    rng = np.random.default_rng(0)
    net = Network([links(8, 8)], rng)
    target, x = Target(net), Batch(8, 5)
    for goes in (net, target):
        refuses(ValueError, "own output, which forward overwrites", goes.forward, goes.forward(x))
    net.forward(x)
    dx = net.backward(Batch(8, 5), inputs=(0, 8))
    net.forward(x)
    refuses(ValueError, "which backward overwrites: give it a copy", net.backward, dx, inputs=(0, 8))
    deep = Network([links(8, 8), links(8, 8)], rng)
    refuses(ValueError, "own output, which forward overwrites", deep.forward, deep.forward(x))


def test_what_a_forward_with_nan_left_behind_the_rows_is_not_seen():
    net = Network([links(4, 4)], np.random.default_rng(0))
    other = Network([links(4, 4)], np.random.default_rng(0))
    other.set_parameters(np.full(len(other.parameters), np.nan, FLOATS))
    x = other.forward(Batch(4, 5))
    x.array[...] = 1
    dy = Batch(4, 5)
    dy.array[...] = 1
    net.forward(x)
    net.backward(dy)
    np.testing.assert_array_equal(net.gradients, 5)


def test_an_adaptation_or_a_state_that_is_refused_changes_no_layer():
    rng = np.random.default_rng(0)
    net = Network([links(6, 8, 2, 10), links(8, 3, 1, 12)], rng)
    target = Target(net)
    values = net.parameters.copy()
    values[net.slots(1)[0]] = np.nan
    net.set_parameters(values)
    before, known = net.state(), target.state()
    refuses(ValueError, "is NaN", net.adapt, SET(eta=0.3), rng)
    taken = net.links(1).places[:1]
    wrong = {"extra_places.1": taken, "extra_weights.1": np.ones(1, FLOATS), "bias.0": known["bias.0"] + 1}
    refuses(ValueError, f"extra_places.1 has {taken[0]}, which is also a link", target.load_state, {**known, **wrong})
    for was, now in ((before, net.state()), (known, target.state())):
        for name, value in was.items():
            np.testing.assert_array_equal(value, now[name])
