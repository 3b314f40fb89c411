"""Complete episodes of a policy, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rewirl.envs.creation import close, make_by_name
from rewirl.envs.environment import Environment, Floats, Misbehaved
from rewirl.errors import Failed
from rewirl.policies.policy import Policy
from rewirl.training.evaluation.episodes import Evaluation, check_fits


class Moment(NamedTuple):
    """One step of an episode."""

    episode: int
    """Number of the episode, from 0."""
    observation: Floats
    """Observation that the policy acted on."""
    reward: float
    """Reward of the step."""
    ended: bool
    """Whether this step was the episode's last."""


def moments(policy: Policy, env: Environment, episodes: int, seed: int) -> Iterator[Moment]:
    """The steps of some episodes, the same as in `evaluate_policy` with this seed; `env` takes actions in its own units
    (`scaled`)."""
    check_fits(policy, env)
    for episode in range(episodes):
        obs = env.reset(seed if episode == 0 else None)
        ended = False
        while not ended:
            following, reward, terminated, truncated = env.step(policy(obs))
            ended = terminated or truncated
            yield Moment(episode, obs, reward, ended)
            obs = following


def watch(policy: Policy, task: str, *, episodes: int, seed: int) -> tuple[Floats, Evaluation]:
    """All observations of some episodes as rows, and the result of the episodes."""
    made = make_by_name(task)
    try:
        seen = list(moments(policy, Environment(made, task, scaled=True), episodes, seed))
    except Misbehaved as error:
        raise Failed(f"{error} while the policy was observed, seed {seed}") from error
    finally:
        close(made)
    return np.stack([moment.observation for moment in seen]), outcome(seen)


def outcome(seen: list[Moment]) -> Evaluation:
    """Returns and lengths of the episodes.

    >>> none = np.zeros(1, np.float32)
    >>> outcome([Moment(0, none, 1.0, False), Moment(0, none, 2.0, True)])
    Evaluation(returns=(3.0,), lengths=(2,))
    """
    numbers = range(seen[-1].episode + 1)
    returns = tuple(sum(moment.reward for moment in seen if moment.episode == number) for number in numbers)
    return Evaluation(returns, tuple(sum(moment.episode == number for moment in seen) for number in numbers))
