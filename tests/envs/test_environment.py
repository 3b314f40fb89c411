"""Environments: what is supported, what is refused, and every number that they give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from numpy.testing import assert_array_equal

from rewirl import TD3
from rewirl.envs.creation import Source, make_by_name
from rewirl.envs.environment import Environment, probe
from rewirl.errors import Refused
from rewirl.storage import start


def space(**spaces: gymnasium.Space[Any]) -> gymnasium.Env[Any, Any]:
    env = tiny.Walk()
    for name, value in spaces.items():
        setattr(env, name, value)
    return env


UNBOUNDED = Box(-np.inf, np.inf, (2,))


@pytest.mark.parametrize(
    ("spaces", "said"),
    [
        ({"action_space": UNBOUNDED}, "unbounded"),
        ({"action_space": Box(np.array([0, -1]), np.array([0, 1]), dtype=np.float32)}, "below its high"),
        ({"action_space": Discrete(3)}, "ds-td3 cannot learn a task with 3 discrete actions: use ds-dqn$"),
        ({"action_space": Discrete(70_000)}, "70000 discrete actions: at most 65535"),
        ({"action_space": MultiBinary(3)}, r"action space MultiBinary\(3\).*flat, bounded Box"),
        ({"action_space": Box(0, 5, (2,), dtype=np.int64)}, "of floats"),
        ({"action_space": Box(-1, 1, (2, 2))}, "flat"),
        ({"observation_space": Discrete(3)}, "Discrete observations.*flat Box"),
        ({"observation_space": Dict(a=Box(0, 1, (2,)))}, "Dict observations.*FlattenObservation"),
        ({"observation_space": Box(0, 255, (84, 84, 3), dtype=np.uint8)}, r"\(84, 84, 3\).*FlattenObservation"),
        ({"observation_space": Box(0, 1, (70_000,))}, "65535"),
        ({"observation_space": Box(0, 1, (0,))}, "1 to 65535"),
    ],
)
def test_spaces_that_are_refused(spaces: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=said):
        start(tiny.config(), tmp_path / "run", env=lambda: space(**spaces))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Pendulm-v1", "did you mean Pendulum-v1"),
        ("HalfCheetah-v3", r"'HalfCheetah-v3' could not be created: .*; use HalfCheetah-v5"),
        ("HalfCheetah-v9", "did you mean HalfCheetah-v"),
        ("no/Such-v0", "no task"),
        ("nowhere:Such-v0", "nowhere"),
        ("CartPole-v1", "CartPole-v1: ds-td3 cannot learn a task with 2 discrete actions: use ds-dqn$"),
    ],
)
def test_names_that_are_refused(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=said):
        start(tiny.config(task=name), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_environment() -> None:
    with pytest.raises(Refused, match="must be a gymnasium environment, not int"):
        start(tiny.config(), env=lambda: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(Refused, match="could not be created: ZeroDivisionError"):
        start(tiny.config(), env=lambda: 1 / 0)  # type: ignore[arg-type,return-value]


def test_name_instance_and_factory_are_the_same() -> None:
    results = []
    for env in (None, "tiny/Walk-v0", gymnasium.make("tiny/Walk-v0"), tiny.Walk(), tiny.Walk):
        with start(tiny.config(steps=160), env=env) as run:
            run.train()
        results.append([row.return_mean for row in run.evaluations])
    assert all(result == results[0] for result in results)


def test_an_instance_that_cannot_be_copied() -> None:
    env = tiny.Walk()
    env.socket = (n for n in range(3))  # type: ignore[attr-defined]
    with pytest.raises(Refused, match="give a function that creates it"), start(tiny.config(), env=env) as run:
        run.train()


def test_the_box_is_mapped_exactly() -> None:
    seen = []

    class Listening(tiny.Walk):
        def step(self, action: Any) -> Any:
            seen.append(action.copy())
            return super().step(action)

    env = Environment(Listening(), "listening")
    env.reset(1)
    for action in ([-1, -1], [1, 1], [0, 0], [0.5, -0.5]):
        env.step(np.array(action, dtype=np.float32))
    assert_array_equal(seen, np.array([[-2, 0], [2, 1], [0, 0.5], [1, 0.25]], dtype=np.float32))
    with start(tiny.config(steps=100), env=Listening) as run:
        run.train()
    assert np.all(seen >= Listening.action_space.low)
    assert np.all(seen <= Listening.action_space.high)
    assert np.ptp(seen, axis=0) == pytest.approx([4, 1], rel=0.1), "the random phase covers the box"


@pytest.mark.parametrize(
    "cast",
    [
        lambda obs: obs,
        lambda obs: obs.astype(np.float64),
        lambda obs: obs.astype(np.float16),
        lambda obs: np.repeat(obs, 2)[::2],
        lambda obs: obs[::-1][::-1],
        lambda obs: obs.tolist(),
        lambda obs: tuple(obs),
        lambda obs: np.array(obs, dtype=">f4"),
        lambda obs: (obs * 1).astype(np.int64),
    ],
)
def test_observations_of_any_kind_are_copied_and_cast(cast: Callable[[Any], Any]) -> None:
    class Casting(tiny.Walk):
        def reset(self, **given: Any) -> Any:
            super().reset(**given)
            self.place = np.arange(3, dtype=np.float32)
            return cast(self.place), {}

        def step(self, action: Any) -> Any:
            self.place += 1  # the array that was given out before
            return cast(self.place), 1, np.bool_(False), np.bool_(False), {}

    env = Environment(Casting(), "casting")
    first = env.reset(0)
    second, reward, terminated, _ = env.step(np.zeros(2, dtype=np.float32))
    assert_array_equal(first, [0, 1, 2])
    assert_array_equal(second, [1, 2, 3])
    for obs in (first, second):
        assert obs.dtype == np.float32
        assert obs.dtype.isnative
        assert obs.flags.c_contiguous
        assert obs.flags.owndata
    assert (type(reward), type(terminated)) == (float, bool)


# --------------------------------------------------------------------- determinism


class Lucky(tiny.Walk):
    def step(self, action: Any) -> Any:
        obs, *rest = super().step(action)
        return obs + np.random.default_rng().normal(size=3), *rest


class Secretive(tiny.Walk):
    """Deterministic under its seed, but its episodes are drawn from a generator that np_random does not tell."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self.secret = np.random.default_rng(seed)
        super().reset(seed=seed)
        self.place = self.secret.normal(size=3)
        return self.place, {}


