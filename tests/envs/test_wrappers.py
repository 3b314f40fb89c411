"""Wrappers of the user's: kept in training, in evaluation and in a resumed run; refused where they could not be."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box
from gymnasium.wrappers import (
    FlattenObservation,
    FrameStackObservation,
    NormalizeObservation,
    RescaleAction,
    RescaleObservation,
    TransformAction,
    TransformObservation,
    TransformReward,
)

from rewirl import SAC, SET, TD3, Policy
from rewirl.cli import main
from rewirl.errors import Refused, Stopped
from rewirl.storage import resume, start
from rewirl.training import Observer, Run

SMALL = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 50, "eval_episodes": 2, "replay_size": 2000}
OBS = np.random.default_rng(0).standard_normal((20, 3), dtype=np.float32)
FIRST = 2
"""Of the observation's numbers, those that `two` lets through."""


def two(obs: np.ndarray) -> np.ndarray:
    return obs[:FIRST]


def doubled(action: np.ndarray) -> np.ndarray:
    return 2 * action


def a_tenth(reward: float) -> float:
    return reward / 10


def wrapped() -> gymnasium.Env:
    """Everything that changes what an agent sees, does and gets."""
    env = gymnasium.make("Pendulum-v1")
    env = RescaleObservation(env, np.float32(-1), np.float32(1))
    env = TransformObservation(env, two, Box(-1, 1, (FIRST,), dtype=np.float32))
    env = TransformAction(env, doubled, Box(-1, 1, (1,), dtype=np.float32))
    return TransformReward(env, a_tenth)


@pytest.mark.parametrize("kind", [TD3, SAC])
def test_an_instance_is_evaluated_and_trained_in_with_its_wrappers(kind):
    instance, factory = (kind(env, wiring=SET(every=20), sparsity=0.3, seed=1, **SMALL) for env in (wrapped(), wrapped))
    for agent in (instance, factory):
        agent.learn(300)
        assert agent.policy().n_obs == FIRST
        assert (agent.policy().low, agent.policy().high) == (-1, 1)
        assert all(-200 < row.return_mean < 0 for row in agent.evaluations)  # a tenth of the task's own
    np.testing.assert_array_equal(instance.predict(OBS[:, :FIRST])[0], factory.predict(OBS[:, :FIRST])[0])
    assert [row.return_mean for row in instance.evaluations] == [row.return_mean for row in factory.evaluations]


def test_wrappers_see_what_the_agent_does():
    """The action that reaches the task is the wrapped one: RescaleAction is in between."""
    reached = []

    class Told(tiny.Walk):
        def step(self, action):
            reached.append(np.array(action))
            return super().step(action)

    inner = np.array([-0.5, -0.5], np.float32), np.array([0.5, 0.5], np.float32)
    TD3(lambda: RescaleAction(Told(), *inner), seed=1, **{**SMALL, "eval_every": 0}).learn(60)
    actions = np.array(reached)
    assert (actions >= Told.action_space.low).all()
    assert (actions <= Told.action_space.high).all()
    assert actions[:, 0].min() < -1.5  # all of the box is used
    assert actions[:, 0].max() > 1.5


def test_stacked_frames_are_flattened():
    agent = TD3(lambda: FlattenObservation(FrameStackObservation(tiny.Walk(), 4)), seed=1, **SMALL).learn(100)
    assert agent.policy().n_obs == 12


def test_evaluating_does_not_disturb_the_training_of_an_instance():
    quiet, asked = (TD3(env, seed=1, **SMALL) for env in (wrapped(), wrapped()))
    quiet.learn(130).learn(170)
    asked.learn(130).evaluate(episodes=1, seed=3)
    asked.learn(170)
    np.testing.assert_array_equal(quiet.predict(OBS[:, :FIRST])[0], asked.predict(OBS[:, :FIRST])[0])


def test_a_resumed_run_has_its_wrappers_and_the_same_bits(tmp_path: Path):
    def factory() -> gymnasium.Env:
        inner = TransformObservation(tiny.Walk(), two, Box(-np.inf, np.inf, (FIRST,)))
        return TransformReward(inner, a_tenth)

    with start(tiny.config(), tmp_path / "whole", env=factory) as run:
        run.train()
    with start(tiny.config(), tmp_path / "stopped", env=factory) as run:
        run.train(230)
    with resume(tmp_path / "stopped", env=factory) as run:
        assert run.shape.n_obs == FIRST
        run.train()
    assert tiny.content(tmp_path / "whole") == tiny.content(tmp_path / "stopped")
    with pytest.raises(Refused, match=r"now has 3 observations .* had 2"):
        resume(tmp_path / "stopped", env=tiny.Walk)


