"""A mini-batch of transitions, laid out so that networks read it without a copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewirl.nn import Batch, extend, gather

Floats = NDArray[np.float32]


class Transitions:
    """N transitions (s, a, r, s') as the rows of one feature-major batch:

        obs | action | reward | terminated | next_obs | next_action

    So [s, a] and [s', ã], the inputs of critics, are contiguous. All rows except ã, which an update computes, are the
    columns of a replay record, in the same order. Actions are in units of the policy, -1 to 1.

    >>> records = np.arange(20, dtype=np.float32).reshape(2, 10)
    >>> t = Transitions(n_obs=3, n_act=2, size=1)
    >>> t.fill(records, np.array([1]))
    >>> t.state_action.array[:, 0].tolist(), t.reward.array[0].tolist(), t.next_obs.array[:, 0].tolist()
    ([10.0, 11.0, 12.0, 13.0, 14.0], [15.0], [17.0, 18.0, 19.0])
    """

    def __init__(self, n_obs: int, n_act: int, size: int) -> None:
        width = self.width(n_obs, n_act)
        everything = Batch(width + n_act, size)
        self.size = size
        self._record = everything.rows(0, width)
        rewards = n_obs + n_act
        self.obs = everything.rows(0, n_obs)
        self.action = everything.rows(n_obs, rewards)
        self.state_action = everything.rows(0, rewards)
        self.reward = everything.rows(rewards, rewards + 1)
        self.terminated = everything.rows(rewards + 1, rewards + 2)
        """1 if the episode terminated, 0 if it continued or was truncated by a time limit. For an n-step return that
        continued after k steps, 1 - γ^(k-1), so that r + γ (1 - terminated) Q(s', ã) is its target."""
        self.next_obs = everything.rows(rewards + 2, width)
        self.next_action = everything.rows(width, width + n_act)
        self.next_state_action = everything.rows(rewards + 2, width + n_act)

    @staticmethod
    def width(n_obs: int, n_act: int) -> int:
        """Columns of a replay record."""
        return 2 * n_obs + n_act + 2

    def fill(self, records: Floats, chosen: NDArray[np.int64]) -> None:
        """Copies the chosen rows of `records`."""
        gather(records, chosen, 0, self._record)

    def extend(
        self, records: Floats, chosen: NDArray[np.int64], newest: int, n: int, gamma: float, apart: int = 1
    ) -> None:
        """Turns the rows that `fill` copied into n-step returns. r becomes Σ γ^i r_i over up to n consecutive records
        of one episode, and s' that of the last one. A window ends early at the end of an episode and at the newest
        record, which is at row `newest`. The next record of an episode is `apart` rows further.

        >>> records = np.array([[0, 0, 1, 0, 1], [1, 0, 2, 0, 2], [2, 0, 4, 1, 3]], dtype=np.float32)
        >>> t = Transitions(n_obs=1, n_act=1, size=2)
        >>> t.fill(records, np.array([0, 1]))
        >>> t.extend(records, np.array([0, 1]), newest=2, n=2, gamma=0.5)
        >>> t.reward.array.tolist(), t.terminated.array.tolist(), t.next_obs.array.tolist()
        ([[2.0, 4.0]], [[0.5, 1.0]], [[2.0, 3.0]])
        """
        extend(records, chosen, newest, self.state_action.features, n, gamma, self._record, apart)
