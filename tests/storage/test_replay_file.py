"""The replay: records in their places, none overwritten that a checkpoint needs, room checked before the first step."""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import tiny
from numpy.testing import assert_array_equal

from rewirl.errors import Failed, Refused
from rewirl.storage import checkpoint, resume, start, verify
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.training.replay import Replay, Shape

SHAPE = Shape(2, 1)


def fill(replay: Replay, begin: int, end: int) -> None:
    for n in range(begin, end):
        replay.add([n, n], [n], n, n % 2 == 0, [n + 1, n + 1])


def remembered(replay: Replay) -> list[int]:
    """Numbers of the records from the oldest to the newest."""
    return replay.records[replay.slots_of(np.arange(len(replay)))][:, 0].astype(int).tolist()


@pytest.mark.parametrize("count", [1, 9, 10, 11, 25, 48, 49, 100])
def test_the_last_records_in_order(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewirl.storage.logs.replay_file.SEGMENT", 8)
    in_memory = Replay.in_memory(10, SHAPE)
    in_file = ReplayFile.create(tmp_path / "replay.bin", 10, ReplayFile.slots_for(10, 1000, 12), SHAPE)
    assert in_file.slots == 48
    for replay in (in_memory, in_file):
        fill(replay, 0, count)
        assert remembered(replay) == list(range(max(0, count - 10), count))
    newest = (count - 1) % in_file.slots
    assert_array_equal(in_file.records[newest], [count - 1] * 4 + [count % 2] + [count] * 2)


def test_what_was_there_at_a_checkpoint_is_there_until_the_slack_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewirl.storage.logs.replay_file.SEGMENT", 8)
    path = tmp_path / "replay.bin"
    replay = ReplayFile.create(path, 20, ReplayFile.slots_for(20, 1000, 10), SHAPE)
    fill(replay, 0, 133)
    hashes = replay.seal()
    fill(replay, 133, 133 + replay.slack)
    then = ReplayFile.open(path, 20, replay.slots, SHAPE, 133, hashes)
    assert remembered(then) == list(range(113, 133))
    assert replay.slack >= 2 * 10, "two checkpoints are kept"
    fill(replay, 133 + replay.slack, 133 + replay.slack + 16)
    with pytest.raises(ValueError, match="damaged in the records"):
        ReplayFile.open(path, 20, replay.slots, SHAPE, 133, hashes)


def test_hashes_of_parts_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewirl.storage.logs.replay_file.SEGMENT", 8)
    replays = [ReplayFile.create(tmp_path / name, 64, 64, SHAPE) for name in ("often", "once")]
    for end in (1, 3, 8, 9, 30, 31, 57):
        fill(replays[0], replays[0].count, end)
        replays[0].seal()
    fill(replays[1], 0, 57)
    assert replays[0].seal() == replays[1].seal()


def test_every_flipped_byte_of_a_used_record_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewirl.storage.logs.replay_file.SEGMENT", 8)
    path = tmp_path / "replay.bin"
    replay = ReplayFile.create(path, 64, 64, SHAPE)
    fill(replay, 0, 21)
    hashes = replay.seal()
    used = 21 * SHAPE.width * 4
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 3):
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        if place < used:
            with pytest.raises(ValueError, match=rf"{path} is damaged in the records {place // 224 * 8} to"):
                ReplayFile.open(path, 64, 64, SHAPE, 21, hashes)
        else:
            ReplayFile.open(path, 64, 64, SHAPE, 21, hashes)
        content[place] ^= 1 << place % 8
    for length in (0, 1, used, 64 * SHAPE.width * 4 - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=f"has {length} bytes and should have 1792"):
            ReplayFile.open(path, 64, 64, SHAPE, 21, hashes)


def test_a_damaged_replay_takes_the_run_back_as_far_as_needed(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(330)
    newest, older = map(checkpoint.step_of, checkpoint.found(tmp_path / "run" / "checkpoint"))
    path, width = tmp_path / "run" / "replay.bin", Shape(3, 2).width * 4
    content = bytearray(path.read_bytes())
    content[(newest - 1) * width + 5] ^= 1
    path.write_bytes(content)
    assert any("replay.bin is damaged" in problem for problem in verify(tmp_path / "run"))
    with resume(tmp_path / "run") as run:
        assert run.step == older
        assert "replay.bin is damaged in the records" in run.notices[0]
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_a_replay_that_no_checkpoint_can_use(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(330)
    os.truncate(tmp_path / "run" / "replay.bin", 1000)
    with pytest.raises(Failed, match=r"no checkpoint .* can be used: .*replay\.bin has 1000 bytes"):
        resume(tmp_path / "run")
    assert (tmp_path / "run" / "policy.safetensors").exists()


Disk = namedtuple("Disk", "f_bavail f_frsize f_files f_favail")


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_replay_larger_than_what_is_free_is_refused_with_its_size(
    in_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obs 3, action 2, reward, terminated, obs 3: 10 numbers, 40 bytes."""
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(1_000_000, 1, 0, 0))
    monkeypatch.setattr("rewirl.training.replay.free_memory", lambda: 1_000_000)
    config = tiny.config(steps=409_600, replay_size=1_000_000)
    size = 409_600 * 40 if in_folder else 1_000_000 * 40
    with pytest.raises(Refused, match=rf"takes {size / 1e6:.3g} MB \({size} bytes\).*1 MB .*free.*smaller replay_size"):
        start(config, tmp_path / "run" if in_folder else None)
    assert not (tmp_path / "run").exists()


def test_no_room_although_the_disk_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(Refused, match="the replay needs 163840 bytes"):
        start(tiny.config(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_has_its_room_before_the_first_step(tmp_path: Path) -> None:
    """Or a full disk would kill the process (SIGBUS) when it writes into the map."""
    ReplayFile.create(tmp_path / "replay.bin", 10_000, 8192, SHAPE)
    status = (tmp_path / "replay.bin").stat()
    assert status.st_blocks * 512 >= status.st_size == 8192 * SHAPE.width * 4
