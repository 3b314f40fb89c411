"""A policy's layer: the sums, the conversion from a network, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rewirl.limits import MAX_WIDTH
from rewirl.nn import Network, batch_of
from rewirl.policies import PolicyLayer
from rewirl.policies import layer as layer_module
from rewirl.topology import SET, Dense, wire


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


GOOD = {"n_in": 3, "n_out": 2, "indptr": ints(0, 2, 3), "columns": ints(0, 2, 1)} | {
    "weights": floats(1, 2, 3),
    "bias": floats(0, 0),
}


@pytest.mark.parametrize("density", [0.0, 0.01, 0.03, 0.04, 0.5, 1.0])
def test_by_links_and_by_matrix_agree_with_float64(make_layer, density):
    rng = np.random.default_rng(1)
    layer = make_layer(40, 33, density, rng)
    x = rng.standard_normal((20, 40)).astype(np.float32)
    truth = x.astype(np.float64) @ layer.dense().T + layer.bias
    assert (layer._matrix is None) == (layer.density < layer_module.DENSE_FROM)
    np.testing.assert_allclose(layer(x), truth, atol=1e-5)
    np.testing.assert_allclose([layer(row) for row in x], truth, atol=1e-5)


def test_a_very_wide_layer_with_few_links_never_becomes_a_matrix():
    n = MAX_WIDTH  # as a matrix it would take 16 GiB
    indptr = np.minimum(np.arange(n + 1), 1).astype(np.int32)
    layer = PolicyLayer(n, n, indptr, ints(n - 1), floats(2), np.zeros(n, np.float32))
    assert layer(np.ones(n, np.float32))[0] == 2
    assert layer(np.ones((2, n), np.float32)).shape == (2, n)


@pytest.mark.parametrize(
    ("rule", "options"),
    [(Dense(), {}), (SET(), {"sparsity": 0.5}), (SET(), {"lambdas": (1, 2)}), (SET(), {"sparsity": 0.6, "block": 4})],
)
def test_from_network_says_what_the_network_says(rule, options):
    rng = np.random.default_rng(2)
    network = Network(wire((11, 24, 16, 3), rng, rule=rule, **options), rng)
    network.adapt(rule, rng)
    layers = [PolicyLayer.from_network(network, i) for i in range(3)]
    x = rng.standard_normal((50, 11)).astype(np.float32)
    h = x
    for layer in layers:
        h = layer(h)
        if layer is not layers[-1]:
            h = np.maximum(h, 0)
    np.testing.assert_allclose(h, network.forward(batch_of(np.ascontiguousarray(x.T))).array.T, atol=1e-6)
    assert tuple(layer.links for layer in layers) == network.counts


def test_from_network_is_a_copy():
    rng = np.random.default_rng(3)
    network = Network(wire((3, 8, 2), rng, rule=Dense()), rng)
    layer = PolicyLayer.from_network(network, 0)
    before = layer.bias.copy(), layer.weights.copy()
    network.set_parameters(np.zeros_like(network.parameters))
    np.testing.assert_array_equal(layer.bias, before[0])
    np.testing.assert_array_equal(layer.weights, before[1])
    assert before[1].any()
    with pytest.raises(ValueError, match="read-only"):
        layer.weights[0] = 1


def test_head_keeps_the_first_outputs(make_layer):
    layer = make_layer(9, 6, 0.4, np.random.default_rng(4))
    np.testing.assert_array_equal(layer.head(2).dense(), layer.dense()[:2])
    np.testing.assert_array_equal(layer.head(2).bias, layer.bias[:2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ints(0, 3, 1)}, "column 3: columns must be from 0 to 2"),
        ({"columns": ints(0, -1, 1)}, "column -1: columns must be from 0 to 2"),
        ({"columns": ints(2, 0, 1)}, "column 0 after 2: columns must be sorted"),
        ({"columns": ints(2, 2, 1)}, "column 2 twice"),
        ({"indptr": ints(0, 2, 4)}, "ends at 4 but there are 3"),
        ({"indptr": ints(1, 2, 3)}, "must start at 0"),
        ({"indptr": ints(0, 3, 2)}, "indptr"),
        ({"indptr": ints(0, 3)}, "2 outputs need 3"),
        ({"weights": floats(1, np.nan, 3)}, r"weights\[1\] is nan: every number must be finite"),
        ({"weights": floats(1, 2)}, "weights has 2 numbers: 3 links and 2 outputs need 3"),
        ({"bias": floats(1, np.inf)}, r"bias\[1\] is inf"),
        ({"bias": floats(1)}, "bias has 1 numbers"),
        ({"n_in": 0}, "n_in must be from 1"),
        ({"n_in": MAX_WIDTH + 1}, f"n_in must be from 1 to {MAX_WIDTH}"),
    ],
)
def test_refusals(change, message):
    PolicyLayer(**GOOD)
    with pytest.raises(ValueError, match=message):
        PolicyLayer(**GOOD | change)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.ones(3)},
        {"columns": np.array([0, 2, 1])},
        {"bias": [0.0, 0.0]},
        {"weights": np.ones((3, 1), np.float32)},
    ],
)
def test_other_kinds_of_arrays_are_refused(change):
    with pytest.raises(TypeError, match=r"must be a one-dimensional array of (float32|int32), not"):
        PolicyLayer(**GOOD | change)
