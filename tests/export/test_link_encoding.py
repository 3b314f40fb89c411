"""Links written down in each of the ways, read back by the rules that the C code follows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewirl.export.link_encoding import Encoded, _bitmap, _deltas, _indices, encode
from rewirl.policies import PolicyLayer


def decoded(layer: PolicyLayer, links: Encoded) -> np.ndarray:
    """The matrix (outputs, inputs) that the encoding stands for, entry by entry."""
    matrix = np.zeros((layer.n_out, layer.n_in), dtype=np.float32)
    weights = iter(np.append(layer.weights, 0)[links.order])
    if links.way == "dense":
        for i in range(layer.n_in):
            matrix[:, i] = [next(weights) for _ in range(layer.n_out)]
        return matrix
    counts = links.counts.view("<u2") if links.wide else links.counts
    entries, at = links.links, 0
    for i, count in enumerate(counts.tolist()):
        if links.way == "bitmap":
            n_bytes = (layer.n_out + 7) // 8
            bits = np.unpackbits(entries[i * n_bytes : (i + 1) * n_bytes], bitorder="little")
            outputs = np.flatnonzero(bits).tolist()
            assert len(outputs) == count
        else:
            outputs = entries[at : at + count].tolist()
            at += count
            outputs = np.cumsum(outputs).tolist() if links.way == "deltas" else outputs
        for o in outputs:
            matrix[o, i] += next(weights)
    assert next(weights, None) is None
    return matrix


def layer_of(matrix: np.ndarray) -> PolicyLayer:
    rows, columns = np.nonzero(matrix)
    n_out, n_in = matrix.shape
    indptr = np.searchsorted(rows, np.arange(n_out + 1)).astype(np.int32)
    weights = matrix[rows, columns].astype(np.float32)
    return PolicyLayer(n_in, n_out, indptr, columns.astype(np.int32), weights, np.zeros(n_out, np.float32))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 900), st.floats(0, 1) | st.floats(0, 0.02), st.integers(0, 99))
def test_every_way_reads_back(n_in, n_out, density, seed):
    rng = np.random.default_rng(seed)
    layer = layer_of((rng.random((n_out, n_in)) < density) * rng.uniform(0.1, 1, (n_out, n_in)))
    for links in (_bitmap(layer), _deltas(layer), _indices(layer), encode(layer, 4)):
        np.testing.assert_array_equal(decoded(layer, links), layer.dense())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 700), st.floats(0, 0.99), st.sampled_from([1, 2, 4]))
def test_the_smallest_is_taken(n_in, n_out, density, weight_bytes):
    layer = layer_of(np.random.default_rng(0).random((n_out, n_in)) < density)
    if layer.density < 1:
        ways = [way(layer).bytes(weight_bytes) for way in (_bitmap, _deltas, _indices)]
        assert encode(layer, weight_bytes).bytes(weight_bytes) == min(ways)


@pytest.mark.parametrize(
    ("shape", "density", "way"),
    [
        ((256, 256), 1.0, "dense"),
        ((256, 256), 0.5, "bitmap"),
        ((17, 256), 0.44, "bitmap"),
        ((256, 256), 0.05, "deltas"),
        ((64, 8000), 0.001, "indices"),
    ],
)
def test_what_is_smallest_where(make_layer, shape, density, way):
    assert encode(make_layer(*shape, density, np.random.default_rng(0)), 4).way == way


@pytest.mark.parametrize("gap", [1, 254, 255, 256, 510, 511, 599])
def test_far_links_are_reached_by_steps(gap):
    matrix = np.zeros((600, 2))
    matrix[0, 0] = matrix[gap, 0] = matrix[gap, 1] = 1
    layer = layer_of(matrix)
    links = _deltas(layer)
    np.testing.assert_array_equal(decoded(layer, links), matrix)
    steps = (gap - 1) // 255
    assert len(links.links) == 3 + 2 * steps


def test_counts_above_255_take_two_bytes(make_layer):
    layer = make_layer(3, 700, 0.5, np.random.default_rng(0))
    links = encode(layer, 4)
    assert (links.wide, len(links.counts)) == (True, 6)


def test_a_very_wide_layer_with_few_links_takes_little_memory():
    # its bitmap would take half a gigabyte
    n = 60_000
    indptr = np.minimum(np.arange(n + 1), 1).astype(np.int32)
    one = np.ones(1, np.float32)
    assert encode(PolicyLayer(n, n, indptr, np.array([7], np.int32), one, np.zeros(n, np.float32)), 4).way == "deltas"
