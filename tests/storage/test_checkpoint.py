"""Checkpoints: whole or not there, whatever happens between two system calls; every damage is found."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny

from rewirl import TD3
from rewirl.errors import Failed
from rewirl.files import write_aside
from rewirl.storage import checkpoint, resume, start
from rewirl.storage.checkpoint import Damaged
from rewirl.storage.disk_errors import Room

OLD = {"run.json": b'{"old": 1}\n', "state.safetensors": b"old" * 50}
NEW = {"run.json": b'{"new": 1}\n', "state.safetensors": b"new" * 50}
CALLS = ["open", "write", "fsync", "close", "mkdir", "rename", "unlink", "rmdir"]


def test_writes_reads_and_keeps_two(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        checkpoint.write(tmp_path, step, {"run.json": str(step).encode()})
    assert [path.name for path in checkpoint.found(tmp_path)] == ["step-000000030", "step-000000020"]
    assert checkpoint.read(checkpoint.found(tmp_path)[1]) == {"run.json": b"20"}


def test_one_of_the_same_step_is_replaced_if_it_says_something_else(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, 1, OLD)
    inode = path.stat().st_ino
    assert checkpoint.write(tmp_path, 1, OLD).stat().st_ino == inode
    assert checkpoint.read(checkpoint.write(tmp_path, 1, NEW)) == NEW
    assert os.listdir(tmp_path) == [path.name]
    for aside, left in ((True, NEW), (False, OLD)):  # killed between two names, and after them
        os.rename(path, tmp_path / f".replaced-{path.name}")
        if not aside:
            checkpoint.write(tmp_path, 1, OLD)
        checkpoint.recover(tmp_path)
        assert os.listdir(tmp_path) == [path.name]
        assert checkpoint.read(path) == left


def test_sha256sum_reads_the_manifest(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, 1, NEW)
    assert os.system(f"cd {path} && sha256sum --quiet --strict -c MANIFEST") == 0


class Counted:
    """System calls of this process: the n-th one does something else instead."""

    def __init__(self, patch: pytest.MonkeyPatch, n: int, instead: Callable[[str, tuple[Any, ...]], Any]) -> None:
        self.calls: list[str] = []
        for name in CALLS:
            patch.setattr(os, name, self._counted(name, getattr(os, name), n, instead))

    def _counted(self, name: str, real: Callable[..., Any], n: int, instead: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            self.calls.append(name)
            return instead(name, given) if len(self.calls) == n else real(*given, **more)

        return call


real_write = os.write


def half_a_write_then_death(name: str, given: tuple[Any, ...]) -> None:
    if name == "write":
        real_write(given[0], bytes(given[1])[: len(given[1]) // 2])
    os._exit(9)


def test_killed_between_any_two_system_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest that is found is the old one or the new one, whole; the next write leaves nothing else behind."""
    n, seen = 0, set()
    while True:
        n += 1
        folder = tmp_path / str(n)
        folder.mkdir()
        for step, files in ((1, {"run.json": b"older"}), (2, OLD)):
            checkpoint.write(folder, step, files)
        pid = os.fork()
        if pid == 0:
            Counted(monkeypatch, n, half_a_write_then_death)
            checkpoint.write(folder, 3, NEW)
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        newest = checkpoint.found(folder)[0]
        assert checkpoint.read(newest) == (NEW if newest.name == "step-000000003" else OLD)
        seen.add(newest.name)
        checkpoint.write(folder, 4, OLD)
        names = sorted(entry.name for entry in folder.iterdir())
        assert names in (["step-000000002", "step-000000004"], ["step-000000003", "step-000000004"])
        shutil.rmtree(folder)
        if killed == 0:
            break
    assert n > 15
    assert len(seen) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_any_system_call_that_fails_leaves_the_old_one_whole(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str, given: tuple[Any, ...]) -> None:
        raise OSError(number, os.strerror(number))

    checkpoint.write(tmp_path, 1, OLD)
    failed = 0
    for n in range(1, 40):
        with monkeypatch.context() as patch:
            counted = Counted(patch, n, fails)
            said = ""
            try:
                checkpoint.write(tmp_path, 2, NEW)
            except (Failed, OSError) as error:
                failed += 1
                said = str(error) if isinstance(error, Failed) else ""
        if said and number == errno.ENOSPC:
            # The files of NEW, the manifest and the folder, none of which fills a block.
            assert f"needs {(len(NEW) + 2) * Room.at(tmp_path).block} bytes" in said
            assert "step-000000001 is intact" in said
        assert checkpoint.read(tmp_path / "step-000000001") == OLD
        for path in checkpoint.found(tmp_path):
            checkpoint.read(path)
        shutil.rmtree(tmp_path / "step-000000002", ignore_errors=True)
        if len(counted.calls) < n:
            break
    assert failed > 10


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkpoint of a real run, as small as it gets."""
    with start(tiny.config(hidden=(2, 2), batch=2, steps=200), tmp_path / "run") as run:
        run.train(120)
        return run.checkpoint()


def test_every_flipped_byte_is_found_and_the_file_named(small: Path) -> None:
    flips = 0
    for file in sorted(small.iterdir()):
        before = file.read_bytes()
        damaged = bytearray(before)
        for place in range(len(before)):
            damaged[place] ^= 1 << (place % 8)
            file.write_bytes(damaged)
            with pytest.raises(Damaged, match=f"{small}/({file.name}|MANIFEST)"):
                checkpoint.read(small)
            damaged[place] = before[place]
            flips += 1
        file.write_bytes(before)
    checkpoint.read(small)
    assert flips > 5000


def test_every_truncation_is_found(small: Path) -> None:
    for file in sorted(small.iterdir()):
        before = file.read_bytes()
        for length in range(len(before)):
            file.write_bytes(before[:length])
            with pytest.raises(Damaged, match=str(small)):
                checkpoint.read(small)
        file.write_bytes(before)


def test_missing_and_added_files_are_found(small: Path) -> None:
    (small / "more.txt").write_bytes(b"")
    with pytest.raises(Damaged, match=r"more\.txt does not belong"):
        checkpoint.read(small)
    (small / "more.txt").unlink()
    (small / "run.json").rename(small / "run2.json")
    with pytest.raises(Damaged, match=r"run\.json cannot be read"):
        checkpoint.read(small)


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    for name in ("run.json", "state.safetensors", "config.toml", "evaluations.csv", "progress.csv", "MANIFEST"):
        folder = tmp_path / name
        with start(tiny.config(), folder) as run:
            run.train(330)
        newest, older = checkpoint.found(folder / "checkpoint")
        damaged = bytearray((newest / name).read_bytes())
        damaged[len(damaged) // 2] ^= 4
        (newest / name).write_bytes(damaged)
        with resume(folder) as run:
            assert run.step == checkpoint.step_of(older)
            assert f"{newest / name} is damaged" in run.notices[0]
            run.train()
        assert tiny.content(folder) == tiny.content(tmp_path / "whole")


def test_no_whole_checkpoint_is_said_with_every_file(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(330)
    for path in checkpoint.found(tmp_path / "run" / "checkpoint"):
        (path / "run.json").write_bytes(b"{}")
    with pytest.raises(Failed, match=r"run\.json is damaged.*run\.json is damaged"):
        resume(tmp_path / "run")
    assert len(checkpoint.found(tmp_path / "run" / "checkpoint")) == 2, "nothing is removed"


def test_leftovers_of_a_kill_are_removed(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(150)
    for name in ("checkpoint/.writing/run.json", "checkpoint/.removing/state.safetensors", ".policy.safetensors.x1"):
        leftover = tmp_path / "run" / name
        leftover.parent.mkdir(exist_ok=True)
        leftover.write_bytes(b"half")
    with resume(tmp_path / "run"):
        assert not list((tmp_path / "run").rglob(".*"))


class PowerCut:
    """Watches system calls: a file is on the disk when it was synced after its last write, a name when its folder was
    synced after it was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost: set[Path] = set()
        self.at_rename: list[set[Path]] = []
        self._paths: dict[int, Path] = {}
        for name in ("open", "write", "fsync", "rename"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            within = next((more[key] for key in ("dir_fd", "src_dir_fd") if more.get(key) is not None), None)
            first = self._paths.get(within, Path()) / args[0] if name in ("open", "rename") else Path()
            if name == "rename":
                self.at_rename.append({path for path in self.lost if path.is_relative_to(first)})
                self.lost.add(first.parent)
            done = real(*args, **more)
            if name == "open":
                self._paths[done] = first
                if args[1] & os.O_CREAT:
                    self.lost |= {first, first.parent}
            elif name == "write":
                self.lost.add(self._paths[args[0]])
            elif name == "fsync":
                self.lost.discard(self._paths[args[0]])
            return done

        return call


def test_nothing_has_its_final_name_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = PowerCut(monkeypatch)
    checkpoint.write(tmp_path, 7, {"run.json": b"{}", "state.safetensors": bytes(1000)})
    write_aside(tmp_path / "status.json", b"{}")
    TD3("Pendulum-v1", hidden=(4, 4)).save(tmp_path / "policy.safetensors")
    assert cut.at_rename == [set(), set(), set()], "a power cut after the rename would leave a hole"
    assert cut.lost == set(), "and nothing waits when it is said to be written"
