"""Several environments that take turns, as the loop sees them: here in this process, in `workers.py` in others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from rewirl.envs.creation import close
from rewirl.envs.environment import Environment, Floats
from rewirl.envs.vector_rows import Row


class Outcome(NamedTuple):
    """What a step gave."""

    obs: Floats
    reward: float
    terminated: bool
    truncated: bool
    generator: dict[str, Any] | None = None
    """The environment's generator before the next episode, if this one ended."""

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


class Past(NamedTuple):
    """What an environment did before a checkpoint."""

    seed: int
    """Of its first reset."""
    generator: dict[str, Any] | None
    """Its generator before the current (or next) episode; None in the first."""
    episodes: int
    """That ended."""
    actions: NDArray[Any] | None
    """Of the current episode; None between two episodes."""


class Environments(Protocol):
    """Environments by number. Every `send` is followed by a `receive`; in between, others may be sent and received."""

    def begin(self, i: int, seed: int | None) -> Floats:
        """The first observation of the next episode."""
        ...

    def waits(self, i: int) -> bool:
        """Whether its next episode begins only when all step together."""
        ...

    def send(self, i: int, action: Floats) -> None:
        """An action, in units of the policy. The step may be made now or when its outcome is needed."""

    def receive(self, i: int) -> Outcome: ...

    def restore(self, i: int, past: Past) -> Floats | None:
        """Goes back to where an environment was. Its last observation; None between episodes, or if that failed."""
        ...

    def close(self) -> list[str]:
        """Closes all, and returns a sentence about each error in that."""
        ...


class InTurn:
    """Environments in this process. Each steps when its outcome is asked for."""

    def __init__(self, envs: Sequence[Environment], *, ours: Sequence[Environment] = ()) -> None:
        """`ours` are those to close."""
        self._envs, self._ours = envs, ours
        self._sent: list[Floats | None] = [None] * len(envs)

    def begin(self, i: int, seed: int | None) -> Floats:
        return self._envs[i].reset(seed)

    def waits(self, i: int) -> bool:
        env = self._envs[i].env
        return isinstance(env, Row) and env.waits

    def send(self, i: int, action: Floats) -> None:
        self._sent[i] = action
        self._envs[i].prepare(action)

    def receive(self, i: int) -> Outcome:
        action = self._sent[i]
        assert action is not None
        return stepped(self._envs[i], action)

    def restore(self, i: int, past: Past) -> Floats | None:
        return restored(self._envs[i], past)

    def close(self) -> list[str]:
        problems = [close(env.env) for env in self._ours]
        return [problem for problem in problems if problem]


def stepped(env: Environment, action: Floats) -> Outcome:
    """One step, and the generator's state if it ended an episode."""
    obs, reward, terminated, truncated = env.step(action)
    return Outcome(obs, reward, terminated, truncated, env.generator_state() if terminated or truncated else None)


def restored(env: Environment, past: Past) -> Floats | None:
    """`Environments.restore` for one of them: repeats the episode from the generator's state."""
    if isinstance(env.env, Row):  # it cannot step alone
        return None
    if past.episodes:
        env.reset(past.seed)
        if past.generator is not None:
            env.set_generator_state(past.generator)
    if past.actions is None:
        return None
    obs = env.reset(None if past.episodes else past.seed)
    for action in past.actions:
        obs, _, terminated, truncated = env.step(action)
        if terminated or truncated:
            return None
    return obs
