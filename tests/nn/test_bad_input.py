"""What cannot be is refused with one sentence, before any work; nothing crashes, and the network works on."""

import re

import numpy as np
import pytest

from rewirl import _core
from rewirl.nn import Adam, Batch, Network, Target, batch_of
from rewirl.topology import Links

from .oracle import some_links

FLOATS, INTS = np.float32, np.int64
NONE = np.empty(0, dtype=INTS)


def links(n_in, n_out, block=1, blocks=None):
    blocks = n_in * n_out // block if blocks is None else blocks
    return some_links(n_in, n_out, block, blocks, np.random.default_rng(0))


def small():
    """Six inputs, eight hidden in blocks of 2 (20 links), three outputs (24 links)."""
    return make(links(6, 8, 2, 10), links(8, 3))


@pytest.fixture
def net():
    return small()


def refuses(error, sentence, call, *arguments, **options):
    with pytest.raises(error, match=re.escape(sentence)):
        call(*arguments, **options)


def make(*layers):
    return Network(list(layers), np.random.default_rng(0))


# ---------------------------------------------------------- making networks


def test_networks_that_cannot_be():
    refuses(ValueError, "a network needs at least one layer", make)
    refuses(ValueError, "layer 1 takes 4 features but layer 0 gives 3", make, links(5, 3), links(4, 2))
    refuses(ValueError, "a layer needs at least one link", make, Links(3, 4, 1, np.array([], dtype=INTS)))


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        ((0, 3, 1), "a layer's widths must be from 1 to 65535, not 0 and 3"),
        ((3, -1, 1), "a layer's widths must be from 1 to 65535, not 3 and -1"),
        ((65536, 3, 1), "a layer's widths must be from 1 to 65535, not 65536 and 3"),
        ((2**40, 3, 1), f"a layer's widths must be from 1 to 65535, not {2**40} and 3"),
        ((3, 6, 4), "block 4 does not divide the layer's width 6"),
        ((3, 7, 2), "block 2 does not divide the layer's width 7"),
        ((3, 9, 3), "block must be 1, 2 or 4, not 3"),
        ((3, 8, 0), "block must be 1, 2 or 4, not 0"),
        ((3, 8, -2), "block must be 1, 2 or 4, not -2"),
    ],
)
def test_the_core_trusts_no_shape(layer, sentence):
    refuses(ValueError, sentence, _core.Network, [(*layer, np.arange(1))])


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ([0, 12], "link 1 is at position 12, outside 0 to 11"),
        ([-1, 3], "link 0 is at position -1, outside 0 to 11"),
        ([0, 2**62], f"link 1 is at position {2**62}, outside 0 to 11"),
        ([3, 2], "positions must be ascending and unique; number 1 is not"),
        ([1, 5, 5], "positions must be ascending and unique; number 2 is not"),
        ([], "a layer needs at least one link"),
    ],
)
def test_the_core_trusts_no_places(places, sentence):
    places = np.array(places, dtype=INTS)
    refuses(ValueError, sentence, _core.Network, [(3, 4, 1, places)])
    if len(places):
        core = _core.Network([(3, 4, 1, np.arange(4))])
        for dropped, grown in ((places, np.array([9])), (np.array([0]), places)):
            refuses(ValueError, sentence, core.rewire, 0, dropped, grown)
    target = _core.Target(_core.Network([(3, 4, 1, np.array([11]))]))
    if len(places) and places[-1] != 11:
        refuses(ValueError, sentence, target.set_extra, 0, places, np.ones(len(places), dtype=FLOATS))


# --------------------------------------------------------------- computing


def test_inputs_that_do_not_fit(net):
    for takes in (net.forward, Target(net).forward):
        refuses(ValueError, "the network takes 6 features, the batch has 5", takes, Batch(5, 2))
        refuses(
            TypeError, "forward takes a Batch, not a float32 array of shape (6, 2)", takes, np.zeros((6, 2), FLOATS)
        )
        refuses(TypeError, "forward takes a Batch, not NoneType", takes, None)


