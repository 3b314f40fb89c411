"""The replay: transitions as float32 records, in memory or in a file that checkpoints never rewrite."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewirl.agents import Transitions
from rewirl.errors import Refused
from rewirl.training.files import free_memory, sha256, shown_bytes

Floats = NDArray[np.float32]

SEGMENT = 4096
"""Records that share one hash."""


class Shape(NamedTuple):
    """Of a transition."""

    n_obs: int
    n_act: int

    @property
    def width(self) -> int:
        """Numbers in a record: obs | action | reward | terminated | next_obs."""
        return Transitions.width(self.n_obs, self.n_act)


class Replay:
    """The last `capacity` records; `count` have been added in all. Record n lies in slot n mod `slots`.

    With more slots than the capacity, records that are forgotten stay for a while: a checkpoint some steps back still
    finds all of its own, none overwritten.

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
        """Refused when there is not enough memory for it."""
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
        """Adds a transition, over the oldest one when there is no slot left. A time limit is no termination."""
        record = self.records[self.count % self.slots]
        a, r = self._action, self._reward
        record[:a] = obs
        record[a:r] = action
        record[r] = reward
        record[r + 1] = terminated
        record[r + 2 :] = next_obs
        self.count += 1

    def slots_of(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where records lie that are counted from the oldest one remembered, 0."""
        if self.count <= self.capacity:
            return chosen
        return (chosen + (self.count - self.capacity)) % self.slots


class ReplayFile(Replay):
    """A replay as a memory-mapped file. What a checkpoint needs of it is a count and a hash per segment."""

    def __init__(self, path: Path, capacity: int, slots: int, shape: Shape) -> None:
        self.path = path
        self._map = np.memmap(path, np.float32, "r+", shape=(slots, shape.width))
        super().__init__(np.asarray(self._map), capacity, shape)  # a plain array: memmap's own indexing is slow
        self._hashes: dict[int, str] = {}
        self._hashed = 0

    @staticmethod
    def slots_for(capacity: int, steps: int, checkpoint_every: int) -> int:
        """Enough for all steps, or for the capacity and what is added since the older of the two checkpoints kept."""
        needed = min(steps, capacity + 2 * checkpoint_every + SEGMENT)
        return -(-needed // SEGMENT) * SEGMENT

    @classmethod
    def create(cls, path: Path, capacity: int, slots: int, shape: Shape) -> ReplayFile:
        """Takes all the room at once: a full disk is refused now, and cannot strike a write into the map later."""
        path.unlink(missing_ok=True)
        _reserve(path, 0, slots, shape)
        return cls(path, capacity, slots, shape)

    @classmethod
    def open(
        cls, path: Path, capacity: int, slots: int, shape: Shape, count: int, hashes: dict[int, str]
    ) -> ReplayFile:
        """The file as a checkpoint knew it; ValueError if a record that it needs is not what it was."""
        size, right = path.stat().st_size if path.is_file() else 0, slots * shape.width * 4
        if size < right:
            raise ValueError(f"{path} has {size} bytes and should have {right}")
        if slots < 1 or slots % SEGMENT:
            raise ValueError(f"{path} cannot have {slots} slots: they are a multiple of {SEGMENT}")
        replay = cls(path, capacity, slots, shape)
        replay.count = replay._hashed = count
        replay._hashes = dict(hashes)
        if set(hashes) != set(replay._segments()):
            raise ValueError(f"the hashes of {path} are not those of {count} records")
        for segment, known in hashes.items():
            if replay._hash(segment) != known:
                first = segment * SEGMENT
                raise ValueError(f"{path} is damaged in the records {first} to {min(first + SEGMENT, count) - 1}")
        return replay

    def grown(self, slots: int) -> ReplayFile:
        """The same with more slots, as a longer run needs; only as long as no record was overwritten."""
        if slots <= self.slots or self.count > self.slots:
            return self
        _reserve(self.path, self.slots, slots, self.shape)
        grown = ReplayFile(self.path, self.capacity, slots, self.shape)
        grown.count, grown._hashes, grown._hashed = self.count, self._hashes, self._hashed
        return grown

    @property
    def slack(self) -> int:
        """Records that may be added after a checkpoint until one of its own is overwritten."""
        return self.slots - self.capacity - SEGMENT

    def seal(self) -> dict[int, str]:
        """Puts everything on the disk; the hash of every segment that is still whole and in use."""
        self._map.flush()
        self._hashes = {
            segment: self._hashes[segment] if (segment + 1) * SEGMENT <= self._hashed else self._hash(segment)
            for segment in self._segments()
        }
        self._hashed = self.count
        return dict(self._hashes)

    def _segments(self) -> range:
        return range((self.count - len(self)) // SEGMENT, -(-self.count // SEGMENT))

    def _hash(self, segment: int) -> str:
        begin = segment * SEGMENT
        slot = begin % self.slots  # slots are a multiple of the segment: none wraps around
        records = self.records[slot : slot + min(SEGMENT, self.count - begin)]
        return sha256(np.ascontiguousarray(records).data.cast("B"))


def _reserve(path: Path, have: int, slots: int, shape: Shape) -> None:
    needed, free = (slots - have) * shape.width * 4, shutil.disk_usage(path.parent).free
    if needed > free:
        raise Refused(
            f"a replay of {slots} transitions takes {shown_bytes(needed)} ({needed} bytes), and only "
            f"{shown_bytes(free)} are free in {path.parent}: take a smaller replay_size"
        )
    size = slots * shape.width * 4
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            os.ftruncate(fd, size)
    except OSError as error:
        raise Refused(f"the replay needs {size} bytes in {path.parent}: {error.strerror}") from error
    finally:
        os.close(fd)
