"""Evaluation in Gymnasium's vector environments: parallel episodes, one prediction for all."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rewirl.errors import Failed, Refused
from rewirl.training.evaluation.episodes import Evaluation

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class Predicts(Protocol):
    """A policy, an agent, or anything with Stable-Baselines3's interface."""

    def predict(self, observation: NDArray[Any], *, deterministic: bool = True) -> tuple[NDArray[Any], Any]:
        """The actions for rows of observations."""
        ...


def evaluate_vector(
    policy: Predicts, envs: VectorEnv[Any, Any, Any], *, episodes: int = 10, seed: int = 0
) -> Evaluation:
    """Returns and lengths of complete episodes, in the order of their sub-environments.

    Each sub-environment runs a fixed share of the episodes: taking those that end first would favour short episodes.
    Sub-environment i runs the episodes that `evaluate_policy` runs with seed + i. All autoreset modes of Gymnasium are
    supported.

    >>> import gymnasium
    >>> from rewirl import TD3
    >>> agent = TD3("Pendulum-v1", hidden=(8, 8))
    >>> envs = gymnasium.make_vec("Pendulum-v1", num_envs=3)
    >>> evaluate_vector(agent, envs, episodes=4).lengths
    (200, 200, 200, 200)
    """
    if episodes < 1:
        raise Refused(f"an evaluation needs at least 1 episode, not {episodes}")
    mode = _autoreset_mode(envs)
    shares = [(episodes + envs.num_envs - 1 - i) // envs.num_envs for i in range(envs.num_envs)]
    returns: list[list[float]] = [[] for _ in shares]
    lengths: list[list[int]] = [[] for _ in shares]
    totals, counts = np.zeros(envs.num_envs), np.zeros(envs.num_envs, dtype=np.int64)
    beginning = np.zeros(envs.num_envs, dtype=np.bool_)
    obs, _ = envs.reset(seed=seed)
    while any(len(done) < share for done, share in zip(returns, shares, strict=True)):
        obs, rewards, terminated, truncated, _ = envs.step(_actions(policy, obs))
        # NextStep: the step after an end is the reset and not part of an episode.
        playing, ended = ~beginning, terminated | truncated
        totals[playing] += np.asarray(rewards, dtype=np.float64)[playing]
        counts += playing
        for i in np.flatnonzero(ended & playing):
            if not np.isfinite(totals[i]):
                raise Failed(f"sub-environment {i} gave a reward that is not finite, seed {seed + i}")
            if len(returns[i]) < shares[i]:
                returns[i].append(float(totals[i]))
                lengths[i].append(int(counts[i]))
            totals[i], counts[i] = 0.0, 0
        if mode == "NextStep":
            beginning = ended
        elif mode == "Disabled" and ended.any():
            obs, _ = envs.reset(options={"reset_mask": ended})
    return Evaluation(tuple(chain.from_iterable(returns)), tuple(chain.from_iterable(lengths)))


def _autoreset_mode(envs: VectorEnv[Any, Any, Any]) -> str:
    """Gymnasium 1.0 has only one, without a name."""
    given = envs.metadata.get("autoreset_mode", "NextStep")
    return str(getattr(given, "value", given))


def _actions(policy: Predicts, obs: NDArray[Any]) -> NDArray[Any]:
    try:
        return policy.predict(obs, deterministic=True)[0]
    except ValueError as error:
        raise Refused(f"the policy is not for these environments: {error}") from None
