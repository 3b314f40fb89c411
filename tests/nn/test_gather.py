"""From replay records to a feature-major batch, against NumPy's indexing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Batch, gather

from .oracle import normal, seeds


@given(st.integers(1, 200), st.integers(1, 90), st.integers(1, 300), seeds, st.data())
def test_columns_of_chosen_records_become_rows(n_records, width, size, seed, data):
    first = data.draw(st.integers(0, width - 1))
    features = data.draw(st.integers(1, width - first))
    rng = np.random.default_rng(seed)
    records, chosen = normal(rng, n_records, width), rng.integers(0, n_records, size)
    out = Batch(features, size)
    gather(records, chosen, first, out)
    np.testing.assert_array_equal(out.array, records[chosen, first : first + features].T)


@given(st.integers(3, 30), st.integers(1, 50), seeds, st.data())
def test_a_part_of_a_batch_is_filled_and_the_rest_left_alone(features, size, seed, data):
    begin = data.draw(st.integers(0, features - 1))
    end = data.draw(st.integers(begin + 1, features))
    rng = np.random.default_rng(seed)
    records, chosen = normal(rng, 20, features), rng.integers(0, 20, size)
    whole = Batch(features, size)
    whole.array[...] = 7
    gather(records, chosen, 0, whole.rows(begin, end))
    np.testing.assert_array_equal(whole.array[begin:end], records[chosen, : end - begin].T)
    assert (np.delete(whole.array, slice(begin, end), axis=0) == 7).all()


def test_every_bit_is_copied():
    """NaN, infinities and subnormals too: what is wrong in a record must be seen."""
    records = np.array([[np.nan, np.inf, -np.inf, 1e-40, -0.0]], dtype=np.float32)
    out = Batch(5, 3)
    gather(records, np.zeros(3, dtype=np.int64), 0, out)
    assert np.ascontiguousarray(out.array[:, 1]).tobytes() == records.tobytes()


def test_records_may_be_a_memory_map_that_cannot_be_written(tmp_path):
    records = normal(np.random.default_rng(0), 50, 8)
    records.tofile(tmp_path / "records")
    mapped = np.memmap(tmp_path / "records", dtype=np.float32, mode="r", shape=(50, 8))
    out, chosen = Batch(8, 50), np.arange(50)[::-1].copy()
    gather(mapped, chosen, 0, out)
    np.testing.assert_array_equal(out.array, records[::-1].T)
