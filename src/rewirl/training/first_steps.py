"""The steps before learning begins: their number, and the policy that may act in them instead of random actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rewirl.agents import Choices
from rewirl.envs.environment import Environment, Floats
from rewirl.errors import Refused
from rewirl.limits import LOG_STD
from rewirl.policies.policy import Policy
from rewirl.training.evaluation.episodes import check_fits

if TYPE_CHECKING:
    from rewirl.training.config import RunConfig

SHARE = 10
"""A short run takes one in this many steps at random."""
FLOOR = 100
"""Minimum number of random steps, so that the first batch has transitions to draw from."""


def default_random_steps(papers: int, steps: int) -> int:
    """The paper's number for runs of its length, a tenth of the steps for shorter ones, at least 100.

    >>> default_random_steps(25_000, 1_000_000), default_random_steps(25_000, 10_000), default_random_steps(25_000, 500)
    (25000, 1000, 100)
    """
    return min(papers, max(steps // SHARE, FLOOR))


def updates_until(step: int, begin: int, per_step: float) -> int:
    """Updates that have been made by a step if learning began after step `begin`.

    >>> updates_until(30, 10, 2), [updates_until(step, 0, 0.4) for step in range(6)]
    (40, [0, 0, 0, 1, 1, 2])
    """
    return max(int(step * per_step) - int(begin * per_step), 0)


def few_updates(config: RunConfig, steps: int) -> str | None:
    """A warning if most steps of a run are random; None otherwise."""
    acts = "samples of the initial policy" if config.initial_samples else "random actions"
    if steps <= config.random_steps:
        return f"all {steps:,} steps are {acts}, so the agent does not learn"
    if steps < 2 * config.random_steps:
        left = steps - config.random_steps
        return f"{config.random_steps:,} of {steps:,} steps are {acts}, which leaves {left:,} to learn in"
    return None


def no_rate_left(config: RunConfig, steps: int) -> str | None:
    """A warning if a run of this many steps continues after its learning rate has fallen to 0."""
    until, updates = config.options.lr_until, updates_until(steps, config.random_steps, config.updates_per_step)
    if until is None or until >= updates:
        return None
    return f"the learning rate is 0 after {until:,} of {updates:,} updates, so the agent learns nothing after that"


class InitialPolicy:
    """A policy as it acts in training: TD3's with exploration noise, SAC's by its own distribution, DQN's ε-greedy."""

    def __init__(self, policy: Policy, noise: float) -> None:
        """`noise` is the standard deviation of the noise on actions, or ε if they are discrete."""
        self._policy = policy
        self._noise = np.float32(noise)
        self._layers = [(layer.dense(), layer.bias) for layer in self._policy.layers]

    def __call__(self, obs: Floats, rng: np.random.Generator) -> Floats:
        """The action, in units of the policy."""
        x = self._policy.normalised(obs)
        for number, (weights, bias) in enumerate(self._layers):
            # Not BLAS, whose results may depend on its number of threads.
            x = np.einsum("oi,i->o", weights, np.maximum(x, 0) if number else x) + bias
        n_act = self._policy.n_act
        if self._policy.is_discrete:
            choices = Choices(n_act)
            return choices.draw(rng) if rng.random() < self._noise else choices.one_hot(x.argmax())
        noise = rng.standard_normal(n_act, dtype=np.float32)
        if self._policy.is_gaussian:
            std: Floats = np.exp(np.clip(x[n_act:], *LOG_STD))
            action: Floats = np.tanh(x[:n_act] + std * noise)
        else:
            action = np.minimum(np.maximum(np.tanh(x) + self._noise * noise, np.float32(-1)), np.float32(1))
        return action

    def check(self, env: Environment) -> None:
        """Refused if the policy is for other observations or actions."""
        policy = self._policy
        try:
            check_fits(policy, env)
        except Refused as error:
            raise Refused(f"initial_samples: {error}") from None
        for name, bound in env.actions.bounds().items():
            if not np.array_equal(theirs := getattr(policy, name), bound):
                raise Refused(
                    f"initial_samples: the policy's {name} action is {theirs}, that of {env.task} is {bound}: "
                    f"use one that was trained for {env.task}"
                )
