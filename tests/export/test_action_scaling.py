"""The action box in float32 alone: its ends are met exactly, and nothing leaves it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rewirl.export.action_scaling import box_in_float32

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite).filter(lambda ends: ends[0] != ends[1]), min_size=1, max_size=4))
def test_ends_are_met_exactly(boxes):
    low, high = np.sort(np.array(boxes, dtype=np.float32), axis=1).T
    center, half = box_in_float32(low, high)
    assert np.isfinite(half).all()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.clip(center - half, low, high), low)
        np.testing.assert_array_equal(np.clip(center + half, low, high), high)


@given(st.floats(-1, 1, width=32))
def test_a_box_of_minus_one_to_one_changes_nothing(t):
    center, half = box_in_float32(np.float32([-1]), np.float32([1]))
    assert (center + half * np.float32(t))[0] == np.float32(t)
