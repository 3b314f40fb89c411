"""Disks that are full, when a run begins and on its way."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tiny

from rewirl import files
from rewirl.errors import Failed, Refused
from rewirl.storage import checkpoint, inspect_run, resume, start, verify
from rewirl.storage.disk_errors import Room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB and 100 files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=100", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_real_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """Full while a checkpoint is written: the previous one is intact, the message gives the bytes; the run resumes once
    there is space."""
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), small_disk / "run") as run:
        run.train(230)
        kept = [checkpoint.step_of(path) for path in checkpoint.found(small_disk / "run" / "checkpoint")]
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 1024)
        os.truncate(ballast, ballast.stat().st_size - 8192)  # enough for a row, not for a checkpoint
        with pytest.raises(Failed, match=r"the disk is full: a (checkpoint|policy) needs \d{4,6} bytes"):
            run.train()
    assert [checkpoint.step_of(path) for path in checkpoint.found(small_disk / "run" / "checkpoint")] == kept
    assert verify(small_disk / "run") == []
    ballast.unlink()
    with resume(small_disk / "run") as run:
        run.train()
    assert tiny.content(small_disk / "run") == tiny.content(tmp_path / "whole")


def test_a_limit_of_file_sizes(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(230)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
        try:
            with pytest.raises(Failed, match=r"the disk is full: .* needs \d+ bytes .*File too large"):
                run.train()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        assert run.step == 230


Disk = namedtuple("Disk", "f_bavail f_frsize f_files f_favail")


@pytest.mark.parametrize(
    ("disk", "said"),
    [
        (Disk(1, 4096, 0, 0), r"needs \d{5,6} bytes in .*, where 4096 are free"),
        (Disk(10**9, 4096, 1000, 3), r"needs \d+ files in .*, where 3 more can be created"),
    ],
)
def test_too_little_room_is_seen_before_anything_is_written(
    disk: Disk, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(140)
        monkeypatch.setattr(os, "statvfs", lambda path: disk)
        with pytest.raises(Failed, match=rf"{said}.*step-000000140 is intact"):
            run.train(149)
    assert not list((tmp_path / "run" / "checkpoint").glob(".*"))


def test_files_take_whole_blocks_but_not_whole_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file system reports blocks of a megabyte, and stores smaller ones."""
    monkeypatch.setattr(os, "statvfs", lambda path: Disk(7, 1 << 20, 0, 0))
    assert (Room.at(Path("x")).bytes, Room.at(Path("x")).taken(1)) == (7 << 20, 1 << 16)


def test_what_is_said_to_be_needed_is_more_than_what_is_free(small_disk: Path) -> None:
    """Whatever is left: files take whole blocks."""
    with start(tiny.config(steps=700), small_disk / "run") as run:
        run.train(150)
        checkpoints = small_disk / "run" / "checkpoint"
        size = 4096 + sum(-(-file.stat().st_size // 4096) * 4096 for file in checkpoints.rglob("*") if file.is_file())
        failed = 0
        for spare in range(4096, size, 8192):
            free = os.statvfs(small_disk)
            (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - spare))
            try:
                run.checkpoint()
                run.train(run.step + 10)
            except Failed as error:
                needed, left = map(int, re.findall(r"needs (\d+) bytes in .*, where (\d+) are free", str(error))[0])
                assert needed > left >= spare - 4096
                failed += 1
            (small_disk / "ballast").unlink()
        assert failed


def test_a_disk_without_room_for_more_files(small_disk: Path) -> None:
    with start(tiny.config(), small_disk / "run") as run:
        run.train(230)
        while os.statvfs(small_disk).f_favail > 4:
            (small_disk / f"file{os.statvfs(small_disk).f_favail}").touch()
        with pytest.raises(Failed, match=r"the disk is full: a checkpoint needs \d+ files in .*, where \d more can be"):
            run.train()
    for file in small_disk.glob("file*"):
        file.unlink()
    assert verify(small_disk / "run") == []


def test_a_replay_without_room_leaves_nothing_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, offset: int, size: int) -> None:
        os.truncate(fd, size)  # as file systems may that reserve a part
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    (tmp_path / "run").mkdir()
    with pytest.raises(Refused, match="the replay needs 163840 bytes"):
        start(tiny.config(), tmp_path / "run")
    assert not (tmp_path / "run" / "replay.bin").exists()


@pytest.mark.parametrize("name", ["evaluations.csv", "progress.csv"])
def test_a_full_disk_while_rows_are_written(name: str, tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(230)

        table = getattr(run.store, f"_{name.removesuffix('.csv')}")
        file = table._file

        class Full:
            def write(self, content: bytes) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

        table._file = Full()
        with pytest.raises(
            Failed, match=rf"the disk is full: .*{name} could not be written .*free some space and resume"
        ):
            run.train()
    assert inspect_run(tmp_path / "run").state == "failed"
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


@pytest.fixture
def full_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the disk full for one file; for none with an empty name."""
    real_new, real_pwrite = files.write_new, os.pwrite
    name = ""

    def full() -> OSError:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_new(path: Path, content: bytes) -> None:
        if name and path.name.startswith(f".{name}."):
            raise full()
        real_new(path, content)

    def pwrite(*given: Any) -> int:
        if name == "lock":
            raise full()
        return real_pwrite(*given)

    def choose(chosen: str) -> None:
        nonlocal name
        name = chosen

    monkeypatch.setattr(files, "write_new", write_new)
    monkeypatch.setattr(os, "pwrite", pwrite)
    return choose


@pytest.mark.parametrize("name", ["lock", "config.toml", "about.json", "status.json", "initial_policy.safetensors"])
@pytest.mark.parametrize("there_before", [False, True])
def test_a_full_disk_when_a_run_begins(
    name: str, there_before: bool, tmp_path: Path, full_for: Callable[[str], None]
) -> None:
    """A sentence that promises no checkpoint, and nothing is left of a run that did not begin."""
    policy = tiny.train(tmp_path / "whole").policy()
    policy.save(tmp_path / "p.safetensors")
    config = tiny.config(initial_samples=str(tmp_path / "p.safetensors"))
    if there_before:
        (tmp_path / "run").mkdir()
    full_for(name)
    with pytest.raises((Failed, Refused)) as caught, start(config, tmp_path / "run") as run:
        run.train()
    assert caught.match(rf"{name} could not be written .*No space left.*free some space")
    assert "checkpoint is intact" not in str(caught.value)
    if name != "status.json":
        assert not (tmp_path / "run" / "config.toml").exists() or there_before
        assert (tmp_path / "run").exists() == there_before
    full_for("")
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    with start(config, tmp_path / "run") as run:
        run.train(120)


@pytest.mark.parametrize("name", ["lock", "config.toml", "status.json", "best_policy.safetensors"])
def test_a_full_disk_when_a_run_is_resumed(name: str, tmp_path: Path, full_for: Callable[[str], None]) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    full_for(name)
    with pytest.raises((Failed, Refused)) as caught, resume(tmp_path / "run") as run:
        run.train()
    assert caught.match(rf"{name} could not be written .*No space left.*free some space")
    full_for("")
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        assert run.step == 320
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_a_small_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    with pytest.raises((Refused, Failed), match=r"No space left|are free"):
        start(tiny.config(), small_disk / "run")
    assert not (small_disk / "run").exists()
