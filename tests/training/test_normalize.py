"""Runs with --normalize: frozen in evaluations, the same bits when resumed, the same actions in every format."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box, Dict
from gymnasium.wrappers import FlattenObservation, NormalizeObservation, NormalizeReward

from rewirl import DQN, SAC, TD3, Policy
from rewirl.cli import main
from rewirl.envs.flattened import policy_names
from rewirl.errors import Refused
from rewirl.experiments.analysis.wiring.inspection import look
from rewirl.export import export
from rewirl.storage import resume, start
from rewirl.training import RunConfig, evaluate_policy
from rewirl.training.evaluation.vector import evaluate_vector

SMALL = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 100, "eval_episodes": 2, "replay_size": 2000}
BOTH = {"normalize": "observations,rewards"}


def test_resumed_in_the_middle_it_has_the_same_bits(tmp_path):
    tiny.train(tmp_path / "whole", **BOTH)
    with start(tiny.config(**BOTH), tmp_path / "stopped") as run:
        run.train(233)  # within an episode: its discounted return is part of the checkpoint
        assert run.agent.normaliser._running != 0
    with resume(tmp_path / "stopped") as run:
        run.train()
    assert tiny.content(tmp_path / "whole") == tiny.content(tmp_path / "stopped")


def test_a_pending_evaluation_keeps_the_statistics_of_its_step(tmp_path):
    short = {"task": "Pendulum-v1", "steps": 300, "eval_every": 300, "eval_episodes": 1, **BOTH}
    here = tiny.train(tmp_path / "here", **short)
    elsewhere = tiny.train(tmp_path / "elsewhere", **short, eval_process=True)
    assert [row.return_mean for row in here.evaluations] == [row.return_mean for row in elsewhere.evaluations]
    snapshot = here.log.open_row(here).snapshot
    state = here.state()
    here.log.load_state(state, here.agent)
    (pending,) = here.log.pending
    np.testing.assert_array_equal(pending.snapshot.scaling.mean, snapshot.scaling.mean)
    state.arrays["pending_scaling.0.std"] = -snapshot.scaling.std
    with pytest.raises(ValueError, match="a standard deviation must be above 0"):
        here.log.load_state(state, here.agent)


def test_without_it_files_are_as_before(tmp_path):
    run = tiny.train(tmp_path / "run")
    assert "normali" not in (tmp_path / "run" / "config.toml").read_text()
    assert not [name for name in run.state().arrays if "normalis" in name or "scaling" in name]
    assert run.policy().to_tensors()[1]["format_version"] == "1"


@pytest.mark.parametrize(("kind", "task"), [(TD3, tiny.Walk), (SAC, tiny.Walk), (DQN, tiny.Strides)])
def test_policy_agent_and_evaluations_act_alike(kind, task, tmp_path):
    agent = kind(task, seed=2, normalize=["rewards", "observations"], **SMALL).learn(400)
    policy = agent.policy()
    assert agent.config.options.normalize == "observations,rewards"
    policy.save(tmp_path / "policy.safetensors")
    loaded = Policy.load(tmp_path / "policy.safetensors")
    assert loaded.to_tensors()[1]["format_version"] == "3"
    x = np.random.default_rng(0).normal(policy.obs_mean, 3 * policy.obs_std, (100, 3)).astype(np.float32)
    by_hand = np.clip((x - policy.obs_mean) / policy.obs_std, -10, 10)
    plain = Policy(**{**vars(policy), "obs_mean": np.zeros(0, np.float32), "obs_std": np.zeros(0, np.float32)})
    for seen in (policy, loaded, agent):
        np.testing.assert_array_equal(seen.predict(x)[0], plain.predict(by_hand)[0])
    last = agent.evaluations[-1]  # by the network, with the statistics of its step
    seed = agent.run.log.rows[-1].step
    from rewirl.training.evaluation import evaluation_seed

    again = evaluate_policy(loaded, task, episodes=2, seed=evaluation_seed(2, seed))
    assert again.mean == pytest.approx(last.return_mean, rel=1e-4)
    envs = gymnasium.make_vec("tiny/Walk-v0" if task is tiny.Walk else "tiny/Strides-v0", num_envs=1)
    vector = evaluate_vector(loaded, envs, episodes=2, seed=5)
    assert vector.returns == pytest.approx(evaluate_policy(loaded, task, episodes=2, seed=5).returns, rel=1e-4)


def test_evaluating_leaves_statistics_alone_and_training_does_not():
    agent = TD3(tiny.Walk, seed=1, **BOTH, **SMALL).learn(100)
    before = {name: value.copy() for name, value in agent.run.agent.normaliser.state().items()}
    agent.evaluate(episodes=2)
    agent.predict(np.full(3, 1e6))
    after = agent.run.agent.normaliser.state()
    assert all((before[name] == after[name]).all() for name in before)
    assert after["observations.count"] == pytest.approx(100, abs=1)
    agent.learn(10)
    assert agent.run.agent.normaliser.state()["observations.count"] == pytest.approx(110, abs=1)


def test_a_saved_agent_learns_on(tmp_path):
    whole = TD3(tiny.Walk, seed=1, **BOTH, **SMALL).learn(150)
    whole.save(tmp_path / "agent.safetensors", replay=True)
    loaded = TD3.load(tmp_path / "agent.safetensors", env=tiny.Walk)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(loaded.learn(60).predict(x)[0], whole.learn(60).predict(x)[0])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("kind", [TD3, DQN])
@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_exported_c_acts_as_the_policy(kind, dtype, tmp_path):
    from rewirl.export.weights import as_stored

    task = tiny.Walk if kind is TD3 else tiny.Strides
    policy = kind(task, normalize="observations", **{**SMALL, "eval_every": 0}).learn(100).policy()
    export(policy, "c", tmp_path, dtype=dtype)
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
    program = tmp_path / "act"
    sources = [tmp_path / "policy.c", tmp_path / "policy_main.c"]
    subprocess.run(["gcc", *strict, *sources, "-lm", "-o", program], check=True)
    x = np.random.default_rng(0).normal(policy.obs_mean, 8 * policy.obs_std, (500, 3)).astype(np.float32)
    lines = "\n".join(" ".join(f"{v:.9g}" for v in row) for row in x.tolist())
    out = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split()
    actions = np.array(out, dtype=np.float64).reshape(500, -1).squeeze()
    expected = as_stored(policy, dtype).predict(x)[0]
    if kind is DQN:
        assert (actions != expected).mean() < 0.01  # a near tie
    else:
        np.testing.assert_allclose(actions, expected, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_exported_onnx_acts_as_the_policy(sparse, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    policy = TD3(tiny.Walk, **BOTH, **{**SMALL, "eval_every": 0}).learn(100).policy()
    assert export(policy, "onnx", tmp_path, sparse=sparse).difference < 1e-5
    x = np.random.default_rng(0).normal(policy.obs_mean, 8 * policy.obs_std, (500, 3)).astype(np.float32)
    session = runtime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["action"], {"observation": x})[0], policy.predict(x)[0], atol=1e-5)


def test_it_learns_from_scaled_rewards():
    """Returns of −1000 an episode: without the division values are of that size, with it of some units."""
    options = {**SMALL, "gamma": 0.9, "eval_every": 0}
    q = {}
    for name, given in {"plain": {}, "scaled": {"normalize": "rewards"}}.items():
        agent = TD3("Pendulum-v1", seed=1, **given, **options).learn(600)
        q[name] = agent.run.agent.statistics()["q"]
    assert abs(q["scaled"]) < 10 < abs(q["plain"]) * 10
    assert abs(q["scaled"]) < abs(q["plain"])


def test_initial_samples_of_a_normalised_policy(tmp_path):
    policy = TD3(tiny.Walk, **BOTH, **{**SMALL, "eval_every": 0}).learn(100).policy()
    from rewirl.training.first_steps import InitialPolicy

    x = policy.obs_mean + 2 * policy.obs_std
    action = InitialPolicy(policy, noise=0.0)(x, np.random.default_rng(0))
    np.testing.assert_allclose(policy.predict(x)[0], policy.low + (action + 1) / 2 * (policy.high - policy.low), 1e-4)


def test_dry_run_and_config(capsys):
    words = ["train", "ds-td3", "Pendulum-v1", "--normalize", "observations,rewards", "--dry-run"]
    assert main(words) == 0
    assert 'normalize = "observations,rewards"' in capsys.readouterr().out
    config = RunConfig.resolve(method="td3", task="Pendulum-v1", normalize="rewards")
    assert RunConfig.from_toml(config.to_toml()) == config
    assert RunConfig.resolve(method="td3", task="Pendulum-v1").differences(config) == [
        'normalize: not set is now "rewards"'
    ]


def test_refusals(capsys):
    assert main(["train", "td3", "Pendulum-v1", "--normalize", "images"]) == 2
    assert "observations or rewards or observations,rewards, not 'images'" in capsys.readouterr().err
    with pytest.raises(Refused, match=re.escape("normalize must be 'observations' or 'rewards'")):
        TD3("Pendulum-v1", normalize="all")
    good = TD3(tiny.Walk, **BOTH, **SMALL).policy()
    for name, value in {"obs_mean": np.zeros(0, np.float32), "obs_std": np.zeros(3, np.float32)}.items():
        with pytest.raises(ValueError, match="obs_"):
            Policy(**{**vars(good), name: value})


@pytest.mark.parametrize(
    ("wrap", "says"),
    [
        (NormalizeObservation, "NormalizeObservation keeps statistics .* set normalize to 'observations' instead"),
        (
            lambda env: NormalizeReward(NormalizeObservation(env)),
            "NormalizeObservation and NormalizeReward keep .* leave them out, .* 'observations,rewards' instead",
        ),
    ],
)
def test_wrappers_that_keep_statistics(wrap, says):
    with pytest.warns(UserWarning, match=says):
        TD3(lambda: wrap(gymnasium.make("Pendulum-v1")), **{**SMALL, "eval_every": 0}).learn(110)


class Parts(tiny.Walk):
    """Observations with names."""

    observation_space = Dict({"arm": Box(-np.inf, np.inf, (2,)), "goal": Dict({"height": Box(-np.inf, np.inf, ())})})

    def reset(self, **given):
        obs, info = super().reset(**given)
        return {"arm": obs[:2].astype(np.float32), "goal": {"height": np.float32(obs[2])}}, info

    def step(self, action):
        obs, *rest = super().step(action)
        return ({"arm": obs[:2].astype(np.float32), "goal": {"height": np.float32(obs[2])}}, *rest)


def test_flattened_observations_keep_their_names(tmp_path: Path):
    agent = TD3(lambda: FlattenObservation(Parts()), **{**SMALL, "eval_every": 0}).learn(60)
    agent.policy().save(tmp_path / "policy.safetensors")
    policy = Policy.load(tmp_path / "policy.safetensors")
    assert policy_names(policy) == ("arm 0", "arm 1", "goal height")
    seen = look(tmp_path / "policy.safetensors", episodes=0)
    assert {feature.name for feature in seen.features()} == {"arm 0", "arm 1", "goal height"}


@pytest.mark.parametrize("names", ["", "[", "[1,2,3]", '["a","b"]', '["a","a","b"]', '["a","b","[red]c"]', '{"a":1}'])
def test_names_that_cannot_be_shown_are_not(names):
    policy = TD3(tiny.Walk, **SMALL).policy()
    forged = Policy(**{**vars(policy), "metadata": {"observations": names}})
    assert policy_names(forged) == ("observation 0", "observation 1", "observation 2")
