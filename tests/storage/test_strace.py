"""The same as a shim shows in test_checkpoint.py, with the system's own calls: strace kills at the n-th of each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rewirl.storage import checkpoint

OLD = {"run.json": b"old", "state.safetensors": b"old" * 50}
NEW = {"run.json": b"new", "state.safetensors": b"new" * 50}


def killed_at(call: str, n: int, folder: Path) -> bool:
    """Writes a checkpoint in another process, which is killed at its n-th such call, if it makes so many."""
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ready, 1)
        checkpoint.write(folder, 3, NEW)
        os._exit(0)
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={n}"]
    strace = subprocess.Popen(["strace", *inject, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    try:
        assert strace.stderr
        attached = strace.stderr.readline()
        if "attached" not in attached:
            os.kill(pid, signal.SIGKILL)
            pytest.skip(f"strace may not attach here: {attached}")
        os.write(go, b"!")
        _, status = os.waitpid(pid, 0)
        strace.communicate(timeout=240)
    finally:
        strace.kill()
        os.close(ready)
        os.close(go)
    return os.WIFSIGNALED(status)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["openat", "write", "fsync", "mkdirat", "renameat", "unlinkat"])
def test_killed_at_every_system_call(call: str, tmp_path: Path) -> None:
    kills = 0
    for n in range(1, 60):
        folder = tmp_path / str(n)
        folder.mkdir()
        for step, files in ((1, {"run.json": b"older"}), (2, OLD)):
            checkpoint.write(folder, step, files)
        if not killed_at(call, n, folder):
            break
        kills += 1
        newest = checkpoint.found(folder)[0]
        assert checkpoint.read(newest) == (NEW if newest.name == "step-000000003" else OLD)
        checkpoint.write(folder, 4, OLD)
        left = sorted(entry.name for entry in folder.iterdir())
        assert left in (["step-000000002", "step-000000004"], ["step-000000003", "step-000000004"])
    assert kills > 0
