"""Agents that are saved, loaded and continued; finished runs that are extended."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
import tiny

from rewirl import SAC, SET, TD3, Policy
from rewirl.errors import Refused
from rewirl.policies.policy import PolicyFileError
from rewirl.storage import resume, start, verify
from rewirl.storage import store as stores
from rewirl.topology import DropAndGrow

TINY = {"hidden": (16, 16), "batch": 8, "random_steps": 50, "eval_every": 100, "eval_episodes": 1, "replay_size": 150}
OBS = np.random.default_rng(0).standard_normal((20, 3), dtype=np.float32)


@pytest.mark.parametrize("algorithm", [TD3, SAC])
@pytest.mark.parametrize("first", [130, 400])  # in mid-episode and at the end of one; the replay has wrapped around
def test_with_its_replay_a_loaded_agent_learns_the_same_bits(algorithm, first, tmp_path):
    options = {"wiring": SET(every=20), "sparsity": 0.5, "seed": 1, **TINY}
    whole = algorithm("Pendulum-v1", **options).learn(first)
    whole.save(tmp_path / "agent.safetensors", replay=True)
    whole.learn(170)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = algorithm.load(tmp_path / "agent.safetensors")
        assert (loaded.step, loaded.config.seed, type(loaded)) == (first, 1, algorithm)
        loaded.learn(170)
    np.testing.assert_array_equal(loaded.predict(OBS)[0], whole.predict(OBS)[0])
    for name, array in whole.run.agent.state().items():
        np.testing.assert_array_equal(loaded.run.agent.state()[name], array, err_msg=name)
    assert [row.return_mean for row in loaded.evaluations] == [row.return_mean for row in whole.evaluations]


def test_without_its_replay_it_predicts_evaluates_and_refills_before_it_learns(tmp_path):
    agent = TD3("Pendulum-v1", wiring=SET, seed=1, **TINY).learn(200)
    agent.save(tmp_path / "agent.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who only predicts is not told about a replay
        loaded = TD3.load(tmp_path / "agent.safetensors")
        np.testing.assert_array_equal(loaded.predict(OBS)[0], agent.predict(OBS)[0])
        assert loaded.evaluate(1, seed=3) == agent.evaluate(1, seed=3)
    updates = loaded.run.agent.updates
    with pytest.warns(UserWarning, match=r"has no replay: the policy acts for 50 steps.*not bit-identical"):
        loaded.learn(50)
    assert loaded.run.agent.updates == updates
    assert loaded.learn(30).run.agent.updates == updates + 30
    assert not np.array_equal(loaded.predict(OBS)[0], agent.predict(OBS)[0])


def test_a_policy_can_be_read_from_it_but_not_an_agent_from_a_policy(tmp_path):
    agent = SAC("Pendulum-v1", wiring=SET, seed=2, **TINY).learn(120)
    agent.save(tmp_path / "agent.safetensors", replay=True)
    policy = Policy.load(tmp_path / "agent.safetensors")
    np.testing.assert_array_equal(policy.predict(OBS)[0], agent.predict(OBS)[0])
    agent.policy().save(tmp_path / "policy.safetensors")
    with pytest.raises(Refused, match=r"contains a policy, which cannot learn: read it with Policy\.load"):
        SAC.load(tmp_path / "policy.safetensors")
    with pytest.raises(Refused, match=r"holds an agent of SAC: load it with SAC\.load"):
        TD3.load(tmp_path / "agent.safetensors")
    with pytest.raises(Refused, match="there is no agent at"):
        SAC.load(tmp_path / "nothing")


def test_an_environment_and_a_rule_of_ones_own(tmp_path):
    @dataclass(frozen=True)
    class Mine(DropAndGrow):
        name: ClassVar[str] = "mine"

    make = lambda: gymnasium.make("Pendulum-v1", g=9.0)  # noqa: E731
    agent = TD3(make, wiring=Mine(every=20), sparsity=0.5, **TINY).learn(100)
    agent.save(tmp_path / "agent.safetensors", replay=True)
    with pytest.raises(Refused, match=r"give your own rule, wiring=Mine\(\)"):
        TD3.load(tmp_path / "agent.safetensors", env=make)
    loaded = TD3.load(tmp_path / "agent.safetensors", env=make, wiring=Mine(every=20)).learn(60)
    np.testing.assert_array_equal(loaded.predict(OBS)[0], agent.learn(60).predict(OBS)[0])
    with pytest.raises(Refused, match=r"is for 3 observations and 1 actions, .* has 17 and 6"):
        TD3.load(tmp_path / "agent.safetensors", env="HalfCheetah-v5", wiring=Mine()).learn(1)


def test_damage_is_refused(tmp_path):
    file = tmp_path / "agent.safetensors"
    TD3("Pendulum-v1", **TINY).learn(60).save(file, replay=True)
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    with pytest.raises(PolicyFileError, match="its SHA-256 has changed"):
        TD3.load(file)


def test_a_run_folder_is_an_agent_too(tmp_path):
    with TD3("Pendulum-v1", wiring=SET(every=20), seed=3, run_dir=tmp_path / "run", **TINY) as agent:
        agent.learn(200)
        actions = agent.predict(OBS)[0]
    for opened in (TD3(run_dir=tmp_path / "run"), TD3.load(tmp_path / "run")):
        assert opened.step == 200
        assert (opened.config.method, opened.config.eta) == ("ds-td3", 0.05)
        np.testing.assert_array_equal(opened.predict(OBS)[0], actions)
        opened.close()
    with TD3(run_dir=tmp_path / "run") as opened:
        assert opened.learn(50).step == 250
    with pytest.raises(Refused, match="the run in run_dir is one of TD3"):
        SAC(run_dir=tmp_path / "run")
    with pytest.raises(Refused, match="which task"):
        TD3(run_dir=tmp_path / "nothing")


@pytest.fixture
def no_replay_is_small(monkeypatch):
    monkeypatch.setattr(stores, "SMALL_REPLAY", 0)


def test_a_small_replay_is_kept_and_the_run_extends_to_the_bit(tmp_path):
    whole = tiny.train(tmp_path / "whole", steps=600, eval_every=150)
    tiny.train(tmp_path / "run", steps=300, eval_every=150)
    with resume(tmp_path / "run", config=tiny.config(steps=600, eval_every=150)) as run:
        run.train()
    assert run.notices == whole.notices == []
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


@pytest.mark.usefixtures("no_replay_is_small")
def test_a_run_without_its_replay_is_extended_with_a_warning(tmp_path):
    tiny.train(tmp_path / "run", steps=300)
    assert not (tmp_path / "run" / "replay.bin").exists()
    with resume(tmp_path / "run", config=tiny.config(steps=600)) as run:
        updates = run.agent.updates
        assert "the policy acts for 100 steps to refill it" in run.notices[0]
        run.train(400)
        assert run.agent.updates == updates
        run.train()
        assert run.agent.updates == updates + 200
    assert verify(tmp_path / "run") == []


@pytest.mark.usefixtures("no_replay_is_small")
def test_an_extended_run_is_resumed_to_the_bit(tmp_path):
    for name in ("whole", "cut"):
        tiny.train(tmp_path / name, steps=300)
        with resume(tmp_path / name, config=tiny.config(steps=600)) as run:
            run.train(600 if name == "whole" else 450)
    with resume(tmp_path / "cut") as run:
        run.train()
    assert tiny.content(tmp_path / "cut") == tiny.content(tmp_path / "whole")


@pytest.mark.usefixtures("no_replay_is_small")
def test_a_kill_while_the_new_replay_is_made_loses_nothing(tmp_path, monkeypatch):
    tiny.train(tmp_path / "run", steps=300)
    with monkeypatch.context() as patch:
        patch.setattr("rewirl.training.run.Run.checkpoint", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            resume(tmp_path / "run", config=tiny.config(steps=600))
    assert (tmp_path / "run" / "replay.bin").exists()
    with resume(tmp_path / "run", config=tiny.config(steps=600)) as run:
        run.train()
        assert run.step == 600


def test_the_last_step_is_evaluated(tmp_path):
    with start(tiny.config(steps=200, eval_every=150), tmp_path / "run") as run:
        run.train()
        assert [row.step for row in run.evaluations] == [0, 150, 200]
