"""From a config to an agent."""

from __future__ import annotations

import numpy as np

from rewirl.agents import ActionBox, SACAgent, SACOptions, TD3Agent
from rewirl.training.config import RunConfig


def build_agent(config: RunConfig, n_obs: int, box: ActionBox, rng: np.random.Generator) -> TD3Agent | SACAgent:
    """The agent of a run, as it is before its first step."""
    options, wiring = config.options, config.wiring()
    if isinstance(options, SACOptions):
        return SACAgent(n_obs, box, options, wiring, rng)
    return TD3Agent(n_obs, box, options, wiring, rng)
