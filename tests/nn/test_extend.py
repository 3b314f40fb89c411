"""Windows of n-step returns against a plain loop over episodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Batch, extend, gather

N_OBS, N_ACT = 3, 2
REWARD = N_OBS + N_ACT
WIDTH = REWARD + 2 + N_OBS
seeds = st.integers(0, 2**32 - 1)


def episodes(rng, count, apart=1):
    """Records of episodes that end by a termination or by a time limit, and which record continues which: `apart`
    environments take turns."""
    records = rng.standard_normal((count, WIDTH)).astype(np.float32)
    records[:, REWARD + 1] = 0
    continues = np.zeros(count, dtype=bool)
    for i in range(count):
        end = rng.random()
        if end < 0.15:
            records[i, REWARD + 1] = 1
        elif end < 0.75 and i + apart < count:
            records[i + apart, :N_OBS] = records[i, REWARD + 2 :]
            continues[i] = True
    return records, continues


@given(
    seed=seeds,
    n=st.integers(1, 7),
    size=st.integers(1, 40),
    slots=st.integers(2, 60),
    extra=st.integers(0, 50),
    apart=st.integers(1, 5),
)
def test_windows(seed, n, size, slots, extra, apart):
    rng = np.random.default_rng(seed)
    count = slots + extra if extra else int(rng.integers(1, slots + 1))  # wrapped around, or not yet full
    history, continues = episodes(rng, count, apart)
    records = np.zeros((slots, WIDTH), dtype=np.float32)
    for i in range(count):
        records[i % slots] = history[i]
    known = np.arange(max(0, count - slots), count)
    chosen = rng.choice(known, size)
    out = Batch(WIDTH, size)
    gather(records, chosen % slots, 0, out)
    gamma = 0.9
    extend(records, chosen % slots, (count - 1) % slots, REWARD, n, gamma, out, apart)
    for column, first in enumerate(chosen):
        last, total, discount = first, float(history[first, REWARD]), 1.0
        while last + apart < count and (last - first) // apart + 1 < n and continues[last]:
            last += apart
            discount *= gamma
            total += discount * float(history[last, REWARD])
        got = out.array[:, column]
        np.testing.assert_array_equal(got[:REWARD], history[first, :REWARD])
        assert got[REWARD] == pytest.approx(total, rel=1e-6, abs=1e-6)
        assert got[REWARD + 1] == pytest.approx(1 - discount * (1 - history[last, REWARD + 1]), abs=1e-7)
        np.testing.assert_array_equal(got[REWARD + 2 :], history[last, REWARD + 2 :])


def test_one_step_changes_nothing():
    rng = np.random.default_rng(0)
    records, _ = episodes(rng, 50)
    chosen, out = rng.integers(0, 50, 20), Batch(WIDTH, 20)
    gather(records, chosen, 0, out)
    extend(records, chosen, 49, REWARD, 1, 0.99, out)
    np.testing.assert_array_equal(out.array, records[chosen].T)


def test_records_that_cannot_follow_each_other_are_refused():
    records, _ = episodes(np.random.default_rng(0), 50)
    for newest, apart in ((49, 0), (49, -1), (50, 1), (-1, 1)):
        with pytest.raises(ValueError, match=f"the newest record is {newest} of 50, .* are {apart} apart"):
            extend(records, np.array([0]), newest, REWARD, 3, 0.99, Batch(WIDTH, 1), apart)


@pytest.mark.parametrize(
    ("chosen", "size", "reward", "sentence"),
    [
        ([50], 1, REWARD, "record 50 of a replay that has 50"),
        ([-1], 1, REWARD, "record -1 of a replay that has 50"),
        ([0, 1], 1, REWARD, "2 records for a batch of 1"),
        ([0], 1, WIDTH - 2, "do not fit"),
        ([0], 1, -1, "do not fit"),
        ([0], 1, 0, "do not fit"),
    ],
)
def test_what_does_not_fit_is_refused(chosen, size, reward, sentence):
    records, _ = episodes(np.random.default_rng(0), 50)
    with pytest.raises(ValueError, match=sentence):
        extend(records, np.array(chosen), 49, reward, 3, 0.99, Batch(WIDTH, size))
