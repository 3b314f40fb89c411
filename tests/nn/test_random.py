"""Numbers drawn by the core from NumPy's generators, against the same bits in Python."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.nn import Batch, RandomStream

from .oracle import seeds

pytestmark = pytest.mark.usefixtures("each_isa")

GENERATORS = [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64]


def normals_of(bits):
    """Box and Muller in float64: of 32 times 64 bits first all cosines, then all sines."""
    a = (((bits & 0xFFFFFFFF) >> 1).astype(np.float32) + np.float32(0.5)).astype(np.float64)  # as float32 rounds it
    b = (bits >> np.uint64(32)).astype(np.float64)
    r, angle = np.sqrt(-2 * np.log(a / 2**31)), 2 * np.pi * b / 2**32
    return np.concatenate([r * np.cos(angle), r * np.sin(angle)])


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("below", [1, 2, 3, 10**6, 2**62 + 1, 2**63 - 1])
def test_integers_are_lemires(kind, below):
    out, bits = np.full(500, -1), iter(kind(5).random_raw(2000, output=True).tolist())
    if kind is np.random.MT19937:  # whose numbers are of 32 bits
        halves = list(bits)
        bits = iter([high << 32 | low for high, low in zip(halves[::2], halves[1::2], strict=True)])
    RandomStream(np.random.Generator(kind(5))).integers(below, out)
    fair = (bits_ for bits_ in bits if bits_ * below % 2**64 >= 2**64 % below)
    assert out.tolist() == [next(fair) * below >> 64 for _ in out]


@given(st.integers(1, 9), st.integers(1, 200), seeds)
def test_normals_are_those_of_box_and_muller(features, size, seed):
    rng, out = np.random.default_rng(seed), Batch(features, size)
    RandomStream(rng).normal(out)
    again = np.random.default_rng(seed)
    times = -(-features * size // 64)
    wanted = np.concatenate([normals_of(again.bit_generator.random_raw(32)) for _ in range(times)])
    np.testing.assert_allclose(out.array.ravel(), wanted[: features * size], rtol=2e-6, atol=2e-6)
    assert rng.random() == again.random(), "NumPy goes on where the core stopped"


def test_normals_are_normal():
    out = Batch(100, 10_000)
    RandomStream(np.random.default_rng(1)).normal(out)
    z = out.array.astype(np.float64).ravel()
    for power, moment, spread in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:  # spread: the variance of z^power
        assert abs((z**power).mean() - moment) < 4 * np.sqrt(spread / len(z)), power
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 4 / np.sqrt(len(z))
    pairs = z[: len(z) // 64 * 64].reshape(-1, 2, 32)  # what comes of the same bits is independent all the same
    assert abs(np.corrcoef(pairs[:, 0].ravel(), pairs[:, 1].ravel())[0, 1]) < 4 / np.sqrt(len(z) / 2)
    assert abs(np.corrcoef(pairs[:, 0].ravel() ** 2, pairs[:, 1].ravel() ** 2)[0, 1]) < 4 / np.sqrt(len(z) / 2)


def test_a_part_of_a_batch_is_filled_and_the_rest_left_alone():
    whole = Batch(5, 70)
    whole.array[...] = 7
    RandomStream(np.random.default_rng(0)).normal(whole.rows(1, 3))
    assert (whole.array[[0, 3, 4]] == 7).all()
    assert (whole.array[1:3] != 7).all()


def test_a_state_set_later_is_the_one_that_is_drawn_from():
    rng, first, second = np.random.default_rng(0), np.empty(9, np.int64), np.empty(9, np.int64)
    stream, state = RandomStream(rng), rng.bit_generator.state
    stream.integers(1000, first)
    rng.bit_generator.state = state
    stream.integers(1000, second)
    assert first.tolist() == second.tolist()


def test_who_holds_the_generators_lock_is_not_disturbed():
    rng, out = np.random.default_rng(0), np.full(9, -1)
    thread = threading.Thread(target=RandomStream(rng).integers, args=(1000, out))
    with rng.bit_generator.lock:
        thread.start()
        thread.join(0.05)
        assert (out == -1).all()
    thread.join()
    assert (out >= 0).all()


def test_the_generator_outlives_its_names():
    out = np.empty(9, np.int64)
    stream = RandomStream(np.random.default_rng(0))
    stream.integers(1000, out)
    again = np.empty(9, np.int64)
    RandomStream(np.random.default_rng(0)).integers(1000, again)
    assert out.tolist() == again.tolist()


@pytest.mark.parametrize("below", [0, -1, -(2**63)])
def test_no_numbers_to_choose_from(below):
    out, rng = np.full(3, 7), np.random.default_rng(0)
    with pytest.raises(ValueError, match=f"from 0 up to, but not, {below}"):
        RandomStream(rng).integers(below, out)
    assert out.tolist() == [7, 7, 7]
    assert rng.bit_generator.lock.acquire(blocking=False), "the lock is free again"


@pytest.mark.parametrize("out", [np.zeros(3, np.int32), np.zeros(3), np.zeros(6, np.int64)[::2], [0, 0, 0]])
def test_integers_go_into_int64_only(out):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        RandomStream(np.random.default_rng(0)).integers(5, out)


@pytest.mark.parametrize("generator", [None, 3, np.random.RandomState(0), np.random.PCG64(0)])
def test_chance_comes_from_a_generator(generator):
    with pytest.raises(TypeError, match=r"numpy\.random\.default_rng\(seed\) makes one"):
        RandomStream(generator)
