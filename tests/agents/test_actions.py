"""The action box: exact at its ends, refused where a squashed policy cannot serve it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.agents import ActionBox

bounds = st.floats(-1e6, 1e6, width=32)
wide = st.floats(-1e3, 1e3)


@given(st.lists(st.tuples(bounds, bounds).filter(lambda b: b[0] < b[1]), min_size=1, max_size=5))
def test_the_ends_of_any_box_are_met_exactly(pairs: list[tuple[float, float]]) -> None:
    low, high = (np.array(side, dtype=np.float32) for side in zip(*pairs, strict=True))
    box = ActionBox(low, high)
    ones = np.ones(box.size, dtype=np.float32)
    assert (box.to_env(ones) == high).all()
    assert (box.to_env(-ones) == low).all()
    inside = box.to_env(np.float32(0.37) * ones)
    assert ((low <= inside) & (inside <= high)).all()
    assert (box.from_env(high) == 1).all()
    assert (box.from_env(low) == -1).all()


@given(st.lists(st.tuples(wide, wide).filter(lambda b: b[0] + 0.01 < b[1]), min_size=1, max_size=5))
def test_no_action_is_outside_a_box_of_float64(pairs: list[tuple[float, float]]) -> None:
    low, high = (np.array(side) for side in zip(*pairs, strict=True))
    box = ActionBox(low, high)
    ones = np.ones(box.size, dtype=np.float32)
    for action in (box.to_env(-ones), box.to_env(ones), box.low, box.high):
        assert ((low <= action) & (action <= high)).all()
    assert np.allclose(box.high, high)
    assert np.allclose(box.low, low)


def test_the_environment_may_change_its_action() -> None:
    for box in (ActionBox([-1.0], [1.0]), ActionBox([-2.0], [1.0])):
        action = np.array([0.5], dtype=np.float32)
        given = box.to_env(action)
        given *= 0
        assert action[0] == 0.5


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([-np.inf], [1.0], "unbounded"),
        ([-1.0], [np.nan], "unbounded"),
        ([1.0], [1.0], "below its high"),
        ([1.0, 2.0], [3.0], "per dimension"),
        ([], [], "per dimension"),
    ],
)
def test_refusals(low: list[float], high: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ActionBox(low, high)