def rewarded() -> gymnasium.Env:
    return TransformReward(tiny.Walk(), a_tenth)


def test_a_run_is_not_resumed_without_its_wrappers(tmp_path: Path, capsys):
    with start(tiny.config(), tmp_path / "run", env=rewarded) as run:
        run.train(230)
    assert Policy.load(tmp_path / "run" / "policy.safetensors").metadata["wrappers"] == "TransformReward"
    for env in (None, tiny.Walk):
        with pytest.raises(Refused, match=r"with TransformReward around .* has nothing around it"):
            resume(tmp_path / "run", env=env)
    assert main(["train", "--resume", str(tmp_path / "run")]) == 2
    assert "resume it from Python with its original environment" in capsys.readouterr().err
    with resume(tmp_path / "run", env=rewarded) as run:
        run.train()
    for command in ("evaluate", "inspect"):
        assert main([command, str(tmp_path / "run"), "--episodes", "1"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "TransformReward" in said
        assert "which only Python knows" in said


def test_a_plain_run_gets_no_wrappers_by_a_resume(tmp_path: Path):
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(230)
    with pytest.raises(Refused, match=r"with nothing around .* has TransformReward around it"):
        resume(tmp_path / "run", env=rewarded)


def test_a_wrapper_that_cannot_be_made_again_is_not_left_out():
    class Mine(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return -observation

    with pytest.raises(
        Refused, match=r"cannot be created a second time for evaluation .* give a function that creates it"
    ):
        TD3(Mine(gymnasium.make("Pendulum-v1")), seed=1, **SMALL).learn(60)
    TD3(lambda: Mine(gymnasium.make("Pendulum-v1")), seed=1, **SMALL).learn(60)


def test_a_wrapper_that_remembers_is_told_of(tmp_path: Path):
    """Running averages are not in a checkpoint: a user of them is warned that a resumed run differs."""
    with start(tiny.config(), tmp_path / "run", env=lambda: NormalizeObservation(tiny.Walk())) as run:
        assert any("may not be bit-identical" in notice for notice in run.notices)


def short_and_light() -> gymnasium.Env:
    return gymnasium.make("Pendulum-v1", max_episode_steps=50, g=1.0)


@pytest.mark.parametrize("until", [300, 40])  # with a checkpoint, and before the first
def test_a_run_is_not_resumed_with_other_arguments_or_another_time_limit(until: int, tmp_path: Path):
    config = tiny.config(task="Pendulum-v1", eval_every=0)
    with start(config, tmp_path / "run", env=short_and_light) as run:
        run.train(until)
    said = r"started with g=1.0, max_episode_steps=50 around Pendulum-v1, .* nothing around"
    if until == 300:
        with pytest.raises(Refused, match=said):
            resume(tmp_path / "run")
    else:  # about.json alone, which anyone may edit, blocks nothing
        shutil.rmtree(tmp_path / "run" / "checkpoint")
        with resume(tmp_path / "run") as run:
            assert any(re.search(said, notice) for notice in run.notices)
        about = tmp_path / "run" / "about.json"
        about.unlink()
    with resume(tmp_path / "run", env=short_and_light) as run:
        run.train()


def test_who_stops_a_run_of_pythons_is_told_to_go_on_there(tmp_path: Path):
    class Stops(Observer):
        def on_progress(self, run: Run) -> None:
            signal.raise_signal(signal.SIGTERM)

    with (
        start(tiny.config(), tmp_path / "a run", env=rewarded, observers=[Stops()]) as run,
        pytest.raises(Stopped, match=r"resume with: TD3\(env, run_dir='.*a run', …\).learn\(steps\)"),
    ):
        run.train()
    with (
        start(tiny.config(), tmp_path / "plain run", observers=[Stops()]) as run,
        pytest.raises(Stopped, match=r"resume with: rewirl train --resume '.*plain run'"),
    ):
        run.train()