class Learning(tiny.Walk):
    """Carries something from one episode to the next."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = super().reset(seed=seed)
        self.episodes = 0 if seed is not None else self.episodes + 1
        return obs + self.episodes, info


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (tiny.Walk, None),
        ("Pendulum-v1", None),
        ("HalfCheetah-v5", None),
        ("Hopper-v5", None),
        (Lucky, "not deterministic"),
        (Secretive, "carries state"),
        (Learning, "carries state"),
        (lambda: gymnasium.wrappers.NormalizeObservation(tiny.Walk()), "carries state"),
    ],
)
def test_what_keeps_a_task_from_being_repeated(env: Any, said: str | None, tmp_path: Path) -> None:
    found = probe(Source("it", env), seed=3)
    assert (found is None) if said is None else (found and said in found)
    if said:
        with start(tiny.config(steps=20), tmp_path / "run", env=env) as run:
            [notice] = [notice for notice in run.notices if said in notice]
            assert "may not be bit-identical" in notice


def test_the_generator_takes_an_environment_to_its_next_episode() -> None:
    env = Environment(make_by_name("Hopper-v5"), "Hopper-v5")
    env.reset(5)
    for _ in range(3):
        env.step(np.zeros(3, dtype=np.float32))
    state = env.generator_state()
    following = env.reset()
    again = Environment(make_by_name("Hopper-v5"), "Hopper-v5")
    again.reset(77)
    assert state
    again.generator.bit_generator.state = state
    assert_array_equal(again.reset(), following)


def test_truncation_is_kept_apart_from_termination() -> None:
    class Alternating(tiny.Walk):
        limit = 5
        episodes = 0

        def reset(self, **given: Any) -> Any:
            self.episodes += 1
            return super().reset(**given)

        def step(self, action: Any) -> Any:
            obs, reward, _, truncated, info = super().step(action)
            return obs, reward, truncated and self.episodes % 2 == 0, truncated and self.episodes % 2 == 1, info

    with start(tiny.config(steps=40), env=Alternating) as run:
        run.train()
        terminated = run.loop.replay.records[:40, 3 + 2 + 1].reshape(-1, 5)
        obs, following = run.loop.replay.records[:40, :3], run.loop.replay.records[:40, -3:]
    assert_array_equal(terminated[:, :4], 0)
    assert_array_equal(terminated[:, 4], [0, 1] * 4)
    inside = np.arange(39) % 5 != 4
    assert_array_equal(following[:-1][inside], obs[1:][inside])
    assert not np.array_equal(following[4], obs[5]), "the last observation of an episode is not the first of the next"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scaled", [False, True])
def test_actions_lie_in_the_space(kind: type, scaled: bool) -> None:
    """0.1 is no float32, and the one next to it is above it: no action of a box in float64 that ends at 0.1."""
    given = []

    class Narrow(tiny.Walk):
        action_space = Box(-0.1, 0.1, (2,), kind)

        def step(self, action: Any) -> Any:
            given.append(action)
            return super().step(action)

    env = Environment(Narrow(), "narrow", scaled=scaled)
    env.reset(0)
    for end in (-1.0, 1.0, 0.3):
        env.step(np.full(2, end * (0.1 if scaled else 1), dtype=np.float32))
    assert all(env.env.action_space.contains(action) for action in given)
    assert np.allclose(given[1], 0.1, rtol=1e-3)
    policy = TD3(Narrow, hidden=(4, 4)).policy()
    assert (policy.high <= Narrow.action_space.high).all()
    assert (policy.low >= Narrow.action_space.low).all()


@pytest.mark.parametrize("name", ["HalfCheetah", "HalfCheetah-v3"])
def test_names_without_a_version_and_old_ones_are_quiet(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name == "HalfCheetah":
            env = make_by_name(name)
            assert env.spec is not None
            assert env.spec.id == "HalfCheetah-v5"
            config = tiny.config(task=name, hidden=(256, 256))
            assert (config.task, config.lambdas) == ("HalfCheetah-v5", (7.0, 64.0))
        else:
            with pytest.raises(Refused):
                make_by_name(name)
    assert not list(tmp_path.iterdir())  # no MUJOCO_LOG.TXT
    assert capfd.readouterr() == ("", "")
