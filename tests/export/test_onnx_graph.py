"""The exported ONNX graph acts as the policy does, for any number of observations."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from rewirl.export import ExportError, OnnxExport, export_onnx
from rewirl.policies import PolicyLayer

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

POLICIES = {
    "half of the links": ((17, 256, 256, 6), 0.5, "td3"),
    "few links": ((17, 256, 256, 6), (0.1, 0.05, 1.0), "td3"),
    "dense": ((17, 64, 6), 1.0, "td3"),
    "no links at all": ((4, 9, 2), 0.0, "td3"),
    "no hidden layer": ((5, 3), 0.6, "td3"),
    "sac, one action": ((11, 40, 30, 1), 0.5, "sac"),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_acts_as_the_policy_does(make_policy, tmp_path, name, sparse):
    policy = make_policy(*POLICIES[name])
    done = export_onnx(policy, tmp_path / "p.onnx", sparse)
    session = runtime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    half = (policy.high - policy.low) / 2
    for n in (10_000, 1, 7):
        x = rng.standard_normal((n, policy.n_obs)).astype(np.float32)
        x[: n // 10] *= 3
        (actions,) = session.run(["action"], {"observation": x})
        np.testing.assert_allclose(actions / half, policy.predict(x)[0] / half, atol=1e-5)
        assert ((actions >= policy.low) & (actions <= policy.high)).all()
    assert done.difference < 1e-5
    assert done.bytes == done.path.stat().st_size


def test_chooses_as_a_policy_with_discrete_actions_does(make_policy, tmp_path):
    policy = make_policy((8, 64, 64, 4), 0.5, "dqn")
    done = export_onnx(policy, tmp_path / "p.onnx")
    x = np.random.default_rng(1).standard_normal((5000, 8)).astype(np.float32)
    session = runtime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    (actions,) = session.run(["action"], {"observation": x})
    assert actions.dtype == np.int64
    assert (actions != policy.predict(x)[0]).mean() < 1e-3  # ties by rounding
    assert set(actions.tolist()) == {-3, -2, -1, 0}
    assert str(done).endswith("the actions are the policy's")


def test_initializers_are_as_asked_for(make_policy, tmp_path):
    policy = make_policy((17, 64, 64, 6), (0.1, 0.1, 1.0))
    dense, sparse = (export_onnx(policy, tmp_path / f"{s}.onnx", sparse=s) for s in (False, True))
    assert not onnx.load(dense.path).graph.sparse_initializer
    model = onnx.load(sparse.path)
    assert [len(layer.values.float_data) or layer.values.dims[0] for layer in model.graph.sparse_initializer] == list(
        policy.links[:2]
    )
    assert sparse.bytes < dense.bytes / 2
    assert {prop.key: prop.value for prop in model.metadata_props} == {"algorithm": "td3", "task": "Toy-v0"}


def test_same_policy_same_bytes(make_policy, tmp_path):
    first, second = (export_onnx(make_policy(), tmp_path / where, sparse=True).path for where in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_more_than_a_file_can_hold_is_refused(make_policy, tmp_path):
    n = 30_000
    nothing = [np.zeros(n + 1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(n, np.float32)]
    wide = PolicyLayer(n, n, *nothing)
    policy = make_policy((n, 1), 0.001)
    policy = replace(policy, layers=[wide, *policy.layers])
    with pytest.raises(ExportError, match="do not fit ONNX"):
        export_onnx(policy, tmp_path / "p.onnx")


def test_without_the_extra_its_name_is_said(make_policy, tmp_path):
    make_policy().save(tmp_path / "p")
    code = """
import sys
sys.modules["onnx"] = None
from rewirl.policies import Policy
from rewirl.export import export_onnx
try:
    export_onnx(Policy.load(sys.argv[1]), sys.argv[1] + ".onnx")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "p"], capture_output=True, text=True, check=False)
    assert done.stdout == "an export to ONNX needs the package onnx: pip install 'rewirl[onnx]'\n", done.stderr


def test_says_whether_it_was_checked(tmp_path):
    assert "by at most 1.0e-07 of half the range" in str(OnnxExport(tmp_path, 10, 1e-7))
    assert "not checked: onnxruntime is not installed" in str(OnnxExport(tmp_path, 10, None))