def test_backward_without_its_forward(net):
    sentence = "backward needs a forward with the present weights before it"
    dy = Batch(3, 2)
    refuses(ValueError, sentence, net.backward, dy)
    for change in (
        lambda: net.step(Adam()),
        lambda: net.set_parameters(net.parameters.copy()),
        lambda: net.rewire(0, net.links(0)),
        lambda: net.load_state(net.state()),
    ):
        net.forward(Batch(6, 2))
        change()
        refuses(ValueError, sentence, net.backward, dy)


def test_gradients_that_do_not_fit(net):
    net.forward(Batch(6, 5))
    refuses(ValueError, "the last forward gave 3 × 5 outputs, dy is 3 × 4", net.backward, Batch(3, 4))
    refuses(ValueError, "the last forward gave 3 × 5 outputs, dy is 2 × 5", net.backward, Batch(2, 5))
    refuses(TypeError, "backward takes a Batch, not a float32 array", net.backward, np.zeros((3, 5), FLOATS))
    for inputs in ((-1, 2), (0, 7), (4, 2), (2**62, 2**62)):
        sentence = f"input features {inputs[0]} to {inputs[1]} of a network that has 6"
        refuses(ValueError, sentence, net.backward, Batch(3, 5), inputs=inputs)
    nothing = net.backward(Batch(3, 5))
    refuses(ValueError, "nothing was asked for", lambda: nothing.array)
    refuses(ValueError, "the network takes 6 features", net.forward, nothing)
    refuses(ValueError, "do not lie in a batch of 0 features", nothing.rows, 0, 0)


def test_observations_that_do_not_fit(net):
    refuses(ValueError, "an observation must have 6 numbers, not 5", net.act, np.zeros(5, FLOATS))
    for wrong in (
        np.zeros(6),
        np.zeros(6, dtype=INTS),
        np.zeros((6, 1), FLOATS),
        np.zeros(12, FLOATS)[::2],
        [0.0] * 6,
        None,
    ):
        refuses(TypeError, "an observation is 6 contiguous float32 numbers, not ", net.act, wrong)


def test_layers_that_do_not_exist(net):
    net.forward(Batch(6, 5))
    for layer in (-1, 2, 2**62):
        for call in (net.links, net.weights, net.biases, net.dense_gradient, Target(net).dense, Target(net).alive):
            refuses(ValueError, f"layer {layer} of a network with 2 layers", call, layer)
        refuses(ValueError, f"layer {layer} of a network with 2 layers", net.rewire, layer, net.links(0))


def test_dense_gradients_before_a_backward(net):
    refuses(ValueError, "the gradients at hidden outputs are gone", net.dense_gradient, 0)
    net.forward(Batch(6, 5))
    refuses(ValueError, "the gradients at hidden outputs are gone", net.dense_gradient, 0)


def test_parameters_that_do_not_fit(net):
    n = len(net.parameters)
    refuses(ValueError, f"parameters must have {n} numbers, not {n - 1}", net.set_parameters, np.zeros(n - 1, FLOATS))
    for wrong in (np.zeros(n), np.zeros((n, 1), FLOATS), np.zeros(2 * n, FLOATS)[::2], [0.0] * n):
        refuses(TypeError, f"parameters are {n} contiguous float32 numbers, not ", net.set_parameters, wrong)


# ----------------------------------------------------------------- batches


def test_batches_that_cannot_be():
    for features, size in ((0, 3), (3, 0), (-1, 3), (3, -(2**62))):
        refuses(ValueError, f"at least one feature and one sample, not {features} × {size}", Batch, features, size)
    for features, size in ((2**60, 1), (1, 2**31), (2**31, 2**31), (2**62, 2**62), (1, 2**63 - 1), (2**63 - 1, 1)):
        refuses(ValueError, f"at most 2^30 features and samples, not {features} × {size}", Batch, features, size)
    with pytest.raises(MemoryError):
        Batch(2**30, 2**30)
    refuses(ValueError, "at least one feature and one sample, not 0 × 3", batch_of, np.zeros((0, 3), FLOATS))
    refuses(
        TypeError, "a batch is a float32 array of shape (features, samples), not float64", batch_of, np.zeros((2, 3))
    )
    refuses(TypeError, "with 1 dimensions", batch_of, np.zeros(3, FLOATS))


