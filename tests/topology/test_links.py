"""A layer's wiring: places, CSR, and every way to be refused."""

import doctest
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.topology import Links, links
from rewirl.topology._checks import BLOCKS, MAX_WIDTH


def places(*values):
    return np.array(values, dtype=np.int64)


@st.composite
def wirings(draw, max_width=12):
    """Any Links, from no link to all."""
    block = draw(st.sampled_from(BLOCKS))
    n_in = draw(st.integers(1, max_width))
    n_blocks = draw(st.integers(1, max(1, max_width // block)))
    chosen = draw(st.sets(st.integers(0, n_in * n_blocks - 1)))
    return Links(n_in, n_blocks * block, block, places(*sorted(chosen)))


def mask(wiring):
    """The dense oracle: 1 where there is a link, rows are outputs."""
    dense = np.zeros((wiring.n_out, wiring.n_in), dtype=int)
    for place in wiring.places.tolist():
        i, o = divmod(place, wiring.n_out // wiring.block)
        dense[o * wiring.block : (o + 1) * wiring.block, i] = 1
    return dense


@pytest.mark.parametrize(
    ("n_in", "n_out", "block", "taken", "inputs", "output_blocks", "n_places", "count"),
    [
        (3, 2, 1, (0, 3, 4), [0, 1, 2], [0, 1, 0], 6, 3),
        (2, 4, 2, (1, 2), [0, 1], [1, 0], 4, 4),
        (2, 8, 4, (0, 1, 3), [0, 0, 1], [0, 1, 1], 4, 12),
        (5, 4, 4, (4,), [4], [0], 5, 4),
        (1, 1, 1, (0,), [0], [0], 1, 1),
        (2, 3, 1, (), [], [], 6, 0),
    ],
)
def test_a_place_is_input_times_output_blocks_plus_output_block(
    n_in, n_out, block, taken, inputs, output_blocks, n_places, count
):
    wiring = Links(n_in, n_out, block, places(*taken))
    assert wiring.inputs.tolist() == inputs
    assert wiring.output_blocks.tolist() == output_blocks
    assert (wiring.n_places, wiring.blocks, wiring.count) == (n_places, len(taken), count)
    assert wiring.n_free == n_places - len(taken)
    assert wiring.density == count / (n_in * n_out)
    assert wiring.sparsity == pytest.approx(1 - count / (n_in * n_out))


@pytest.mark.parametrize(("n_out", "block"), [(256, BLOCKS[-1]), (12, 4), (6, 2), (1, 1), (7, 1)])
def test_dense_takes_every_place_in_the_largest_blocks_that_fit(n_out, block):
    dense = Links.dense(3, n_out)
    assert (dense.block, dense.count, dense.n_free, dense.sparsity) == (block, 3 * n_out, 0, 0.0)


def test_the_widest_layer_has_sixteen_bit_indices():
    wiring = Links(MAX_WIDTH, MAX_WIDTH, 1, places(0, MAX_WIDTH**2 - 1))
    assert wiring.inputs.tolist() == wiring.output_blocks.tolist() == [0, MAX_WIDTH - 1]


def test_places_cannot_be_changed_from_inside_or_outside():
    mine = places(0, 3, 4)
    view = mine[:]
    view.flags.writeable = False
    for given_places in (mine, view):
        wiring = Links(3, 2, 1, given_places)
        with pytest.raises(ValueError, match="read-only"):
            wiring.places[0] = 1
        mine[0] = 1
        assert wiring.places.tolist() == [0, 3, 4]
        mine[0] = 0
    assert mine.flags.writeable
    with pytest.raises(FrozenInstanceError):
        wiring.n_in = 4


def test_places_are_kept_contiguous_and_plain_and_not_copied_for_nothing():
    strided = np.arange(12)[::2]
    wiring = Links(6, 2, 1, strided)
    assert wiring.places.flags.c_contiguous
    assert wiring.places.tolist() == [0, 2, 4, 6, 8, 10]
    assert Links(6, 2, 1, wiring.places).places is wiring.places


def test_numpy_integers_become_ints():
    wiring = Links(np.int32(3), np.uint16(2), np.int64(1), places(0))
    assert [type(x) for x in (wiring.n_in, wiring.n_out, wiring.block)] == [int, int, int]


def test_equal_wirings_are_equal():
    one = Links(2, 4, 2, places(0, 3))
    assert one == Links(2, 4, 2, places(0, 3))
    assert hash(one) == hash(Links(2, 4, 2, places(0, 3)))
    for other in (Links(2, 4, 2, places(0, 2)), Links(4, 2, 2, places(0, 3)), Links(2, 4, 1, places(0, 3))):
        assert one != other
        assert hash(one) != hash(other)
    assert one != "links"


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"n_in": 0}, ValueError, f"n_in must be from 1 to {MAX_WIDTH}, not 0"),
        ({"n_in": MAX_WIDTH + 1}, ValueError, f"n_in must be from 1 to {MAX_WIDTH}, not {MAX_WIDTH + 1}"),
        ({"n_out": -4}, ValueError, f"n_out must be from 1 to {MAX_WIDTH}, not -4"),
        ({"n_in": 3.0}, TypeError, "n_in must be a whole number, not 3.0"),
        ({"n_out": True}, TypeError, "n_out must be a whole number, not True"),
        ({"block": "1"}, TypeError, "block must be a whole number, not '1'"),
        ({"block": 3}, ValueError, f"or {BLOCKS[-1]}, not 3"),
        ({"block": 0}, ValueError, "block must be 1, 2"),
        ({"block": 4}, ValueError, "block 4 does not divide a layer of 6 outputs: 1 or 2 would"),
        ({"block": 2, "n_out": 7}, ValueError, "block 2 does not divide a layer of 7 outputs: 1 would"),
        (
            {"block": 4, "n_out": 10},
            ValueError,
            "block 4 does not divide a layer of 10 outputs: 1 or 2 would",
        ),
        ({"places": [0, 3]}, TypeError, "positions must be an array of int64, not a list"),
        ({"places": np.array([0.0])}, TypeError, "positions must be an array of int64, not one of float64"),
        ({"places": np.array([0], np.int32)}, TypeError, "must be an array of int64, not one of int32"),
        ({"places": np.array([[0, 1]])}, ValueError, "positions must have one dimension, not the shape (1, 2)"),
        ({"places": places(-1, 2)}, ValueError, "position -1 does not exist: this layer has the positions 0 to 17"),
        ({"places": places(0, 18)}, ValueError, "position 18 does not exist: this layer has the positions 0 to 17"),
        (
            {"places": places(0, 9), "block": 2},
            ValueError,
            "position 9 does not exist: this layer has the positions 0 to 8",
        ),
        (
            {"places": places(1, 5, 4)},
            ValueError,
            "position 4 is listed after 5: positions must be sorted ascending",
        ),
        ({"places": places(1, 5, 5)}, ValueError, "position 5 is listed twice: every position must be there once"),
    ],
)
def test_wrong_links_are_refused_with_what_would_be_right(changed, error, message):
    right = {"n_in": 3, "n_out": 6, "block": 1, "places": places(0, 3)}
    with pytest.raises(error, match=re.escape(message)):
        Links(**(right | changed))


