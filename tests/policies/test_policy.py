"""What a policy does, and that saving and loading changes nothing of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from rewirl.policies import Policy, PolicyLayer


def truth(policy: Policy, x: np.ndarray) -> np.ndarray:
    """The network's outputs in float64."""
    h = x.astype(np.float64)
    for number, layer in enumerate(policy.layers):
        h = h @ layer.dense().T.astype(np.float64) + layer.bias
        h = np.maximum(h, 0) if number + 1 < len(policy.layers) else h
    return h


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
@pytest.mark.parametrize("density", [0.02, 0.5, 1.0])
def test_predict_is_tanh_of_the_mean_in_the_box(make_policy, algorithm, density):
    policy = make_policy((7, 33, 20, 3), density, algorithm)
    x = np.random.default_rng(5).standard_normal((200, 7)) * 3
    expected = policy.low + (np.tanh(truth(policy, x)[:, :3]) + 1) / 2 * (policy.high.astype(np.float64) - policy.low)
    action, state = policy.predict(x)
    assert state is None
    assert action.dtype == np.float32
    np.testing.assert_allclose(action, expected, atol=1e-5)
    np.testing.assert_allclose([policy.predict(row)[0] for row in x], expected, atol=1e-5)


def one_output(weight: float, low: float, high: float, algorithm: str = "td3", log_std: float = 0.0) -> Policy:
    n = 2 if algorithm == "sac" else 1
    layer = PolicyLayer(
        1,
        n,
        np.arange(n + 1, dtype=np.int32),
        np.zeros(n, np.int32),
        np.array([weight, 0][:n], np.float32),
        np.array([0, log_std][:n], np.float32),
    )
    return Policy(layers=[layer], low=np.float32([low]), high=np.float32([high]), algorithm=algorithm)


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-0.1, 0.7), (0.3, 0.4), (-3e38, 3e38), (1e-30, 3e38)])
def test_the_ends_of_the_box_are_met_exactly(low, high):
    policy = one_output(1.0, low, high)
    assert policy.predict([100.0])[0] == np.float32(high)
    assert policy.predict([-100.0])[0] == np.float32(low)


def test_draws_of_sac_have_its_mean_and_std():
    policy = one_output(0.5, -2.0, 2.0, "sac", log_std=np.log(0.3))
    rng = np.random.default_rng(6)
    actions, _ = policy.predict(np.ones((20_000, 1)), deterministic=False, rng=rng)
    raw = np.arctanh(actions.astype(np.float64) / 2)
    assert abs(raw.mean() - 0.5) < 0.01
    assert abs(raw.std() - 0.3) < 0.01
    again, _ = policy.predict(np.ones((20_000, 1)), deterministic=False, rng=np.random.default_rng(6))
    np.testing.assert_array_equal(actions, again)


@pytest.mark.parametrize(("log_std", "std"), [(50.0, np.exp(2)), (-90.0, 0.0)])
def test_log_std_is_clamped(log_std, std):
    policy = one_output(0.0, -1.0, 1.0, "sac", log_std)
    actions, _ = policy.predict(np.zeros((4000, 1)), deterministic=False, rng=np.random.default_rng(7))
    inside = np.mean(np.abs(actions) < np.tanh(1.0))  # |z| < 1
    assert inside == pytest.approx(1.0 if std == 0 else 0.1077, abs=0.02)


def test_td3_has_no_draws(make_policy):
    policy = make_policy()
    x = np.ones(3, dtype=np.float32)
    np.testing.assert_array_equal(policy.predict(x, deterministic=False)[0], policy.predict(x)[0])


def test_speaks_as_stable_baselines_does(make_policy):
    action, state = make_policy().predict(np.zeros((2, 3)), state=None, episode_start=np.ones(2), deterministic=True)
    assert (action.shape, state) == ((2, 2), None)


@pytest.mark.parametrize(
    "observation",
    [np.ones(6)[::2], np.ones(3, dtype=np.int8), [1, 1, 1], np.asfortranarray(np.ones((1, 3))), np.ones((1, 3), ">f4")],
)
def test_any_kind_of_observation_is_read_rightly(make_policy, observation):
    policy = make_policy()
    np.testing.assert_allclose(
        policy.predict(observation)[0].ravel(), policy.predict(np.ones(3, np.float32))[0], atol=1e-6
    )


