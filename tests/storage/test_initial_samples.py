"""Initial samples: the replay begins with what a learned policy does, and the run depends on its content alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from rewirl.cli import main
from rewirl.errors import Failed, Refused
from rewirl.files import sha256
from rewirl.policies import Policy
from rewirl.storage import inspect_run, resume, start, verify
from rewirl.storage.initial_samples import pinned
from rewirl.training import RunConfig
from rewirl.training.first_steps import InitialPolicy

SMALL = {"steps": 300, "random_steps": 150, "checkpoint_every": 60, "eval_every": 100}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each algorithm, done."""
    where = tmp_path_factory.mktemp("learned")
    for method in ("ds-td3", "sac"):
        given = {} if method == "ds-td3" else {"adapt_every": None, "eta": None}
        tiny.train(where / method, method=method, **given)
    return {method: where / method for method in ("ds-td3", "sac")}


def outputs(folder: Path, obs: np.ndarray) -> np.ndarray:
    return Policy.load(folder / "policy.safetensors").outputs(obs.astype(np.float32))


def test_td3_policy_acts_with_the_runs_exploration_noise(learned: dict[str, Path]) -> None:
    act = InitialPolicy(Policy.load(learned["ds-td3"] / "policy.safetensors"), noise=0.1)
    for seed in range(20):
        obs = np.random.default_rng(seed).normal(size=3).astype(np.float32)
        noise = np.random.default_rng(seed).standard_normal(2, dtype=np.float32)
        expected = np.clip(np.tanh(outputs(learned["ds-td3"], obs)) + 0.1 * noise, -1, 1)
        np.testing.assert_allclose(act(obs, np.random.default_rng(seed)), expected, atol=1e-6)


def test_sac_policy_draws_from_its_own_distribution(learned: dict[str, Path]) -> None:
    act = InitialPolicy(Policy.load(learned["sac"] / "policy.safetensors"), noise=0.1)
    obs = np.array([0.3, -0.2, 0.9], dtype=np.float32)
    out = outputs(learned["sac"], obs)
    noise = np.random.default_rng(5).standard_normal(2, dtype=np.float32)
    expected = np.tanh(out[:2] + np.exp(np.clip(out[2:], -20, 2)) * noise)
    np.testing.assert_allclose(act(obs, np.random.default_rng(5)), expected, atol=1e-6)


def test_the_replay_begins_with_its_samples_and_nothing_else_changes(learned: dict[str, Path]) -> None:
    quiet = {**SMALL, "exploration_noise": 0.0, "steps": 150}
    with (
        start(tiny.config(**quiet, initial_samples=str(learned["ds-td3"]))) as run,
        start(tiny.config(**quiet)) as other,
    ):
        run.train()
        other.train()
        records, width = run.loop.replay.records[:150], run.shape.n_obs
        right = np.tanh([outputs(learned["ds-td3"], obs) for obs in records[:, :width]])
        np.testing.assert_allclose(records[:, width : width + 2], right, atol=1e-6)
        assert not np.allclose(other.loop.replay.records[:150, width : width + 2], right, atol=1e-2)
        for name, array in run.agent.state().items():
            assert array.tobytes() == other.agent.state()[name].tobytes(), "nothing was learned yet"


def whole_and_left(policy: Path, tmp_path: Path) -> dict[str, Any]:
    """Two runs of one config, one whole, one left; the policy that they began with is gone: they have copies."""
    source = tmp_path / "source"
    shutil.copytree(policy, source)
    given = {**SMALL, "initial_samples": str(source)}
    tiny.train(tmp_path / "whole", **given)
    with start(tiny.config(**given), tmp_path / "left") as run:
        run.train(70)
    shutil.rmtree(source)
    return given


def test_left_and_resumed_bit_by_bit(learned: dict[str, Path], tmp_path: Path) -> None:
    whole_and_left(learned["ds-td3"], tmp_path)
    for until in (130, 151, 300):
        with resume(tmp_path / "left") as run:
            run.train(until)
    assert tiny.content(tmp_path / "left") == tiny.content(tmp_path / "whole")
    assert verify(tmp_path / "left") == []


@pytest.mark.parametrize("fate", ["gone", "another"])
def test_the_same_config_goes_on_whatever_became_of_the_original(
    fate: str, learned: dict[str, Path], tmp_path: Path
) -> None:
    given = whole_and_left(learned["ds-td3"], tmp_path)
    if fate == "another":
        shutil.copytree(learned["sac"], tmp_path / "source")
    with resume(tmp_path / "left", config=tiny.config(**given)) as run:
        assert run.step == 70
        run.train()
    assert tiny.content(tmp_path / "left") == tiny.content(tmp_path / "whole")
    with pytest.raises(Refused, match="there is no elsewhere"):
        resume(tmp_path / "left", config=tiny.config(**{**given, "initial_samples": "elsewhere"}))


