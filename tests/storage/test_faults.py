"""Folders that cannot be written to, locks, formats of the future."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

from rewirl.errors import Refused
from rewirl.storage import checkpoint, inspect_run, list_runs, resume, run_folder, start, verify
from rewirl.storage.checkpoint import FORMAT, MANIFEST
from rewirl.storage.folder import RunFolder
from rewirl.storage.lock import Holder, InUse, Lock, holder_of, start_of


def rewrite(path: Path, name: str, content: bytes) -> None:
    """Changes a file of a checkpoint and its manifest: as somebody would who wants it to be believed."""
    files = checkpoint.read(path)
    files[name] = content
    shutil.rmtree(path)
    checkpoint.write(path.parent, checkpoint.step_of(path), files)


# -------------------------------------------------------------------------- folders


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="file is a file, and a run needs a folder"):
        start(tiny.config(), tmp_path / "file" / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "run").mkdir(mode=0o755)
    os.seteuid(65534)
    try:
        for folder in (tmp_path / "run", tmp_path / "other"):
            with pytest.raises(Refused, match="cannot be written to"):
                start(tiny.config(), folder)
    finally:
        os.seteuid(0)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_that_has_a_run(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    before = tiny.content(tmp_path / "run")
    with pytest.raises(Refused, match=r"a run in .* already: resume it"):
        start(tiny.config(), tmp_path / "run")
    assert tiny.content(tmp_path / "run") == before
    with pytest.raises(Refused, match="no run in"):
        resume(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0b"])
def test_names_that_are_paths(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not a valid run name"):
        run_folder(tmp_path, name)


def test_runs_and_their_states(tmp_path: Path) -> None:
    tiny.train(tmp_path / "a-done")
    with start(tiny.config(), tmp_path / "b-stopped") as run:
        run.train(200)
    (tmp_path / "no-run").mkdir()
    (tmp_path / "sweep").mkdir()
    with start(tiny.config(), tmp_path / "sweep" / "c-running") as run:
        run.train(10)
        states = [(info.folder.name, info.state, info.step, info.resumable) for info in list_runs(tmp_path)]
        assert states == [
            ("a-done", "done", 600, False),
            ("b-stopped", "stopped", 200, True),
            ("c-running", "running", 10, False),
        ]
    done = inspect_run(tmp_path / "a-done")
    assert done.config == tiny.config()
    assert done.best_return == max(float(row["return_mean"]) for row in tiny.rows(done.folder / "evaluations.csv"))
    (tmp_path / "b-stopped" / "config.toml").write_bytes(b"\xff")
    (tmp_path / "b-stopped" / "status.json").write_bytes(b"[")
    (tmp_path / "b-stopped" / "evaluations.csv").write_bytes(b"nonsense")
    assert inspect_run(tmp_path / "b-stopped").config is None
    assert list_runs(tmp_path / "nowhere") == []
    assert list_runs(tmp_path / "a-done") == []


# ---------------------------------------------------------------------------- locks


def test_one_process_at_a_time(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(
        Refused,
        match=rf"in use by process {os.getpid()} on {platform.node()}, which is this process: close\(\) the run",
    ):
        Lock(tmp_path)
    lock.release()
    lock.release()
    Lock(tmp_path).release()


def test_who_is_refused_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process is quicker by a moment: after we saw that there is no folder, before we asked for its lock."""
    tiny.train(tmp_path / "whole")
    real, first = RunFolder.make, []

    def make(place: RunFolder) -> bool:
        monkeypatch.setattr(RunFolder, "make", real)
        first.append(start(tiny.config(), tmp_path / "run"))
        return real(place) or True  # as who asked before

    monkeypatch.setattr(RunFolder, "make", make)
    with pytest.raises(InUse):
        start(tiny.config(), tmp_path / "run")
    with first[0] as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    with pytest.raises(Refused, match=r"a run in .* already"):
        start(tiny.config(), tmp_path / "run")


def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def flock(fd: int, what: int) -> None:
        (tmp_path / "lock").unlink()
        real(fd, what)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InUse, match="released by another process: try again"):
        Lock(tmp_path)


