"""The replay: transitions as float32 records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewirl.agents import Transitions
from rewirl.errors import Refused
from rewirl.memory import free_memory, shown_bytes

Floats = NDArray[np.float32]


class Shape(NamedTuple):
    """Of a transition."""

    n_obs: int
    n_act: int

    @property
    def width(self) -> int:
        """Numbers in a record: obs | action | reward | terminated | next_obs."""
        return Transitions.width(self.n_obs, self.n_act)


class Replay:
    """The last `capacity` records. `count` is the number ever added; record n is in slot n mod `slots`.

    With more slots than the capacity, old records stay for a while, so that an earlier checkpoint still has all of its
    records.

    >>> replay = Replay.in_memory(capacity=2, shape=Shape(n_obs=1, n_act=1))
    >>> for n in range(3):
    ...     replay.add([n], [0.5], reward=-n, terminated=False, next_obs=[n + 1])
    >>> len(replay), replay.records[replay.slots_of(np.array([0, 1]))]
    (2, array([[ 1. ,  0.5, -1. ,  0. ,  2. ],
           [ 2. ,  0.5, -2. ,  0. ,  3. ]], dtype=float32))
    """

    def __init__(self, records: Floats, capacity: int, shape: Shape) -> None:
        self.records, self.capacity, self.shape = records, capacity, shape
        self.count = 0
        self.slots = len(records)
        self._action = shape.n_obs
        self._reward = shape.n_obs + shape.n_act

    @classmethod
    def in_memory(cls, capacity: int, shape: Shape) -> Replay:
        """Refused if there is not enough memory."""
        width = shape.width
        needed, free = capacity * width * 4, free_memory()
        if needed > free:
            raise Refused(
                f"a replay of {capacity} transitions takes {shown_bytes(needed)} ({needed} bytes), and only "
                f"{shown_bytes(free)} of memory are free: take a smaller replay_size, at most {free // (width * 4)}"
            )
        return cls(np.zeros((capacity, width), dtype=np.float32), capacity, shape)

    def __len__(self) -> int:
        return min(self.count, self.capacity)

    def add(self, obs: ArrayLike, action: ArrayLike, reward: float, terminated: bool, next_obs: ArrayLike) -> None:
        """Adds a transition, replacing the oldest one if no slot is free. A time limit is not a termination."""
        record = self.records[self.count % self.slots]
        a, r = self._action, self._reward
        record[:a] = obs
        record[a:r] = action
        record[r] = reward
        record[r + 1] = terminated
        record[r + 2 :] = next_obs
        self.count += 1

    @property
    def newest(self) -> int:
        """Slot of the newest record."""
        return (self.count - 1) % self.slots

    def slots_of(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slots of records counted from the oldest one in the replay."""
        if self.count <= self.capacity:
            return chosen
        return (chosen + (self.count - self.capacity)) % self.slots
