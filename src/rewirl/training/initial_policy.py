"""A trained policy that acts in the first steps of a run instead of random actions."""

from __future__ import annotations

import numpy as np

from rewirl.envs.environment import Environment, Floats
from rewirl.errors import Refused
from rewirl.limits import LOG_STD
from rewirl.policies.policy import Policy


class InitialPolicy:
    """A policy as it acts in training: TD3's with exploration noise, SAC's by its own distribution."""

    def __init__(self, policy: Policy, noise: float) -> None:
        self._policy = policy
        self._noise = np.float32(noise)
        self._layers = [(layer.dense(), layer.bias) for layer in self._policy.layers]

    def __call__(self, obs: Floats, rng: np.random.Generator) -> Floats:
        """The action, in units of the policy."""
        x: Floats = obs
        for number, (weights, bias) in enumerate(self._layers):
            # Not BLAS, whose results may depend on its number of threads.
            x = np.einsum("oi,i->o", weights, np.maximum(x, 0) if number else x) + bias
        n_act = self._policy.n_act
        noise = rng.standard_normal(n_act, dtype=np.float32)
        if self._policy.is_gaussian:
            std: Floats = np.exp(np.clip(x[n_act:], *LOG_STD))
            action: Floats = np.tanh(x[:n_act] + std * noise)
        else:
            action = np.minimum(np.maximum(np.tanh(x) + self._noise * noise, np.float32(-1)), np.float32(1))
        return action

    def check(self, env: Environment) -> None:
        """Refused if it was trained for other observations or actions."""
        policy = self._policy
        if (policy.n_obs, policy.n_act) != (env.n_obs, env.box.size):
            raise Refused(
                f"the policy of initial_samples is for observations of size {policy.n_obs} and actions of size "
                f"{policy.n_act}, {env.task} has {env.n_obs} and {env.box.size}: "
                f"take one that was trained for {env.task}"
            )
        if not (np.array_equal(policy.low, env.box.low) and np.array_equal(policy.high, env.box.high)):
            raise Refused(
                f"the policy of initial_samples acts from {policy.low} to {policy.high}, {env.task} takes actions from "
                f"{env.box.low} to {env.box.high}: use one that was trained for {env.task}"
            )
