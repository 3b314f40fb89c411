"""An artificial simulator: its step keeps a core busy for some milliseconds. Sizes are those of Humanoid-v5."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

TASK = "benchmark/Simulator-v0"


class Simulator(gymnasium.Env[Any, Any]):
    """Observations are noise; what counts is the time."""

    observation_space = Box(-np.inf, np.inf, (348,), dtype=np.float32)
    action_space = Box(-1, 1, (17,), dtype=np.float32)

    def __init__(self, milliseconds: float) -> None:
        self.seconds = milliseconds / 1000

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._noise(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        end = (
            time.thread_time() + self.seconds
        )  # of processor time: on a busy machine it takes longer, as an update does
        while time.thread_time() < end:
            sum(range(1000))
        return self._noise(), float(-np.square(action).sum()), False, False, {}

    def _noise(self) -> Any:
        return self.np_random.standard_normal(348, dtype=np.float32)


gymnasium.register(TASK, entry_point="simulator:Simulator", max_episode_steps=1000)
