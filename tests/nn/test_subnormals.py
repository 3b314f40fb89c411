"""Subnormal numbers are flushed to zero inside the kernels, and nowhere else."""

import threading

import numpy as np
import pytest

from rewirl.nn import Adam, Batch, Network, RandomStream, Target, batch_of, gather, set_threads
from rewirl.topology import Links, Static, wire

from .oracle import normal, rewired, some_links

pytestmark = pytest.mark.usefixtures("each_isa", "keep_threads")

TINY = np.float32(1e-20)


def python_keeps_subnormals():
    """Both ways: a subnormal as an operand, and one as a result."""
    operand, result = np.float32(1e-40) * np.float32(1), TINY * TINY
    vector = np.full(64, TINY) * TINY
    return operand != 0 and result != 0 and (vector != 0).all() and 5e-324 * 1.0 != 0


def every_entry(net, target):
    rng = np.random.default_rng(0)
    n_in, n_out = net.sizes[0], net.sizes[-1]
    net.forward(batch_of(normal(rng, n_in, 9)))
    yield "forward"
    net.backward(batch_of(normal(rng, n_out, 9)), inputs=(0, n_in))
    yield "backward"
    net.step(Adam())
    yield "step"
    net.act(normal(rng, n_in))
    yield "act"
    net.set_parameters(normal(rng, len(net.parameters)))
    yield "set_parameters"
    net.rewire(0, rewired(net.links(0), rng))
    yield "rewire"
    target.forward(batch_of(normal(rng, n_in, 9)))
    yield "target forward"
    target.update(0.1)
    yield "target update"
    gather(normal(rng, 5, 3), np.zeros(2, dtype=np.int64), 0, Batch(3, 2))
    yield "gather"
    stream = RandomStream(rng)
    stream.integers(9, np.zeros(2, dtype=np.int64))
    yield "integers"
    stream.normal(Batch(3, 2))
    yield "normal"
    with pytest.raises(ValueError, match="features"):
        net.forward(Batch(n_in + 1, 2))
    yield "a refused forward"
    with pytest.raises(ValueError, match="needs a forward"):
        net.backward(Batch(n_out, 2))
    yield "a refused backward"


def test_pythons_own_numbers_stay_as_they_were():
    rng = np.random.default_rng(0)
    net = Network([some_links(6, 9, 1, 20, rng), Links.dense(9, 3)], rng)
    assert python_keeps_subnormals()
    for entry in every_entry(net, Target(net)):
        assert python_keeps_subnormals(), entry


def test_threads_of_the_core_do_not_change_those_of_python():
    set_threads(3)
    rng = np.random.default_rng(0)
    net = Network(wire((64, 256, 256, 6), rng, rule=Static(), sparsity=0.2), rng)
    net.forward(batch_of(normal(rng, 64, 256)))
    assert python_keeps_subnormals()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(python_keeps_subnormals()))
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_forward_and_backward_flush(n):
    """On every thread: the network is large enough to be split."""
    set_threads(n)
    rng = np.random.default_rng(0)
    net = Network([Links.dense(64, 256)], rng)
    values = np.full(len(net.parameters), TINY)
    values[-256:] = 0
    net.set_parameters(values)
    x, dy = batch_of(np.full((64, 256), TINY)), batch_of(np.full((256, 256), TINY))
    assert not net.forward(x).array.any()
    assert not net.backward(dy, inputs=(0, 64)).array.any()
    assert not net.gradients[:-256].any()
    assert not net.act(np.full(64, TINY)).any()


def test_fading_moments_become_zero():
    rng = np.random.default_rng(0)
    net = Network([Links.dense(4, 4)], rng)
    net.gradients[...] = 1
    net.step(Adam())
    net.gradients[...] = 0
    for _ in range(1000):
        net.step(Adam(beta2=0.5))
    assert not net.first_moments.any()
    assert not net.second_moments.any()


def test_fading_links_of_a_target_become_zero():
    rng = np.random.default_rng(0)
    net = Network([some_links(9, 12, 1, 40, rng)], rng)
    target = Target(net)
    net.rewire(0, rewired(net.links(0), rng))
    net.set_parameters(np.zeros(len(net.parameters), dtype=np.float32))
    for _ in range(300):
        target.update(0.5)
    assert target.alive(0) == 0
    assert not target.dense(0).any()
    assert not target.biases(0).any()
