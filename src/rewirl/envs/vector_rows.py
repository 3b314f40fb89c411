"""The environments of a `gymnasium.vector` environment, one by one, although they step together."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

Vector: TypeAlias = "VectorEnv[Any, Any, Any]"
Step: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any]]


def rows_of(vector: Vector) -> list[gymnasium.Env[Any, Any]]:
    """Its environments: those of a plain SyncVectorEnv can step alone, all others only together."""
    if type(vector) is SyncVectorEnv:
        return list(vector.envs)
    together = _Together(vector)
    return [Row(together, i) for i in range(vector.num_envs)]


class Row(gymnasium.Env[Any, Any]):
    """One environment of a vector environment. All step when the first one needs an outcome that it does not have:
    each with the action that it was given last."""

    np_random = None  # type: ignore[assignment]  # not known: its episodes cannot be repeated

    def __init__(self, together: _Together, i: int) -> None:
        self._together, self._i = together, i
        self.observation_space = together.vector.single_observation_space
        self.action_space = together.vector.single_action_space

    @property
    def task(self) -> str:
        """That of an AsyncVectorEnv; a class of its own is a task of its own."""
        vector = self._together.vector.unwrapped
        spec = vector.spec if type(vector) is AsyncVectorEnv else None
        return spec.id if spec else type(vector).__name__

    @property
    def wrappers(self) -> list[str]:
        """Around the vector environment, the outermost first."""
        found, vector = [], self._together.vector
        while isinstance(vector, VectorWrapper):
            found.append(type(vector).__name__)
            vector = vector.env
        return found

    @property
    def is_late(self) -> bool:
        """Whether an episode begins one step after the end of the one before."""
        return self._together.mode == "NextStep"

    @property
    def waits(self) -> bool:
        """Whether its next episode begins with the next step of all."""
        return self.is_late and bool(self._together.ended[self._i])

    def prepare(self, action: Any) -> None:
        """The action of the next step."""
        self._together.actions[self._i] = action

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self._together.begin(self._i, seed), {}

    def step(self, action: Any) -> Step:
        self.prepare(action)
        return self._together.outcome(self._i)

    def close(self) -> None:
        self._together.vector.close()


class _Together:
    """A vector environment with the outcomes of its last step that were not handed out."""

    def __init__(self, vector: Vector) -> None:
        self.vector, n = vector, vector.num_envs
        mode = vector.metadata.get("autoreset_mode", "NextStep")
        self.mode = str(getattr(mode, "value", mode))
        self.actions = np.stack([_some_action(vector.single_action_space)] * n)
        self.ended = np.zeros(n, dtype=np.bool_)
        self._handed_out = np.ones(n, dtype=np.bool_)
        self._initial: dict[int, Any] = {}
        """First observations since all were reset, by row, and those of later episodes: what was not handed out."""
        self._first: dict[int, Any] = {}
        self._last: tuple[Any, Any, Any, Any, dict[str, Any]] | None = None

    def begin(self, i: int, seed: int | None) -> Any:
        """The first observation of the next episode of a row."""
        if i in self._initial:
            return self._initial.pop(i)
        if seed is not None or not self.ended[i]:
            obs, _ = self.vector.reset(seed=seed)
            self._initial = dict(enumerate(obs))
            self.ended[:], self._handed_out[:] = False, True
            return self._initial.pop(i)
        if self.mode == "NextStep":
            return self.outcome(i)[0]
        if self.mode == "Disabled":
            self._reset_one(np.arange(self.vector.num_envs) == i)
        self.ended[i] = False
        return self._first.pop(i)

    def outcome(self, i: int) -> Step:
        if self._handed_out[i]:
            self._step()
        assert self._last
        self._handed_out[i] = True
        obs, rewards, terminated, truncated, infos = self._last
        ended = bool(terminated[i] or truncated[i])
        self.ended[i] = ended
        if ended and self.mode == "SameStep":
            self._first[i] = obs[i]
            return infos["final_obs"][i], rewards[i], terminated[i], truncated[i], {}
        return obs[i], rewards[i], terminated[i], truncated[i], {}

    def _step(self) -> None:
        if self.mode == "Disabled" and self.ended.any():
            self._reset_one(self.ended.copy())
        self._last = self.vector.step(self.actions.copy())
        self._handed_out[:] = False
        if self.mode == "Disabled":
            self.ended = np.logical_or(self._last[2], self._last[3])

    def _reset_one(self, mask: NDArray[np.bool_]) -> None:
        obs, _ = self.vector.reset(options={"reset_mask": mask})
        self._first |= {int(i): obs[i] for i in np.flatnonzero(mask)}
        self.ended[mask] = False


def _some_action(space: gymnasium.Space[Any]) -> NDArray[Any]:
    """For an environment whose outcomes nobody needs."""
    if isinstance(space, Box):
        return np.clip(np.zeros(space.shape, dtype=space.dtype), space.low, space.high)
    return np.array(space.start if isinstance(space, Discrete) else 0)