def test_identity_is_the_content_and_not_the_path(learned: dict[str, Path], tmp_path: Path) -> None:
    shutil.copy(learned["ds-td3"] / "policy.safetensors", tmp_path / "copy.safetensors")
    by_folder, by_file = (
        pinned(tiny.config(initial_samples=str(path)))[0] for path in (learned["ds-td3"], tmp_path / "copy.safetensors")
    )
    assert by_folder == by_file
    content = (tmp_path / "copy.safetensors").read_bytes()
    assert by_folder.initial_samples == f"sha256:{sha256(content)}"
    with start(tiny.config(**SMALL, initial_samples=str(learned["ds-td3"])), tmp_path / "run") as run:
        run.train(10)
    other = tiny.config(**SMALL, initial_samples=str(learned["sac"]))
    with pytest.raises(Refused, match="initial_samples"):
        resume(tmp_path / "run", config=other)
    with resume(
        tmp_path / "run", config=tiny.config(**SMALL, initial_samples=str(tmp_path / "copy.safetensors"))
    ) as run:
        assert run.step == 10


def test_a_damaged_copy_is_found(learned: dict[str, Path], tmp_path: Path) -> None:
    with start(tiny.config(**SMALL, initial_samples=str(learned["ds-td3"])), tmp_path / "run") as run:
        run.train(70)
    copy = tmp_path / "run" / "initial_policy.safetensors"
    whole = copy.read_bytes()
    copy.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert any("initial_policy.safetensors is not the policy" in sentence for sentence in verify(tmp_path / "run"))
    with pytest.raises(Failed, match=f"restore the one with the SHA-256 {sha256(whole)}"):
        resume(tmp_path / "run")
    copy.unlink()
    with pytest.raises(Failed, match="cannot be read"):
        resume(tmp_path / "run")
    copy.write_bytes(whole)
    with resume(tmp_path / "run") as run:
        run.train()
        assert run.done


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"initial_samples": "nowhere"}, "there is no nowhere"),
        ({"initial_samples": "."}, "is not a run folder"),
        ({"initial_samples": f"sha256:{'0' * 64}"}, "identifies the policy but not its path"),
        (
            {"initial_samples": "LEARNED", "task": "Pendulum-v1"},
            "initial_samples: the policy is for 3 observations and 2 continuous",
        ),
    ],
)
def test_refused_and_nothing_written(
    given: dict[str, str], says: str, learned: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {name: value.replace("LEARNED", str(learned["ds-td3"])) for name, value in given.items()}
    with pytest.raises(Refused, match=says):
        start(tiny.config(**SMALL, **given), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_another_action_box_is_refused(learned: dict[str, Path], tmp_path: Path) -> None:
    policy = Policy.load(learned["ds-td3"] / "policy.safetensors")
    wide = Policy(layers=policy.layers, low=policy.low * 2, high=policy.high * 2, algorithm="td3", task=policy.task)
    wide.save(tmp_path / "wide.safetensors")
    with pytest.raises(Refused, match=r"the policy's low action is .*, that of tiny/Walk-v0 is"):
        start(tiny.config(**SMALL, initial_samples=str(tmp_path / "wide.safetensors")))


@pytest.mark.parametrize("given", [{"initial_samples": "x", "random_steps": 0}, {"initial_samples": ""}])
def test_without_steps_to_act_in_it_means_nothing(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="random_steps the number of samples"):
        RunConfig.resolve(method="td3", task="Pendulum-v1", **given)


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"batch": 8, "steps": 120, "random-steps": 60, "eval-every": 60, "eval-episodes": 1}
    small = [f"--{name}={value}" for name, value in sizes.items()] + ["--hidden", "8", "8"]
    assert main(["train", "td3", "Pendulum-v1", *small]) == 0
    command = ["train", "ds-sac", "Pendulum-v1", "--initial-samples", "runs/Pendulum-v1/td3-seed0", *small]
    assert main(command) == 0
    capsys.readouterr()
    assert main(command) == 0
    assert "This run is finished" in capsys.readouterr().out
    config = inspect_run(tmp_path / "runs/Pendulum-v1/ds-sac-seed0").config
    assert config is not None
    assert config.initial_samples is not None
    assert config.initial_samples.startswith("sha256:")