def test_signs_of_life_come_while_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluation may take longer than a lock stays fresh."""
    monkeypatch.setattr("rewirl.storage.lock.SIGN_SECONDS", 0.01)
    hour_ago, others = time.time() - 3600, threading.enumerate()
    with start(tiny.config(), tmp_path / "run"):
        os.utime(tmp_path / "run" / "lock", (hour_ago, hour_ago))
        until = time.monotonic() + 20
        while (tmp_path / "run" / "lock").stat().st_mtime < hour_ago + 60 and time.monotonic() < until:
            time.sleep(0.01)
        assert (tmp_path / "run" / "lock").stat().st_mtime > hour_ago + 60
    own = [thread for thread in threading.enumerate() if thread.name == "rewirl lock" and thread not in others]
    assert all(ended(thread) for thread in own)


def ended(thread: threading.Thread) -> bool:
    thread.join(5)
    return not thread.is_alive()


def write_lock(folder: Path, **changes: Any) -> None:
    me = {"pid": os.getpid(), "started": start_of(os.getpid()), "host": platform.node()}
    (folder / "lock").write_text(json.dumps(me | changes))


def test_locks_of_dead_processes_are_taken_over(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    write_lock(tmp_path, pid=dead.pid)
    Lock(tmp_path).release()
    write_lock(tmp_path, started=1)  # its number was given to another process since
    Lock(tmp_path).release()
    (tmp_path / "lock").write_bytes(b"\0half a lo")  # the machine went down while it was written
    Lock(tmp_path).release()


def test_locks_of_living_processes_are_respected_without_flock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, what: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as on some network storage

    monkeypatch.setattr(fcntl, "flock", flock)
    write_lock(tmp_path)
    with pytest.raises(Refused, match="in use"):
        Lock(tmp_path)
    write_lock(tmp_path, started=1)
    Lock(tmp_path).release()


@pytest.mark.parametrize("flock", [True, False])
def test_a_stranger_cannot_lock_a_run_folder(flock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied or forged file never blocks a resume for longer than a heartbeat is fresh."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    ahead = time.time() + 10**8

    def no_flock(fd: int, what: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not flock:
        monkeypatch.setattr(fcntl, "flock", no_flock)
    write_lock(tmp_path, pid=dead.pid, started=-1)
    Lock(tmp_path).release()
    write_lock(tmp_path, host="elsewhere")
    os.utime(tmp_path / "lock", (ahead, ahead))
    Lock(tmp_path).release()
    if flock:  # a process that lives, but does not hold it
        write_lock(tmp_path, pid=os.getppid(), started=start_of(os.getppid()))
        Lock(tmp_path).release()


def test_locks_of_other_machines_hold_as_long_as_they_show_life(tmp_path: Path) -> None:
    write_lock(tmp_path, host="elsewhere", pid=1)
    with pytest.raises(Refused, match="process 1 on elsewhere"):
        Lock(tmp_path)
    hour_ago = time.time() - 3600
    os.utime(tmp_path / "lock", (hour_ago, hour_ago))
    lock = Lock(tmp_path)
    os.utime(tmp_path / "lock", (hour_ago, hour_ago))
    lock.touch()
    holder = holder_of(tmp_path)
    assert isinstance(holder, Holder)
    assert time.time() - holder.seen < 60
    lock.release()


# -------------------------------------------------------------------------- formats


def test_a_newer_format_says_what_it_needs(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
    newest = checkpoint.found(tmp_path / "run" / "checkpoint")[0]
    state = json.loads((newest / "run.json").read_bytes())
    rewrite(newest, "run.json", json.dumps({"format": FORMAT + 1, "needs": "3.1.4", "things": [state]}).encode())
    with pytest.raises(Refused, match=r"needs rewirl ≥ 3\.1\.4: this is"):
        resume(tmp_path / "run")
    assert any("needs rewirl ≥ 3.1.4" in problem for problem in verify(tmp_path / "run"))


def test_an_older_format_is_refused_and_not_misread(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
    newest = checkpoint.found(tmp_path / "run" / "checkpoint")[0]
    state = json.loads((newest / "run.json").read_bytes())
    rewrite(newest, "run.json", json.dumps({**state, "format": FORMAT - 1}).encode())
    with pytest.raises(Refused, match=r"format 1 of an older rewirl, this one reads 2: resume it with the version"):
        resume(tmp_path / "run")
    assert any("of an older rewirl" in problem for problem in verify(tmp_path / "run"))


def test_a_manifest_cannot_lead_elsewhere(tmp_path: Path) -> None:
    path = checkpoint.write(tmp_path, 1, {"run.json": b"1"})
    (tmp_path / "secret.txt").write_bytes(b"secret")
    for name in ("../secret.txt", "/etc/passwd", "a/b.txt", "..", ""):
        content = checkpoint._manifest({name: b"secret"})
        (path / MANIFEST).write_bytes(content)
        with pytest.raises(checkpoint.Damaged, match="not a manifest line"):
            checkpoint.read(path)
