"""From a config to an agent."""

from __future__ import annotations

import numpy as np

from rewirl.agents import ActionBox, ActorCritic
from rewirl.agents.methods import method
from rewirl.training.config import RunConfig


def build_agent(config: RunConfig, n_obs: int, box: ActionBox, rng: np.random.Generator) -> ActorCritic:
    """The agent of a run, as it is before its first step."""
    return method(config.method).agent(n_obs, box, config.options, config.wiring(), rng)
