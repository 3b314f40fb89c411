"""Several networks at once: the same bits as one after the other, for any number of threads; errors are said."""

import numpy as np
import pytest

from rewirl.nn import (
    Adam,
    Network,
    Target,
    backward_each,
    batch_of,
    forward_each,
    regress_each,
    set_threads,
    update_each,
)
from rewirl.topology import SET, Dense, wire

from .oracle import normal

pytestmark = pytest.mark.usefixtures("keep_threads")
SIZES = (23, 64, 48, 1)


def critics(rule, n=2, sizes=SIZES):
    rng = np.random.default_rng(3)
    return [Network(wire(sizes, rng, rule=rule, sparsity=0.5), rng) for _ in range(n)]


def life(rule, together, n=2):
    """What some networks and their targets compute in three updates, as bytes."""
    rng = np.random.default_rng(4)
    nets = critics(rule, n)
    targets = [Target(net) for net in nets]
    adam, out = Adam(weight_decay=2e-4), []
    for _ in range(3):
        x, y = batch_of(normal(rng, SIZES[0], 100)), batch_of(normal(rng, 1, 100))
        dys = [batch_of(normal(rng, SIZES[-1], 100)) for _ in nets]
        if together:
            seen = forward_each(targets, x) + forward_each(nets, x)
            out += [batch.array.copy() for batch in seen + backward_each(nets, dys, inputs=(17, 23))]
            regress_each(nets, x, y, adam)
            update_each(targets, 0.05)
        else:
            out += [part.forward(x).array.copy() for part in (*targets, *nets)]
            out += [net.backward(dy, inputs=(17, 23)).array.copy() for net, dy in zip(nets, dys, strict=True)]
            for net, target in zip(nets, targets, strict=True):
                net.backward(batch_of((net.forward(x).array - y.array) * np.float32(2 / 100)))
                net.step(adam)
                target.update(0.05)
        for net in nets:
            net.adapt(rule, rng)
    out += [array for part in (*nets, *targets) for array in part.state().values()]
    return b"".join(np.ascontiguousarray(array).tobytes() for array in out)


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize("rule", [Dense(), SET(eta=0.2)], ids=lambda rule: rule.name)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_together_gives_the_bits_of_one_after_the_other(rule, n):
    set_threads(1)
    alone = life(rule, together=False, n=n)
    for threads in (1, 2, 3):
        set_threads(threads)
        assert life(rule, together=True, n=n) == alone, f"{threads} threads"


@pytest.mark.parametrize("threads", [1, 2])
def test_one_that_fails_is_said_and_the_others_are_done(threads):
    set_threads(threads)
    fits, other = critics(Dense(), 1)[0], critics(Dense(), 1, sizes=(5, 8, 1))[0]
    x = batch_of(normal(np.random.default_rng(0), 23, 10))
    for nets in ([fits, other], [other, fits]):
        with pytest.raises(ValueError, match="takes 5 features, the batch has 23"):
            forward_each(nets, x)
    with pytest.raises(ValueError, match="needs a forward"):
        backward_each([fits, other], [batch_of(np.zeros((1, 10), np.float32))] * 2)
    fits.step(Adam())
    dy = batch_of(np.ones((1, 10), np.float32))
    with pytest.raises(ValueError, match="needs a forward"):  # with the weights of now
        fits.backward(dy)
    with pytest.raises(ValueError, match="takes 5 features"):
        forward_each([other, fits], x)
    fits.backward(dy)  # so it went forward, although the one before it did not


def test_a_network_can_be_there_once():
    net, other = critics(Dense())
    x = batch_of(normal(np.random.default_rng(0), 23, 10))
    with pytest.raises(ValueError, match="more than once"):
        forward_each([net, other, net], x)
    with pytest.raises(ValueError, match="more than once"):
        regress_each([net, net], x, batch_of(np.zeros((1, 10), np.float32)), Adam())


def test_gradients_must_be_as_many_as_networks():
    nets = critics(Dense())
    forward_each(nets, batch_of(normal(np.random.default_rng(0), 23, 10)))
    with pytest.raises(ValueError, match="2 networks need as many gradients at their outputs, not 1"):
        backward_each(nets, [batch_of(np.zeros((1, 10), np.float32))])