@pytest.mark.parametrize("shape", [(), (2,), (4,), (5, 2), (1, 1, 3)])
def test_wrong_observations_are_refused(make_policy, shape):
    with pytest.raises(ValueError, match="an observation of this policy is 3 numbers"):
        make_policy().predict(np.zeros(shape))


def test_no_observations_give_no_actions(make_policy):
    assert make_policy(density=0.01).predict(np.zeros((0, 3)))[0].shape == (0, 2)


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
def test_acting_drops_what_is_not_needed(make_policy, algorithm):
    policy = make_policy((4, 9, 3), algorithm=algorithm)
    x = np.random.default_rng(8).standard_normal((50, 4)).astype(np.float32)
    assert policy.acting().sizes == (4, 9, 3)
    np.testing.assert_allclose(policy.acting().predict(x)[0], policy.predict(x)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": []}, "at least one layer"),
        ({"algorithm": "ppo"}, "the algorithm must be td3 or sac or dqn, not 'ppo'"),
        ({"algorithm": "sac"}, "a sac policy with 2 action dimensions has 4 outputs, not 2"),
        ({"low": np.float32([0, 9])}, "finite lows below finite highs"),
        ({"low": np.float32([0, -np.inf])}, "finite lows below finite highs"),
        ({"low": np.float32([0])}, "finite lows below finite highs"),
        ({"metadata": {"sha256": "0"}}, "'sha256' is reserved"),
    ],
)
def test_refusals(make_policy, change, message):
    with pytest.raises(ValueError, match=message):
        replace(make_policy(), **change)


def test_layers_must_fit_each_other(make_policy):
    layers = [make_policy((3, 5, 2)).layers[0], make_policy((4, 2)).layers[0]]
    with pytest.raises(ValueError, match="layer 1 takes 4 inputs, but layer 0 has 5 outputs"):
        make_policy(layers=layers)


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
@pytest.mark.parametrize("sizes", [(3, 5, 4, 2), (1, 1), (17, 31, 6), (2, 3, 3, 3, 1)])
def test_saved_and_loaded_it_is_the_same(make_policy, tmp_path, algorithm, sizes):
    policy = make_policy(sizes, algorithm=algorithm, task='Ünïcode "task"\n\\u0041', metadata={"run": "7", "note": ""})
    policy.save(tmp_path / "p")
    loaded = Policy.load(tmp_path / "p")
    assert (loaded.task, loaded.metadata, loaded.algorithm) == (policy.task, policy.metadata, algorithm)
    for mine, theirs in zip(policy.layers, loaded.layers, strict=True):
        for part in ("n_in", "n_out", "indptr", "columns", "weights", "bias"):
            np.testing.assert_array_equal(getattr(mine, part), getattr(theirs, part))
    np.testing.assert_array_equal((policy.low, policy.high), (loaded.low, loaded.high))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "p").read_bytes()


def test_other_tools_read_the_file(make_policy, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    policy = make_policy()
    policy.save(tmp_path / "p.safetensors")
    with safetensors.safe_open(tmp_path / "p.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "rewirl-policy"
        assert file.metadata()["sizes"] == "3,5,4,2"
        np.testing.assert_array_equal(file.get_tensor("layer.1.weights"), policy.layers[1].weights)


def test_needs_numpy_alone(make_policy, tmp_path):
    """Where neither the core nor any other package can be imported, a policy loads and acts all the same."""
    policy = make_policy()
    policy.save(tmp_path / "p")
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "rewirl._core" or name.split(".")[0] in {
            "safetensors", "gymnasium", "mujoco", "rich", "torch", "scipy", "onnx", "onnxruntime", "tyro"}:
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Missing())
from rewirl.policies import Policy
import numpy
print(*Policy.load(sys.argv[1]).predict(numpy.ones(3))[0])
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "p"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.array(done.stdout.split(), dtype=float), policy.predict(np.ones(3))[0], rtol=1e-6)


def test_calling_a_policy_is_predicting(make_policy):
    policy = make_policy()
    rows = np.random.default_rng(0).standard_normal((7, policy.n_obs))
    np.testing.assert_array_equal(policy(rows), policy.predict(rows, deterministic=True)[0])
    assert policy(rows[0]).shape == (policy.n_act,)