def test_the_places_at_both_ends_are_right():
    assert Links(3, 6, 1, places(0, 17)).blocks == Links(3, 6, 2, places(0, 8)).blocks == 2


@given(wirings())
def test_the_nth_free_places_are_the_ones_not_taken(wiring):
    free = np.setdiff1d(np.arange(wiring.n_places), wiring.places)
    assert wiring.nth_free(np.arange(wiring.n_free)).tolist() == free.tolist()
    assert wiring.nth_free(np.arange(wiring.n_free)[::-1]).tolist() == free[::-1].tolist()


@pytest.mark.parametrize(
    ("wiring", "indptr", "columns"),
    [
        (Links(3, 2, 1, places(0, 3, 4)), [0, 2, 3], [0, 2, 1]),
        (Links(2, 4, 2, places(1, 2, 3)), [0, 1, 2, 4, 6], [1, 1, 0, 1, 0, 1]),
        (Links(2, 3, 1, places(1)), [0, 0, 1, 1], [0]),
        (Links(2, 2, 1, places()), [0, 0, 0], []),
        (Links.dense(2, 2), [0, 2, 4], [0, 1, 0, 1]),
    ],
)
def test_csr_by_hand(wiring, indptr, columns):
    starts, cols = wiring.csr()
    assert (starts.dtype, cols.dtype) == (np.int32, np.int32)
    assert (starts.tolist(), cols.tolist()) == (indptr, columns)


