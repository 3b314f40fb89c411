"""Workers of a sweep on this machine: parallel processes, each the normal `rewirl train`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rewirl.envs.task_names import import_flags
from rewirl.errors import Stopped
from rewirl.files import open_file
from rewirl.memory import free_memory
from rewirl.training.config import RunConfig
from rewirl.untrusted import opened

LOG = "train.log"
"""File in a run folder with the output of all sessions."""
RUN_MEMORY = 200 * 2**20
"""Expected bytes of a run until one is measured to need more."""
GROWING = 20.0
"""Seconds until a run has allocated its memory; until then it counts as if it had none."""
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One thread each, also for numerical libraries."""


@dataclass(frozen=True)
class Ending:
    """The outcome of a run."""

    code: int
    """The exit code of `rewirl train`; minus the signal's number if it was killed."""
    message: str = ""

    @property
    def stopped(self) -> bool:
        return self.code == Stopped.exit_code


class Workers(Protocol):
    """Trains runs and reports their outcomes."""

    def room(self) -> bool:
        """Whether another run can be started now."""

    def start(self, key: int, config: RunConfig, folder: Path) -> None:
        """Starts or resumes a run. `key` identifies it in `ended` and `stop`."""

    def ended(self) -> list[tuple[int, Ending]]:
        """Outcomes since the last call."""

    def took(self, megabytes: float) -> None:
        """Records the measured memory of a run."""

    def stop(self, key: int | None = None) -> None:
        """Requests one or all runs to save and end."""

    def kill(self) -> None:
        """Kills all immediately; earlier checkpoints stay intact."""

    def close(self) -> None:
        """Releases all resources."""


class Processes:
    """Parallel processes on this machine, limited by its memory."""

    def __init__(self, jobs: int, free: Callable[[], int] = free_memory) -> None:
        self._jobs, self._free = jobs, free
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path, int]] = {}
        self._began: dict[int, float] = {}
        self._configs = tempfile.TemporaryDirectory(prefix="rewirl-sweep-")
        self.memory = RUN_MEMORY
        """Bytes available for another run."""

    def room(self) -> bool:
        if len(self._running) >= self._jobs:
            return False
        growing = sum(time.monotonic() - self._began[key] < GROWING for key in self._running)
        return not self._running or self._free() > self.memory * (growing + 1)

    def took(self, megabytes: float) -> None:
        self.memory = max(self.memory, int(megabytes * 2**20))

    def start(self, key: int, config: RunConfig, folder: Path) -> None:
        file = Path(self._configs.name, f"{key}.toml")
        file.write_text(config.to_toml(), encoding="utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "rewirl", "train", "--config", str(file), "--run-dir", str(folder.resolve())]
        command += import_flags(config.task)
        with os.fdopen(open_file(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as log:
            since = log.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **dict.fromkeys(SINGLE, "1"), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C goes to the sweep, which stops them
            )
        self._running[key] = process, folder, since
        self._began[key] = time.monotonic()

    def ended(self) -> list[tuple[int, Ending]]:
        back = []
        for key, (process, folder, since) in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[key]
                back.append((key, Ending(code, _why(code, folder, since))))
        return back

    def stop(self, key: int | None = None) -> None:
        for number, (process, *_) in self._running.items():
            if key is None or key == number:
                process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        for process, *_ in self._running.values():
            process.kill()
        for process, *_ in self._running.values():
            process.wait()
        self._running.clear()

    def close(self) -> None:
        self._configs.cleanup()


def _why(code: int, folder: Path, since: int) -> str:
    """The last message of a failed run; its own log begins at `since`."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code == 0:
        return ""
    try:
        with opened(folder / LOG) as log:
            log.seek(since)
            lines = log.read().decode("utf-8", errors="replace").strip().splitlines()
    except (OSError, ValueError):
        lines = []
    said = [line.removeprefix("rewirl: ") for line in lines if line.startswith("rewirl: ")]
    return next(iter([*said[-1:], *lines[-1:]]), f"it exited with code {code}")
