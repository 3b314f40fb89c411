"""Running statistics of observations and rewards, as VecNormalize of Stable-Baselines3 keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.transitions import Transitions
from rewirl.nn import standardise
from rewirl.policies.scaling import CLIP, Scaling

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

EPSILON = 1e-8
"""Added to variances before their square root is taken."""
PRIOR = 1e-4
"""How many samples the mean 0 and the variance 1 count as that statistics start with."""
LARGEST = float(np.finfo(np.float32).max)


class Moments:
    """Mean and variance of all samples so far.

    >>> moments = Moments(1)
    >>> moments.add(np.array([1.0]))
    >>> moments.add(np.array([3.0]))
    >>> moments.mean.round(2), moments.variance.round(2)
    (array([2.]), array([1.]))
    """

    def __init__(self, n: int) -> None:
        self.mean, self.variance, self.count = np.zeros(n), np.ones(n), PRIOR

    def add(self, sample: Doubles) -> None:
        """Takes n numbers into account. (Chan et al. 1979, updating formulae for sample variances)"""
        total = self.count + 1
        delta = sample - self.mean
        squares = self.variance * self.count + delta * delta * (self.count / total)
        self.mean = self.mean + delta / total
        self.variance, self.count = squares / total, total

    @property
    def std(self) -> Floats:
        return np.minimum(np.sqrt(self.variance + EPSILON), LARGEST).astype(np.float32)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"mean": self.mean, "variance": self.variance, "count": np.array([self.count])}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """ValueError for what are no such statistics."""
        for name, known in self.state().items():
            values = state[name]
            if values.dtype != np.float64 or values.shape != known.shape or not np.isfinite(values).all():
                raise ValueError(f"the normalisation's {name} must be {known.shape} finite float64 numbers")
            if name != "mean" and (values < 0).any():
                raise ValueError(f"the normalisation's {name} must not be negative")
        if not state["count"][0] > 0:
            raise ValueError("the normalisation's count must be above 0")
        self.mean, self.variance = state["mean"].copy(), state["variance"].copy()
        self.count = float(state["count"][0])


class Normaliser:
    """Statistics of observations, of rewards, of both or of neither. They change in training steps only.

    Rewards are divided by the standard deviation of the discounted return so far, which starts at 0 in each episode of
    each environment.

    >>> normaliser = Normaliser("observations,rewards", n_obs=2, gamma=0.5)
    >>> for reward in (1.0, 3.0):
    ...     normaliser.saw(np.array([reward, 0.0], dtype=np.float32))
    ...     normaliser.earned(reward, ended=False)
    >>> normaliser.scaling.mean.round(2), normaliser.scaling.reward_std.round(2)  # of the returns 1 and 3.5
    (array([2., 0.], dtype=float32), np.float32(1.25))
    """

    def __init__(self, what: str | None, n_obs: int, gamma: float) -> None:
        kinds = what.split(",") if what else ()
        self._observations = Moments(n_obs) if "observations" in kinds else None
        self._returns = Moments(1) if "rewards" in kinds else None
        self._gamma = gamma
        self._running = np.zeros(1)
        """The discounted return so far of each environment's episode."""
        self._scaling: Scaling | None = None

    def saw(self, obs: Floats) -> None:
        """An observation for which an action is chosen."""
        if self._observations is not None:
            self._observations.add(obs.astype(np.float64))
            self._scaling = None

    def earned(self, reward: float, ended: bool, env: int = 0) -> None:
        """The reward of a step in environment `env`, and whether its episode ended there."""
        if self._returns is not None:
            self._make_room(env)
            running = self._gamma * self._running[env] + reward
            self._returns.add(np.array([running]))
            self._running[env] = 0.0 if ended else running
            self._scaling = None

    def restart(self, env: int = 0) -> None:
        """A new episode begins in environment `env` before the old one ended."""
        self._make_room(env)
        self._running[env] = 0.0

    def _make_room(self, env: int) -> None:
        missing = env + 1 - len(self._running)
        if missing > 0:
            self._running = np.concatenate([self._running, np.zeros(missing)])

    @property
    def scaling(self) -> Scaling:
        """The statistics as they are now."""
        if self._scaling is None:
            seen, returns = self._observations, self._returns
            moments = {} if seen is None else {"mean": seen.mean.astype(np.float32), "std": seen.std}
            self._scaling = Scaling(**moments, reward_std=None if returns is None else returns.std[0])
        return self._scaling

    def normalise(self, batch: Transitions, steps: int = 1) -> None:
        """A batch as the networks see it; each of its rewards is a sum of up to so many."""
        scaling = self.scaling
        if self._observations is not None:
            for rows in (batch.obs, batch.next_obs):
                standardise(rows, scaling.mean, scaling.std, float(CLIP))
        scaling.rewards(batch.reward.array, steps)

    def state(self) -> dict[str, NDArray[Any]]:
        """Empty if nothing is normalised."""
        out = {f"{name}.{part}": value for name, known in self._known() for part, value in known.state().items()}
        return out if self._returns is None else {**out, "running": self._running.copy()}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Takes over what `state` gave; ValueError for anything else."""
        if state.keys() != self.state().keys():
            raise ValueError(f"the normalisation has {sorted(self.state())}, and here are {sorted(state)}")
        for name, known in self._known():
            known.load_state({part: state[f"{name}.{part}"] for part in known.state()})
        if self._returns is not None:
            running = state["running"]
            if running.dtype != np.float64 or running.ndim != 1 or not len(running) or not np.isfinite(running).all():
                raise ValueError("the normalisation's running returns must be finite float64 numbers")
            self._running = running.copy()
        self._scaling = None

    def _known(self) -> list[tuple[str, Moments]]:
        both = (("observations", self._observations), ("returns", self._returns))
        return [(name, moments) for name, moments in both if moments is not None]
