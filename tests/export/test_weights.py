"""Weights stored in fewer bits: how far they move, and that the measured loss is the true one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewirl.export import ExportError
from rewirl.export.weights import accuracy_loss, as_stored, stored


def test_f32_changes_nothing(make_policy):
    policy = make_policy()
    assert as_stored(policy, "f32").layers[0].weights.tolist() == policy.layers[0].weights.tolist()
    assert accuracy_loss(policy, "f32").largest == 0


def test_f16_is_the_nearest_half(make_layer):
    layer = make_layer(20, 30, 0.5, np.random.default_rng(1))
    halves = stored(layer, "f16")
    np.testing.assert_array_equal(halves.codes.view(np.float16).astype(np.float32), halves.values)
    np.testing.assert_allclose(halves.values, layer.weights, rtol=2**-11, atol=2**-25)


def test_int8_moves_a_weight_by_half_a_step_of_its_output_at_most(make_layer):
    layer = make_layer(20, 30, 0.5, np.random.default_rng(2))
    codes = stored(layer, "int8")
    steps = codes.scale[layer.rows()]
    assert codes.codes.dtype == np.int8
    assert np.abs(codes.codes).max() == 127
    assert (np.abs(codes.values - layer.weights) <= steps * 0.5001).all()


def test_int8_of_zeros_and_of_the_smallest_numbers(make_layer):
    layer = make_layer(4, 3, 1.0, np.random.default_rng(3))
    weights = np.array([0] * 4 + [1e-45] * 4 + [3, -1.5, 0, 0.01], np.float32)
    codes = stored(replace(layer, weights=weights), "int8")
    assert (codes.scale > 0).all()
    np.testing.assert_allclose(codes.values, weights, atol=0.012)


def test_f16_refuses_what_it_cannot_hold(make_layer):
    layer = make_layer(4, 3, 1.0, np.random.default_rng(3))
    with pytest.raises(
        ExportError, match="a weight of 70000 does not fit f16, whose largest value is 65504: use f32 or int8"
    ):
        stored(replace(layer, weights=np.full(12, -70000, np.float32)), "f16")


def test_unknown_dtypes_are_refused(make_policy):
    with pytest.raises(ExportError, match="dtype must be f32, f16 or int8, not 'bf16'"):
        as_stored(make_policy(), "bf16")


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
def test_the_loss_is_that_of_the_observations_given(make_policy, algorithm):
    policy = make_policy((5, 40, 30, 3), 0.5, algorithm)
    x = np.random.default_rng(4).standard_normal((500, 5)).astype(np.float32) * 2
    half = (policy.high - policy.low) / 2
    for dtype in ("f16", "int8"):
        apart = np.abs(as_stored(policy, dtype).predict(x)[0] - policy.predict(x)[0]) / half
        loss = accuracy_loss(policy, dtype, x)
        assert loss.largest == pytest.approx(apart.max(), rel=0.01)
        assert loss.mean == pytest.approx(apart.mean(), rel=0.01)
        assert loss.observations == 500
    assert 0 < accuracy_loss(policy, "f16", x).largest < accuracy_loss(policy, "int8", x).largest < 0.1


@pytest.mark.parametrize("shape", [(3,), (0, 3), (4, 2)])
def test_wrong_observations_are_refused(make_policy, shape):
    with pytest.raises(ExportError, match="observations must be rows of 3 numbers"):
        accuracy_loss(make_policy(), "int8", np.zeros(shape, np.float32))
