"""Waiting for what a program that a test has started does, instead of for some time."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 240.0
"""Seconds: a busy machine may take many times as long as a quiet one."""


def until(happens: Callable[[], bool], *programs: subprocess.Popen[str]) -> None:
    """Until something is so, while these programs run."""
    end = time.monotonic() + PATIENCE
    while not happens():
        assert all(program.poll() is None for program in programs), "a program ended before it happened"
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def until_it_catches(number: signal.Signals, program: subprocess.Popen[str]) -> None:
    """Until a handler for this signal is installed: a run installs its handlers when it begins to train."""
    until(lambda: catches(number, program.pid), program)


def until_it_is_sent(number: signal.Signals, pid: int) -> None:
    """Until this signal waits for a process that is stopped."""
    until(lambda: _has(number, "ShdPnd", pid))


def catches(number: signal.Signals, pid: int) -> bool:
    """Whether a process has a handler for this signal."""
    return _has(number, "SigCgt", pid)


def _has(number: signal.Signals, mask: str, pid: int) -> bool:
    status = Path("/proc", str(pid), "status").read_text()
    [signals] = [line.split()[1] for line in status.splitlines() if line.startswith(mask)]
    return bool(int(signals, 16) >> (number - 1) & 1)
