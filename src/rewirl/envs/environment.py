"""An environment for the loop: spaces and returned values are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from rewirl.agents import ActionBox, Actions, Choices
from rewirl.envs.creation import RAISED, Env, EnvLike, Source, close, make_by_name, raised, wrappers_of
from rewirl.envs.vector_rows import Row
from rewirl.errors import Refused
from rewirl.limits import MAX_WIDTH

__all__ = [  # names of `creation`, for code that imports them from here
    "Env",
    "EnvLike",
    "Environment",
    "Misbehaved",
    "Source",
    "close",
    "make_by_name",
    "probe",
    "wrappers_of",
]

Floats = NDArray[np.float32]
LARGEST = float(np.finfo(np.float32).max)
SUPPORTED = (
    "supported are observations in a flat Box (one dimension), and actions that are Discrete or in a flat, bounded Box "
    "of floats"
)


class Misbehaved(Exception):
    """An environment raised an error, or returned a value that is not finite."""


class Environment:
    """An environment for the loop. Every observation is a new float32 array. Actions are in units of the policy
    (or, if `scaled`, of the environment)."""

    def __init__(self, env: Env, task: str, *, scaled: bool = False) -> None:
        self.env, self.task = env, task
        self.n_obs = _flat_observations(env, task)
        self.actions = _actions(env, task)
        self._step = env.step
        self._to_env = _converter(env.action_space, self.actions, scaled)
        self._shape = (self.n_obs,)
        self._zeros = np.zeros(self.n_obs, dtype=np.float32)

    def reset(self, seed: int | None = None) -> Floats:
        """Starts a new episode."""
        try:
            observation, _ = self.env.reset(seed=seed)
        except RAISED as error:
            raise Misbehaved(f"{self.task} raised {raised(error, ' in reset')}") from error
        return self._checked(observation)

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool]:
        """Observation, reward, terminated, truncated."""
        try:
            observation, reward, terminated, truncated, _ = self._step(self._to_env(action))
            # Inside the try: an invalid reward or flag is the environment's fault.
            reward, terminated, truncated = float(reward), bool(terminated), bool(truncated)
        except RAISED as error:
            raise Misbehaved(f"{self.task} raised {raised(error, ' in step')}") from error
        if not -LARGEST <= reward <= LARGEST:  # so NaN is caught as well
            raise Misbehaved(f"{self.task} gave the reward {reward}, which is not a finite float32")
        return self._checked(observation), reward, terminated, truncated

    def prepare(self, action: Floats) -> None:
        """Gives the action of the next step ahead, for one that only steps together with others."""
        if isinstance(self.env, Row):
            self.env.prepare(self._to_env(action))

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused in a sentence, without a warning
    def _checked(self, observation: Any) -> Floats:
        if isinstance(observation, np.ndarray) and observation.dtype.kind == "c":
            raise Misbehaved(f"{self.task} gave complex observations: {SUPPORTED}")
        # Always a copy: many environments reuse one array.
        try:
            own = np.array(observation, dtype=np.float32, order="C")
        except RAISED as error:
            raise Misbehaved(
                f"{self.task} gave an observation that is not an array of numbers: {raised(error)}"
            ) from error
        if own.shape != self._shape:
            raise Misbehaved(f"{self.task} gave an observation of shape {own.shape}, its space says {self._shape}")
        if own.dot(self._zeros) != 0:  # 0 · x is 0 only for finite x: the fastest test for a short array
            index = int(np.argmin(np.isfinite(own)))
            raise Misbehaved(f"{self.task} gave observation[{index}] = {own[index]}, which is not a finite float32")
        return own

    @property
    def generator(self) -> np.random.Generator:
        """The generator of the next episode. Its state is set in place, because the environment may share it."""
        return self.env.unwrapped.np_random

    def generator_state(self) -> dict[str, Any] | None:
        """None if it has no known generator."""
        if not isinstance(self.generator, np.random.Generator):
            return None
        state = dict(self.generator.bit_generator.state)
        return state if state.get("bit_generator") == "PCG64" else None

    def set_generator_state(self, state: dict[str, Any]) -> None:
        """Restores a state from `generator_state` of this environment or an equal one."""
        try:
            self.generator.bit_generator.state = state
        except RAISED as error:
            raise Misbehaved(
                f"{self.task} does not accept a state for its generator np_random: {raised(error)}"
            ) from error


def _space(env: Env, name: str, task: str) -> Any:
    try:
        return getattr(env, name, None)
    except RAISED as error:
        raise Refused(f"{task} raised {raised(error, f' in {name}')}") from error


def _flat_observations(env: Env, task: str) -> int:
    space = _space(env, "observation_space", task)
    if space is None:
        raise Refused(f"{task} has no observation_space: {SUPPORTED}")
    if not isinstance(space, Box):
        raise Refused(f"{task} has {type(space).__name__} observations: {SUPPORTED}{_flatten(space)}")
    if len(space.shape) != 1:
        raise Refused(f"{task} has observations of shape {space.shape}: {SUPPORTED}{_flatten(space)}")
    if not 1 <= space.shape[0] <= MAX_WIDTH:
        raise Refused(f"{task} has {space.shape[0]} numbers in an observation: 1 to {MAX_WIDTH} are supported")
    _check_range(space, task, "observations")
    return space.shape[0]


def _check_range(space: Box, task: str, what: str) -> None:
    """Refuses complex numbers, and bounds outside float32."""
    if space.dtype.kind == "c":
        raise Refused(f"{task} has complex {what}: {SUPPORTED}")
    for bound in (space.low.astype(np.float64), space.high.astype(np.float64)):
        if (np.isfinite(bound) & (np.abs(bound) > LARGEST)).any():
            raise Refused(f"{task} has {what} beyond the range of float32, {LARGEST:.3g}: scale them in a wrapper")


def _flatten(space: gymnasium.Space[Any]) -> str:
    return "; gymnasium.wrappers.FlattenObservation flattens them" if space.is_np_flattenable else ""


def _actions(env: Env, task: str) -> Actions:
    space = _space(env, "action_space", task)
    if space is None:
        raise Refused(f"{task} has no action_space: {SUPPORTED}")
    if isinstance(space, Discrete):
        if space.n > MAX_WIDTH:
            raise Refused(f"{task} has {space.n} discrete actions: at most {MAX_WIDTH} are supported")
        return Choices(int(space.n), int(space.start))
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating) or len(space.shape) != 1:
        raise Refused(f"{task} has the action space {space}: {SUPPORTED}")
    _check_range(space, task, "actions")
    try:
        return ActionBox(space.low, space.high)
    except ValueError as error:
        raise Refused(f"{task}: {error}") from None


def _converter(space: gymnasium.Space[Any], actions: Actions, scaled: bool) -> Callable[[Floats], Any]:
    """Maps actions in units of the policy, or (`scaled`) of the environment, into its action space."""
    if isinstance(space, Discrete):
        return np.int64 if scaled else actions.to_env
    assert isinstance(space, Box)
    convert: Callable[[Floats], NDArray[Any]] = np.asarray if scaled else actions.to_env
    if space.dtype == np.float32:
        return convert
    # Clipped, because the bounds of a foreign policy may have been rounded outward.
    return lambda action: np.clip(convert(action).astype(space.dtype), space.low, space.high)


def probe(source: Source, seed: int) -> str | None:
    """Why a task is not reproducible, or None. Runs two short rollouts with one seed, and a third that starts at
    the last episode from only the generator's state, as a resumed run does."""
    first, state = _rollout(source, seed)
    second, _ = _rollout(source, seed)
    if first != second:
        return f"{source.task} is not deterministic: with the same seed and actions its results differ"
    if state is None:
        return f"{source.task} has no NumPy generator in np_random: its next episode cannot be saved"
    third, _ = _rollout(source, seed, state)
    if third[-1] != first[-1]:
        return f"{source.task} carries state from one episode to the next besides its np_random"
    return None


def _rollout(
    source: Source, seed: int, state: dict[str, Any] | None = None
) -> tuple[list[list[bytes]], dict[str, Any] | None]:
    """The observations in the first steps of three episodes, or of the last one alone from a generator's state before
    it; and that state."""
    env = Environment(source.make(), source.task)
    try:
        seen = []
        obs = env.reset(seed)
        for episode in (1, 2, 3) if state is None else (3,):
            if episode == 3:
                if state is None:
                    state = env.generator_state()
                else:
                    env.generator.bit_generator.state = state
            if episode > 1:
                obs = env.reset()
            seen.append(_first_steps(env, obs, np.random.default_rng(episode)))
        return seen, state
    finally:
        if not source.is_given:
            close(env.env)


def _first_steps(env: Environment, obs: Floats, rng: np.random.Generator, steps: int = 20) -> list[bytes]:
    seen = [obs.tobytes()]
    for _ in range(steps):
        obs, reward, terminated, truncated = env.step(env.actions.draw(rng))
        seen += [obs.tobytes(), str(reward).encode()]
        if terminated or truncated:
            break
    return seen
