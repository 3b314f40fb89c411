"""The training loop with several environments that take turns.

Step t is made by environment t mod N. In its turn the outcome of its last action is stored, its next action is chosen
and sent, and the agent learns. So an environment has the time of N updates for a step, and an action comes from the
policy as it was N updates before its outcome is stored. The order is fixed: results do not depend on who is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.agents import Agent
from rewirl.envs.environment import Environment, Floats, Misbehaved
from rewirl.envs.several import Environments, Past
from rewirl.training.loop import Loop
from rewirl.training.measurements import Episode
from rewirl.training.replay import Replay
from rewirl.training.state import Arrays, State, generator_state, set_generator


class Lane:
    """What is known of one environment."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.begin_with: int | None = seed
        """Seed of the next reset, if it needs one."""
        self.before: dict[str, Any] | None = None
        """Its generator before the current (or next) episode; None before the first."""
        self.episodes = 0
        self.total = 0.0
        self.actions: list[Floats] = []
        """Of the current episode, without the one that is under way."""
        self.obs: Floats | None = None
        self.action: Floats | None = None
        """Chosen, outcome not stored."""
        self.sent = False

    def end(self) -> None:
        self.total, self.actions, self.obs = 0.0, [], None


class ParallelLoop(Loop):
    """One agent in N environments; see above."""

    def __init__(
        self,
        envs: Environments,
        env: Environment,
        agent: Agent,
        replay: Replay,
        *,
        random_steps: int,
        env_seeds: Sequence[int],
        rng: np.random.Generator,
        updates_per_step: float = 1,
        initial: Callable[[Floats, np.random.Generator], Floats] | None = None,
    ) -> None:
        """`env` is any of the environments; its spaces are those of all."""
        super().__init__(
            env,
            agent,
            replay,
            random_steps=random_steps,
            env_seed=env_seeds[0],
            rng=rng,
            updates_per_step=updates_per_step,
            initial=initial,
        )
        self.envs, self.n_envs = envs, len(env_seeds)
        self._lanes = [Lane(seed) for seed in env_seeds]
        self._turn = 0
        self._at = 0
        """The environment that was asked for something last."""

    @property
    def whose_seed(self) -> str:
        return f"that of environment {self._at + 1} of {self.n_envs}: {self._lanes[self._at].seed}"

    def _advance(self, until: int) -> Episode | None:
        learning_begins = self.learning_begins
        for i in range(self.n_envs):
            self._start(i)
        while self.step < until:
            i = self._turn % self.n_envs
            lane = self._lanes[i]
            if lane.obs is None:  # its episode begins with this step of its vector environment
                self._begin(i)
                self._turn += 1
                self._start(i)
                continue
            episode = self._finish_step(i)
            self._turn += 1
            self.step += 1
            if not episode:  # else when this is called again: an error in a reset comes between two steps
                self._start(i)
            if self.step > learning_begins:
                self._learn()
            if episode:
                return episode
        return None

    def _start(self, i: int) -> None:
        """Begins an episode and a step of an environment, unless they are under way."""
        lane = self._lanes[i]
        if lane.obs is None:
            if self.envs.waits(i):
                return
            self._begin(i)
        if lane.action is None:
            assert lane.obs is not None
            lane.action = self._choose(lane.obs, self.step + (i - self._turn) % self.n_envs)
        if not lane.sent:
            self.envs.send(i, lane.action)
            lane.sent = True

    def _begin(self, i: int) -> None:
        self._at, lane = i, self._lanes[i]
        lane.obs = self.envs.begin(i, lane.begin_with)
        lane.begin_with = None

    def _finish_step(self, i: int) -> Episode | None:
        """Stores the outcome of an environment's action; the episode if that ended it."""
        self._at, lane = i, self._lanes[i]
        assert lane.obs is not None
        assert lane.action is not None
        try:
            outcome = self.envs.receive(i)
        except Misbehaved:
            lane.sent = False
            raise
        self.replay.add(lane.obs, lane.action, outcome.reward, outcome.terminated, outcome.obs)
        self.agent.normaliser.earned(outcome.reward, outcome.ended, i)
        lane.actions.append(lane.action)
        lane.total += outcome.reward
        lane.obs, lane.action, lane.sent = outcome.obs, None, False
        if not outcome.ended:
            return None
        episode = Episode(self.step + 1, lane.total, len(lane.actions))
        lane.before = outcome.generator
        lane.episodes += 1
        self.episodes += 1
        lane.end()
        return episode

    # ----------------------------------------------------------------- resuming

    def state(self) -> State:
        state = State(
            {
                "step": self.step,
                "episodes": self.episodes,
                "acted": self.acted,
                "loop_generator": generator_state(self.rng),
                "environments": [
                    {"episodes": lane.episodes, "episode_return": lane.total, "environment_generator": lane.before}
                    for lane in self._lanes
                ],
            }
        )
        for i, lane in enumerate(self._lanes):
            state.add_arrays(f"environment.{i}.", self._arrays_of(lane))
        return state

    def load_state(self, state: State) -> bool:
        self.step, self.episodes, self.acted = state.whole("step"), state.whole("episodes"), state.whole("acted")
        self._turn = self.step
        set_generator(self.rng, state.table("loop_generator"))
        tables = state.tables("environments")
        if len(tables) != self.n_envs:
            raise ValueError(f"there are {len(tables)} environments, and should be {self.n_envs}")
        parts = [State(table, state.part(f"environment.{i}.")) for i, table in enumerate(tables)]
        as_they_were = [self._restore(i, part) for i, part in enumerate(parts)]
        return all(as_they_were)

    def _arrays_of(self, lane: Lane) -> Arrays:
        out: Arrays = {"actions": np.array(lane.actions, dtype=np.float32).reshape(-1, self.env.actions.size)}
        if lane.obs is not None:
            out["obs"] = lane.obs
        if lane.action is not None:
            out["action"] = lane.action
        return out

    def _restore(self, i: int, part: State) -> bool:
        """Takes an environment to where it was. If that fails it begins a new episode, with a new seed."""
        self._at, lane, arrays = i, self._lanes[i], part.arrays
        lane.episodes, lane.total = part.whole("episodes"), part.number("episode_return")
        lane.before = part.table_or_none("environment_generator")
        if lane.before is not None:
            set_generator(np.random.default_rng(), lane.before)  # ValueError if it is invalid
        actions = self._checked("actions", arrays["actions"], len(arrays["actions"]))
        under_way = "obs" in arrays
        obs = self.envs.restore(i, Past(lane.seed, lane.before, lane.episodes, actions if under_way else None))
        if under_way:
            as_it_was = obs is not None and obs.tobytes() == self._known(arrays["obs"]).tobytes()
        else:
            as_it_was = lane.before is not None or not lane.episodes
        if not as_it_was:
            self.agent.normaliser.restart(i)
            lane.end()
            lane.begin_with = lane.seed + self.step
            return False
        if lane.episodes or under_way:
            lane.begin_with = None
        lane.obs, lane.actions = obs, list(actions)
        if "action" in arrays:
            lane.action = self._checked("action", arrays["action"][None], 1)[0]
        return True

    def _known(self, obs: NDArray[np.generic]) -> NDArray[np.generic]:
        if obs.dtype != np.float32 or obs.shape != (self.env.n_obs,):
            raise ValueError(f"obs must be {self.env.n_obs} float32 numbers, not {obs.dtype} of shape {obs.shape}")
        return obs
