"""The replay as a file that is never rewritten by checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from rewirl.errors import Refused
from rewirl.files import open_file, sha256
from rewirl.memory import shown_bytes
from rewirl.storage.disk_errors import Room
from rewirl.training.replay import Replay, Shape
from rewirl.training.state import State

SEGMENT = 4096
"""Records that share one hash."""


class ReplayFile(Replay):
    """A replay as a memory-mapped file. A checkpoint stores only its count and a hash per segment."""

    def __init__(self, path: Path, capacity: int, slots: int, shape: Shape, *, writable: bool = True) -> None:
        self.path = path
        flags, mode = (os.O_RDWR, "r+") if writable else (os.O_RDONLY, "r")
        with os.fdopen(open_file(path, flags), f"{mode}b") as file:
            self._map = np.memmap(file, np.float32, mode, shape=(slots, shape.width))  # type: ignore[call-overload]
        super().__init__(np.asarray(self._map), capacity, shape)  # a plain array: memmap's own indexing is slow
        self._hashes: dict[int, str] = {}
        self._hashed = 0

    @staticmethod
    def slots_for(capacity: int, steps: int, checkpoint_every: int) -> int:
        """Enough for all steps, or for the capacity plus everything added since the older of the two checkpoints."""
        needed = min(steps, capacity + 2 * checkpoint_every + SEGMENT)
        return -(-needed // SEGMENT) * SEGMENT

    @classmethod
    def create(cls, path: Path, capacity: int, slots: int, shape: Shape) -> ReplayFile:
        """Reserves all space at once: a full disk is detected now, not in a later write to the map."""
        path.unlink(missing_ok=True)
        _reserve(path, 0, slots, shape)
        return cls(path, capacity, slots, shape)

    @classmethod
    def open(
        cls,
        path: Path,
        capacity: int,
        slots: int,
        shape: Shape,
        count: int,
        hashes: dict[int, str],
        *,
        writable: bool = True,
    ) -> ReplayFile:
        """The file as of a checkpoint; ValueError if a record that it needs has changed."""
        size, right = path.stat().st_size if path.is_file() else 0, slots * shape.width * 4
        if size < right:
            raise ValueError(f"{path} has {size} bytes and should have {right}")
        if slots < 1 or slots % SEGMENT:
            raise ValueError(f"{path} cannot have {slots} slots: the number must be a multiple of {SEGMENT}")
        replay = cls(path, capacity, slots, shape, writable=writable)
        replay.count = replay._hashed = count
        replay._hashes = dict(hashes)
        if set(hashes) != set(replay._segments()):
            raise ValueError(f"the hashes of {path} do not match {count} records")
        for segment, known in hashes.items():
            if replay._hash(segment) != known:
                first = segment * SEGMENT
                raise ValueError(f"{path} is damaged in the records {first} to {min(first + SEGMENT, count) - 1}")
        return replay

    @classmethod
    def load(cls, path: Path, capacity: int, shape: Shape, state: State, *, writable: bool = True) -> ReplayFile:
        """Opens the file in the condition that `state` describes."""
        slots, count, hashes = cls.read_state(state)
        return cls.open(path, capacity, slots, shape, count, hashes, writable=writable)

    @staticmethod
    def read_state(state: State) -> tuple[int, int, dict[int, str]]:
        """Slots, count and hashes."""
        hashes = {int(segment): known for segment, known in state.texts("replay_hashes").items()}
        return state.whole("replay_slots"), state.whole("replay_count"), hashes

    def state(self) -> State:
        """The state for a checkpoint. Syncs and hashes what was added since the last call."""
        hashes = {str(segment): known for segment, known in self.seal().items()}
        return State({"replay_slots": self.slots, "replay_count": self.count, "replay_hashes": hashes})

    def grown(self, slots: int) -> ReplayFile:
        """The same with more slots for a longer run; only while no record has been overwritten."""
        if slots <= self.slots or self.count > self.slots:
            return self
        _reserve(self.path, self.slots, slots, self.shape)
        grown = ReplayFile(self.path, self.capacity, slots, self.shape)
        grown.count, grown._hashes, grown._hashed = self.count, self._hashes, self._hashed
        return grown

    @property
    def slack(self) -> int:
        """Number of records that may be added after a checkpoint before one of its records is overwritten."""
        return self.slots - self.capacity - SEGMENT

    def seal(self) -> dict[int, str]:
        """Syncs everything to disk; returns the hash of every segment in use."""
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
    room = Room.at(path.parent)
    needed = room.taken((slots - have) * shape.width * 4)
    if needed > room.bytes:
        raise Refused(
            f"a replay of {slots} transitions takes {shown_bytes(needed)} ({needed} bytes), and only "
            f"{shown_bytes(room.bytes)} are free in {path.parent}: take a smaller replay_size"
        )
    size = slots * shape.width * 4
    fd = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            os.ftruncate(fd, size)
    except OSError as error:
        if not have:  # the part that was reserved would fill the disk
            path.unlink(missing_ok=True)
        raise Refused(f"the replay needs {size} bytes in {path.parent}: {error.strerror}") from error
    finally:
        os.close(fd)
