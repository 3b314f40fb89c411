"""Environments, evaluations and agents that fail: said with task, step and seed, and nothing is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box

from rewirl.envs.environment import Environment, Misbehaved
from rewirl.errors import Failed, Refused
from rewirl.storage import checkpoint, inspect_run, resume, start, verify


class Broken(tiny.Walk):
    """Does something wrong at a step of the run."""

    at = 130
    what: Callable[[Any, float], Any] = staticmethod(lambda obs, reward: (obs, reward))
    count = 0

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        self.count += 1
        if self.count == self.at:
            obs, reward = self.what(obs, reward)
        return obs, reward, terminated, truncated, info


def put(index: int, value: float) -> Callable[[Any, float], Any]:
    def change(obs: Any, reward: float) -> Any:
        obs = obs.copy()
        obs[index] = value
        return obs, reward

    return change


def raises(obs: Any, reward: float) -> Any:
    raise RuntimeError("the simulator is gone")


def throws(error: BaseException) -> Callable[[Any, float], Any]:
    def change(obs: Any, reward: float) -> Any:
        raise error

    return change


class Unspeakable(Exception):
    def __str__(self) -> str:
        return str(1 / 0)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("what", "said"),
    [
        (raises, "raised RuntimeError in step: the simulator is gone"),
        (lambda obs, reward: sys.exit("no licence"), "raised SystemExit in step: no licence"),
        (throws(GeneratorExit()), "raised GeneratorExit in step, at"),
        (throws(MemoryError()), "raised MemoryError in step, at"),
        (throws(ValueError("one\ntwo\x1b[2J")), r"raised ValueError in step: one\\ntwo\\x1b\[2J, at"),
        (throws(Unspeakable()), r"raised Unspeakable in step: its text cannot be shown \(ZeroDivisionError\), at"),
        (lambda obs, reward: (obs + 1j, reward), "gave complex observations"),
        (put(2, np.nan), r"observation\[2\] = nan"),
        (put(1, np.inf), r"observation\[1\] = inf"),
        (put(0, -np.inf), r"observation\[0\] = -inf"),
        (put(1, 1e300), r"observation\[1\] = inf"),
        (lambda obs, reward: (obs.astype(np.float64) + 1e300, reward), r"observation\[0\] = inf"),
        (lambda obs, reward: (obs, np.nan), "reward nan"),
        (lambda obs, reward: (obs, -np.inf), "reward -inf"),
        (lambda obs, reward: (obs, 1e39), r"reward 1e\+39"),
        (lambda obs, reward: (obs, "much"), "raised ValueError in step"),
        (lambda obs, reward: (obs[:2], reward), r"shape \(2,\)"),
        (lambda obs, reward: (obs[0], reward), r"shape \(\)"),
        (lambda obs, reward: ({}, reward), "gave an observation that is not an array of numbers"),
        (lambda obs, reward: ([[1.0], [2.0, 3.0]], reward), "gave an observation that is not an array of numbers"),
    ],
)
def test_an_environment_that_fails(what: Callable[..., Any], said: str, tmp_path: Path) -> None:
    """Said with task, step and seed; nothing of it is in the replay; with it mended the run ends as if nothing was."""
    tiny.train(tmp_path / "whole")
    broken = type("Broken", (Broken,), {"what": staticmethod(what)})
    with start(tiny.config(), tmp_path / "run", env=broken) as run, pytest.raises(Failed) as caught:
        run.train()
    assert caught.match(said)
    assert caught.match(r"tiny/Walk-v0 .* at step 129, seed 7 .*; the checkpoint of step 129 is kept")
    assert run.loop.replay.count == 129
    assert np.isfinite(run.loop.replay.records).all()
    assert inspect_run(tmp_path / "run").state == "failed"
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_an_environment_that_fails_when_it_is_closed(tmp_path: Path) -> None:
    class Clings(tiny.Walk):
        def close(self) -> None:
            raise OSError("the port is gone")

    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run", env=Clings) as run:
        run.train()
    said = "tiny/Walk-v0 raised OSError in close: the port is gone (step 600, seed 7)"
    assert any(said in notice for notice in run.notices)
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observation_space": None}, "has no observation_space"),
        ({"action_space": None}, "has no action_space"),
        ({"observation_space": property(lambda self: 1 / 0)}, "raised ZeroDivisionError in observation_space"),
        ({"action_space": property(lambda self: sys.exit(3))}, "raised SystemExit in action_space: 3"),
        ({"observation_space": Box(-1e300, 1e300, (3,), np.float64)}, "observations beyond the range of float32"),
        ({"action_space": Box(-1e300, 1e300, (2,), np.float64)}, "actions beyond the range of float32"),
    ],
)
def test_spaces_that_are_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=f"^tiny/Walk-v0 .*{said}"):
        start(tiny.config(), tmp_path / "run", env=type("Odd", (tiny.Walk,), changes))
    assert not (tmp_path / "run").exists()


def test_an_environment_without_spaces(tmp_path: Path) -> None:
    class Bare(gymnasium.Env[Any, Any]):
        pass

    with pytest.raises(Refused, match="has no observation_space"):
        start(tiny.config(), tmp_path / "run", env=Bare)


@pytest.mark.parametrize("where", ["__init__", "reset"])
def test_an_environment_that_ends_the_process(where: str, tmp_path: Path) -> None:
    def leave(*_: Any, **__: Any) -> None:
        sys.exit(5)

    with pytest.raises(Refused, match="SystemExit"):
        start(tiny.config(), tmp_path / "run", env=type("Leaves", (tiny.Walk,), {where: leave}))


def test_an_end_that_is_no_truth_value(tmp_path: Path) -> None:
    class Vague(tiny.Walk):
        def step(self, action: Any) -> Any:
            obs, reward, _, truncated, info = super().step(action)
            return obs, reward, np.array([False, True]), truncated, info

    with pytest.raises(Refused, match="raised ValueError in step: The truth value"):
        start(tiny.config(), tmp_path / "run", env=Vague)


@pytest.mark.parametrize("wrong", ["observation", "generator"])
def test_an_environment_that_fails_on_the_way_back_costs_no_checkpoint(wrong: str, tmp_path: Path) -> None:
    """The environment is at fault, and not the checkpoint: mended, the run ends as if nothing was."""

    class Passing(tiny.Walk):
        count = 0

        def reset(self, **given: Any) -> Any:
            out = super().reset(**given)
            if wrong == "generator":
                self.np_random = np.random.Generator(np.random.MT19937(3))
            return out

        def step(self, action: Any) -> Any:
            obs, *rest = super().step(action)
            self.count += 1
            return ({} if wrong == "observation" and self.count == 2 else obs, *rest)

    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(110)
        while run.loop.episode_length:  # so that the checkpoint before has nothing to repeat
            run.train(run.step + 1)
        run.train(run.step + 5)
    before = checkpoint.found(tmp_path / "run" / "checkpoint")
    with pytest.raises(Failed, match="while restoring the run"):
        resume(tmp_path / "run", env=Passing)
    assert checkpoint.found(tmp_path / "run" / "checkpoint") == before
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_a_reset_that_fails(tmp_path: Path) -> None:
    class Tired(tiny.Walk):
        resets = 0

        def reset(self, **given: Any) -> Any:
            self.resets += 1
            if self.resets == 5:
                raise RuntimeError("enough")
            return super().reset(**given)

    tiny.train(tmp_path / "whole")
    with (
        start(tiny.config(), tmp_path / "run", env=Tired) as run,
        pytest.raises(Failed, match="in reset: enough, at step"),
    ):
        run.train()
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_an_evaluation_that_fails(tmp_path: Path) -> None:
    """It is made again when the run is resumed."""
    tiny.train(tmp_path / "whole")
    made = []

    def make() -> gymnasium.Env[Any, Any]:
        # three for the trial, one to train in, one to evaluate in
        made.append(type("Raising", (Broken,), {"what": staticmethod(raises), "at": 90 if len(made) == 4 else -1})())
        return made[-1]

    with start(tiny.config(), tmp_path / "run", env=make) as run, pytest.raises(Failed) as caught:
        run.train()
    assert caught.match(r"in the evaluation at step (150|300|450) with seed \d+, at step \1.* step \1 is kept")
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


@pytest.mark.parametrize("eval_process", [False, True])
def test_a_factory_that_no_other_process_can_import(eval_process: bool) -> None:
    class Local(tiny.Walk):
        pass

    with start(tiny.config(steps=20, eval_process=eval_process), env=Local) as run:
        if eval_process:
            with pytest.raises(Refused, match="cannot be evaluated in another process"):
                run.train()
        else:
            run.train()


def test_rewards_that_overflow_are_no_silent_nonsense(tmp_path: Path) -> None:
    class Rich(tiny.Walk):
        def step(self, action: Any) -> Any:
            obs, _, terminated, truncated, info = super().step(action)
            return obs, 1e38, terminated, truncated, info

    with start(tiny.config(checkpoint_every=90), tmp_path / "run", env=Rich) as run, pytest.raises(Failed) as caught:
        run.train()
    assert caught.match(r"critic's loss is inf .* at step 101, seed 7 .*; the checkpoint of step \d+ is kept")
    with resume(tmp_path / "run", env=Rich) as run:
        assert 0 < run.step <= 100
        for network in run.agent.networks.values():
            assert np.isfinite(network.parameters).all()


def test_weights_that_are_no_numbers_never_reach_a_checkpoint(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
        parameters = run.agent.actor.parameters.copy()
        parameters[3] = np.nan
        run.agent.actor.set_parameters(parameters)
        with pytest.raises(Failed, match=r"finite|nan"):
            run.train()
    assert inspect_run(tmp_path / "run").state == "failed"
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        assert run.step == 120


def test_weights_that_are_no_numbers_at_an_adaptation(tmp_path: Path) -> None:
    with start(tiny.config(eval_every=0, checkpoint_every=600), tmp_path / "run") as run:
        run.train(118)
        parameters = run.agent.actor.parameters.copy()
        parameters[-1] = np.nan
        run.agent.actor.set_parameters(parameters)
        with pytest.raises(Failed, match=r"finite.* at step \d+, seed 7 .*; the checkpoint of step 118 is kept"):
            run.train()


def test_a_reward_of_the_wrong_kind_names_the_task() -> None:
    env = Environment(type("Odd", (Broken,), {"at": 1, "what": staticmethod(lambda o, r: (o, None))})(), "odd")
    env.reset(0)
    with pytest.raises(Misbehaved, match="odd raised TypeError"):
        env.step(np.zeros(2, dtype=np.float32))