@given(wirings())
def test_csr_is_the_mask_row_by_row_and_reads_back(wiring):
    indptr, columns = wiring.csr()
    rows, cols = np.nonzero(mask(wiring))
    assert columns.tolist() == cols.tolist()
    assert np.diff(indptr).tolist() == np.bincount(rows, minlength=wiring.n_out).tolist()
    assert Links.from_csr(wiring.n_in, wiring.n_out, indptr, columns, wiring.block) == wiring
    assert Links.from_csr(wiring.n_in, wiring.n_out, indptr, columns).count == wiring.count


def test_csr_of_the_last_rows_of_the_widest_layer():
    # input 0 reaches rows 256 and the last, input 1 rows 1 and the last: more than a byte tells them apart
    wiring = Links(2, MAX_WIDTH, 1, places(256, MAX_WIDTH - 1, MAX_WIDTH + 1, 2 * MAX_WIDTH - 1))
    indptr, columns = wiring.csr()
    assert columns.tolist() == [1, 0, 0, 1]
    assert indptr[[1, 2, 256, 257, -2, -1]].tolist() == [
        0,
        1,
        1,
        2,
        2,
        4,
    ]
    assert Links.from_csr(2, MAX_WIDTH, indptr, columns.astype(np.uint16)) == wiring


def test_more_links_than_32_bits_count_are_refused_as_csr():
    wiring = Links(1, 1, 1, places(0))
    object.__setattr__(wiring, "places", np.broadcast_to(np.int64(0), 2**31))  # no machine has a real one
    with pytest.raises(ValueError, match="2147483648 links are too many for 32-bit CSR: at most 2147483647 fit"):
        wiring.csr()


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"indptr": [0, 2, 3, 4, 4]}, TypeError, "indptr must be an array of integers, not a list"),
        ({"columns": np.array([0.0])}, TypeError, "columns must be an array of integers, not one of float64"),
        ({"columns": places(0)[None]}, ValueError, "columns must have one dimension, not the shape (1, 1)"),
        ({"indptr": places(0, 2, 3, 4)}, ValueError, "indptr has 4 entries: 4 outputs need 5"),
        ({"indptr": places(1, 2, 3, 4, 4)}, ValueError, "indptr starts at 1: it must start at 0"),
        ({"indptr": places(0, 2, 1, 4, 4)}, ValueError, "indptr falls at row 1: it must never fall"),
        (
            {"indptr": places(0, 2, 3, 4, 5)},
            ValueError,
            "indptr ends at 5 but there are 4 columns: they must agree",
        ),
        (
            {"columns": places(0, 2, 1)},
            ValueError,
            "indptr ends at 4 but there are 3 columns: they must agree",
        ),
        ({"columns": places(0, 2, 3, 0)}, ValueError, "row 1 has column 3: columns must be from 0 to 2"),
        ({"columns": places(0, 2, 1, -1)}, ValueError, "row 2 has column -1: columns must be from 0 to 2"),
        (
            {"columns": np.array([0, 2**64 - 1, 1, 1], np.uint64)},
            ValueError,
            "row 0 has column 18446744073709551615",
        ),
        (
            {"columns": places(2, 0, 1, 1)},
            ValueError,
            "row 0 has column 0 after 2: columns must be sorted ascending",
        ),
        (
            {"columns": places(2, 2, 1, 1)},
            ValueError,
            "row 0 has column 2 twice: every link must be there once",
        ),
        ({"block": 3}, ValueError, "block must be 1, 2"),
        ({"n_in": 0}, ValueError, f"n_in must be from 1 to {MAX_WIDTH}, not 0"),
        (
            {"block": 2},
            ValueError,
            "input 0 reaches 1 of the outputs 0 to 1: with block 2 it must reach all of them or none",
        ),
        (
            {"block": 2, "indptr": places(0, 1, 2, 3, 3), "columns": places(0, 0, 1)},
            ValueError,
            "input 1 reaches 1 of the outputs 2 to 3: with block 2 it must reach all of them or none",
        ),
    ],
)
def test_wrong_csr_is_refused_before_a_kernel_sees_it(changed, error, message):
    right = {"n_in": 3, "n_out": 4, "indptr": places(0, 2, 3, 4, 4), "columns": places(0, 2, 1, 1)}
    assert Links.from_csr(**right).count == 4
    with pytest.raises(error, match=re.escape(message)):
        Links.from_csr(**(right | changed))


def test_equal_columns_in_neighbouring_rows_are_not_twice():
    assert Links.from_csr(2, 2, np.array([0, 1, 2]), np.array([1, 0])).places.tolist() == [1, 2]


def test_the_examples_in_the_docstrings_run():
    examples = doctest.testmod(links)
    assert examples.failed == 0 < examples.attempted
