"""The training loop: act, store, learn. Files, evaluations and observers are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.agents import Agent, Transitions
from rewirl.envs.environment import Environment, Floats
from rewirl.nn import RandomStream
from rewirl.training.first_steps import updates_until
from rewirl.training.measurements import Episode
from rewirl.training.replay import Replay
from rewirl.training.state import Arrays, State, generator_state, set_generator


class Loop:
    """One agent in one environment, step by step. Everything that the next step depends on is in attributes; `state`
    returns it, and `load_state` restores it."""

    n_envs = 1

    def __init__(
        self,
        env: Environment,
        agent: Agent,
        replay: Replay,
        *,
        random_steps: int,
        env_seed: int,
        rng: np.random.Generator,
        updates_per_step: float = 1,
        initial: Callable[[Floats, np.random.Generator], Floats] | None = None,
    ) -> None:
        """`initial` chooses the actions of the random steps instead of random ones."""
        self.env, self.agent, self.replay = env, agent, replay
        self.random_steps, self.env_seed, self.rng = random_steps, env_seed, rng
        self.updates_per_step = updates_per_step
        self._initial = initial or self._at_random
        self._batch = Transitions(env.n_obs, env.actions.size, agent.options.batch)
        self._random, self._chosen = RandomStream(rng), np.empty(agent.options.batch, dtype=np.int64)
        self.step = 0
        self.episodes = 0
        self.acted = 0
        """Number of actions chosen by the policy."""
        self.episode_length = 0
        self.episode_return = 0.0
        self.before_episode: dict[str, Any] | None = None
        """The environment's generator before the current (or next) episode; None before the first."""
        self._obs: Floats | None = None
        self._action: Floats | None = None
        """An action chosen but not yet taken: set between two steps only if the environment failed."""
        self._actions = np.empty((1024, env.actions.size), dtype=np.float32)

    @property
    def learning_begins(self) -> int:
        """The last step without an update. Until then the policy refills a lost replay."""
        lost = self.step - self.replay.count
        return lost + max(self.random_steps, self.agent.options.batch) if lost else self.random_steps

    def refill_notice(self, why: str) -> str:
        """Warning to a user whose replay is lost."""
        return (
            f"{why}: the policy acts for {self.learning_begins - self.step:,} steps to refill it before learning "
            "continues, so the run is not bit-identical to one that was never interrupted"
        )

    @property
    def whose_seed(self) -> str:
        """For messages: the environment that is stepped, and its seed."""
        return f"the environment's {self.env_seed}"

    def advance(self, until: int) -> Episode | None:
        """Runs until an episode ends, which is returned, or until step `until`."""
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values and NaN are detected explicitly
            return self._advance(until)

    def _advance(self, until: int) -> Episode | None:
        step_env, replay, agent = self.env.step, self.replay, self.agent
        learning_begins = self.learning_begins
        while self.step < until:
            obs = self._begin_episode() if self._obs is None else self._obs
            action = self._choose(obs, self.step) if self._action is None else self._action
            self._action = action
            following, reward, terminated, truncated = step_env(action)
            self._action = None
            replay.add(obs, action, reward, terminated, following)
            agent.normaliser.earned(reward, terminated or truncated)
            self._keep(action)
            self._obs = following
            self.episode_return += reward
            self.step += 1
            if self.step > learning_begins:
                self._learn()
            if terminated or truncated:
                return self._end_episode()
        return None

    def _learn(self) -> None:
        """The updates that follow the step just made."""
        per_step = self.updates_per_step
        for _ in range(updates_until(self.step, 0, per_step) - updates_until(self.step - 1, 0, per_step)):
            self.agent.update(self._draw())

    def _draw(self) -> Transitions:
        """A uniformly drawn batch of transitions from the replay, as n-step returns if configured."""
        replay, batch, options = self.replay, self._batch, self.agent.options
        self._random.integers(len(replay), self._chosen)
        slots = replay.slots_of(self._chosen)
        batch.fill(replay.records, slots)
        several = options.n_step > 1 and self.agent.updates >= options.n_step_from
        if several:
            batch.extend(replay.records, slots, replay.newest, options.n_step, options.gamma, self.n_envs)
        self.agent.normaliser.normalise(batch, options.n_step if several else 1)
        return batch

    def _choose(self, obs: Floats, step: int) -> Floats:
        """The action of a step, counted from 0."""
        self.agent.normaliser.saw(obs)
        if step < self.random_steps:
            return self._initial(obs, self.rng)
        self.acted += 1
        return self.agent.explore(self.agent.normaliser.scaling.observation(obs))

    def _at_random(self, _: Floats, rng: np.random.Generator) -> Floats:
        return self.env.actions.draw(rng)

    def _keep(self, action: Floats) -> None:
        if self.episode_length == len(self._actions):
            self._actions = np.concatenate([self._actions, np.empty_like(self._actions)])
        self._actions[self.episode_length] = action
        self.episode_length += 1

    def _begin_episode(self) -> Floats:
        self._obs = self.env.reset(self.env_seed if self.episodes == 0 else None)
        return self._obs

    def _end_episode(self) -> Episode:
        episode = Episode(self.step, self.episode_return, self.episode_length)
        self.episodes += 1
        self.episode_length, self.episode_return, self._obs = 0, 0.0, None
        self.before_episode = self.env.generator_state()
        return episode

    # ----------------------------------------------------------------- resuming

    def state(self) -> State:
        """Everything that the next step depends on, except the agent and the replay."""
        values = {
            "step": self.step,
            "episodes": self.episodes,
            "acted": self.acted,
            "episode_length": self.episode_length,
            "episode_return": self.episode_return,
            "loop_generator": generator_state(self.rng),
            "environment_generator": self.before_episode,
        }
        state = State(values)
        state.add_arrays("episode.", self._episode_arrays())
        return state

    def load_state(self, state: State) -> bool:
        """Restores what `state` returned. False if replaying the episode gave another observation (the environment is
        not deterministic): then a new episode begins."""
        self.step, self.episodes, self.acted = state.whole("step"), state.whole("episodes"), state.whole("acted")
        self.episode_length, self.episode_return = state.whole("episode_length"), state.number("episode_return")
        set_generator(self.rng, state.table("loop_generator"))
        self.before_episode = state.table_or_none("environment_generator")
        return self._restore_episode(state.part("episode."))

    def _episode_arrays(self) -> Arrays:
        """The current episode: its actions, last observation and pending action, as far as present."""
        out: Arrays = {"actions": self._actions[: self.episode_length].copy()}
        if self._obs is not None:
            out["obs"] = self._obs
        if self._action is not None:
            out["action"] = self._action
        return out

    def _restore_episode(self, arrays: Arrays) -> bool:
        """Replays the episode, from the generator's state and the actions."""
        actions = self._checked("actions", arrays["actions"], self.episode_length)
        if self.episodes:
            self.env.reset(self.env_seed)
            if self.before_episode is not None:
                set_generator(np.random.default_rng(), self.before_episode)  # ValueError if it is invalid
                self.env.set_generator_state(self.before_episode)
        if "obs" not in arrays:
            return True
        known = arrays["obs"]
        if known.dtype != np.float32 or known.shape != (self.env.n_obs,):
            raise ValueError(f"obs must be {self.env.n_obs} float32 numbers, not {known.dtype} of shape {known.shape}")
        obs, ended = self._begin_episode(), False
        for action in actions:
            if ended:
                break
            obs, _, terminated, truncated = self.env.step(action)
            ended = terminated or truncated
        if ended or obs.tobytes() != known.tobytes():
            self.episode_length, self.episode_return, self._obs = 0, 0.0, None
            self.agent.normaliser.restart()
            return False
        self._obs = obs
        self._actions = np.concatenate([actions, self._actions])
        if "action" in arrays:
            self._action = self._checked("action", arrays["action"][None], 1)[0]
        return True

    def _checked(self, name: str, array: NDArray[np.generic], length: int) -> Floats:
        shape = (length, self.env.actions.size)
        if array.dtype != np.float32 or array.shape != shape:
            raise ValueError(f"{name} must be float32 of shape {shape}, not {array.dtype} of shape {array.shape}")
        return np.array(array, dtype=np.float32)
