"""Waiting for what a program that a test has started does, instead of for some time."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path


def until_it_catches(number: signal.Signals, program: subprocess.Popen[str], seconds: float = 60.0) -> None:
    """Until a handler for this signal is installed: a run installs its handlers when it begins to train."""
    end = time.monotonic() + seconds
    while not _catches(number, program.pid):
        assert program.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)


def _catches(number: signal.Signals, pid: int) -> bool:
    status = Path("/proc", str(pid), "status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (number - 1) & 1)