def test_rows_that_are_not_there():
    batch = Batch(5, 3)
    for begin, end in ((-1, 2), (0, 6), (3, 3), (4, 2), (2**62, 2**62 + 1)):
        refuses(ValueError, f"rows {begin} to {end} do not lie in a batch of 5 features", batch.rows, begin, end)
    refuses(ValueError, "rows 0 to 3 do not lie in a batch of 2 features", batch.rows(1, 3).rows, 0, 3)


# ------------------------------------------------------------------ wiring


def test_rewirings_that_do_not_fit(net):
    before = net.state()
    refuses(ValueError, "the layer has 20, not 18", net.rewire, 0, links(6, 8, 2, 9))
    refuses(ValueError, "layer 0 is 6 → 8 with block 2", net.rewire, 0, links(6, 8, 1, 20))
    refuses(ValueError, "layer 1 is 8 → 3 with block 1", net.rewire, 1, links(6, 8, 2, 10))
    for wrong in (np.arange(10, dtype=np.int32), np.arange(10.0), np.arange(20)[::2], np.zeros((10, 1), INTS)):
        for dropped, grown in ((wrong, NONE), (NONE, wrong)):
            refuses(TypeError, "rewire(): incompatible function arguments", net._core.rewire, 0, dropped, grown)
    taken = net.links(0).places
    first, second = np.setdiff1d(np.arange(24), taken)[[0, -1]]
    for dropped, grown, sentence in (
        ([taken[0], taken[1]], [first], "positions dropped are 2, grown 1"),
        ([taken[0]], [taken[3]], f"position {taken[3]} cannot grow a link: it has one"),
        ([taken[0]], [taken[0]], f"position {taken[0]} cannot grow a link: it has one"),
        ([first], [second], f"position {first} cannot drop its link: it has none"),
        ([taken[0], second], [first, second], f"position {second} cannot drop its link: it has none"),
    ):
        refuses(ValueError, sentence, net._core.rewire, 0, np.sort(dropped), np.sort(grown))
    after = net.state()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("steps", np.array(-1), "steps must not be negative"),
        ("steps", np.array(1.0), "steps must be int64"),
        ("steps", np.array([1]), "steps must be int64 of shape ()"),
        ("parameters", np.zeros(54, FLOATS), "parameters must be float32 of shape (55,)"),
        ("parameters", np.zeros(55), "parameters must be float32"),
        ("first_moments", np.zeros((55, 1), FLOATS), "first_moments must be float32 of shape (55,)"),
        ("second_moments", np.zeros(0, FLOATS), "second_moments must be float32 of shape (55,)"),
        ("places.0", np.arange(9), "layer 0 has 20 links, the state has 18"),
        ("places.0", np.arange(10)[::-1].copy(), "sorted ascending"),
        ("places.0", np.arange(15, 25), "position 24 does not exist"),
        ("places.0", np.arange(-1, 9), "position -1 does not exist"),
        ("places.1", np.repeat(np.arange(12), 2), "listed twice"),
        ("places.1", None, "the state has no 'places.1'; it has births.0, births.1, first_moments"),
        ("parameters", None, "the state has no 'parameters'"),
    ],
)
def test_states_that_do_not_fit(net, name, value, sentence):
    state = net.state()
    if value is None:
        del state[name]
    else:
        state[name] = value
    refuses(ValueError, sentence, net.load_state, state)
    refuses(
        TypeError, "positions must be an array of int64", net.load_state, {**net.state(), "places.0": np.arange(10.0)}
    )


# ----------------------------------------------------------------- targets


@pytest.mark.parametrize("tau", [-0.1, 1.1, float("nan"), float("inf"), -float("inf"), 1e300])
def test_tau_that_cannot_be(net, tau):
    refuses(ValueError, "tau must be from 0 to 1, not ", Target(net).update, tau)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("weights.0", np.zeros(19, FLOATS), "weights.0 must be float32 of shape (20,)"),
        ("bias.1", np.zeros(3), "bias.1 must be float32 of shape (3,)"),
        ("extra_places.0", np.array([1.5]), "extra_places.0 must be one-dimensional int64"),
        ("extra_places.0", np.zeros((1, 1), INTS), "extra_places.0 must be one-dimensional int64"),
        ("extra_weights.0", np.zeros(1, FLOATS), "extra_weights.0 must be float32 of shape (2,)"),
        ("extra_places.0", np.array([24]), "position 24 does not exist: this layer has the positions 0 to 23"),
        ("extra_places.0", np.array([-1]), "position -1 does not exist: this layer has the positions 0 to 23"),
        ("extra_places.0", "taken", "which is also a link of the network"),
        ("extra_places.0", None, "the state has no 'extra_places.0'"),
    ],
)
def test_target_states_that_do_not_fit(net, name, value, sentence):
    target = Target(net)
    free = np.setdiff1d(np.arange(24), net.links(0).places)[:1]
    state = {**target.state(), "extra_places.0": free, "extra_weights.0": np.ones(2, FLOATS)}
    target.load_state(state)
    before = target.state()
    if value is None:
        del state[name]
    else:
        state[name] = net.links(0).places[:1] if isinstance(value, str) else value
    refuses(ValueError, sentence, target.load_state, state)
    for key, kept in target.state().items():
        np.testing.assert_array_equal(kept, before[key])


# ------------------------------------------------------------------ gather


@pytest.mark.parametrize(
    ("chosen", "first", "features", "sentence"),
    [
        ([0, 1, 5], 0, 2, "record 5 of a replay that has 5"),
        ([0, -1, 1], 0, 2, "record -1 of a replay that has 5"),
        ([0, 1, 2**62], 0, 2, f"record {2**62} of a replay that has 5"),
        ([0, 1], 0, 2, "2 records for a batch of 3"),
        ([0, 1, 2, 3], 0, 2, "4 records for a batch of 3"),
        ([0, 1, 2], 3, 2, "2 columns from number 3 on, of records that have 4"),
        ([0, 1, 2], -1, 2, "2 columns from number -1 on, of records that have 4"),
        ([0, 1, 2], 0, 5, "5 columns from number 0 on, of records that have 4"),
        ([0, 1, 2], 2**63 - 1, 2, f"2 columns from number {2**63 - 1} on, of records that have 4"),
    ],
)
def test_records_that_are_not_there(chosen, first, features, sentence):
    out = Batch(features, 3)
    out.array[...] = 7
    refuses(ValueError, sentence, _core.gather, np.zeros((5, 4), FLOATS), np.array(chosen), first, out)
    assert (out.array == 7).all()


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        (np.zeros((5, 4)), np.zeros(3, INTS)),
        (np.zeros((5, 8), FLOATS)[:, ::2], np.zeros(3, INTS)),
        (np.zeros((4, 5), FLOATS).T, np.zeros(3, INTS)),
        (np.zeros(20, FLOATS), np.zeros(3, INTS)),
        (np.zeros((5, 4), FLOATS), np.zeros(3, np.int32)),
        (np.zeros((5, 4), FLOATS), np.zeros(6, INTS)[::2]),
        (np.zeros((5, 4), FLOATS), np.zeros((3, 1), INTS)),
        (np.zeros((5, 4), FLOATS), [0, 1, 2]),
    ],
)
def test_records_of_another_kind(records, chosen):
    refuses(TypeError, "gather(): incompatible function arguments", _core.gather, records, chosen, 0, Batch(2, 3))
