"""A sweep on a Ray cluster: one task per run, run folders on storage that all machines see.

When a machine dies, Ray restarts its tasks on another one, where each resumes from its checkpoint.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from rewirl.envs.task_names import import_flags, import_module
from rewirl.errors import Failed, Refused, Stopped
from rewirl.experiments.sweep.workers import LOG, Ending
from rewirl.files import open_file
from rewirl.storage import resume, start
from rewirl.storage.lock import STALE, Holder, InUse
from rewirl.training import EvaluationRow, Observer, Run
from rewirl.training.config import RunConfig

PATIENCE = STALE + 60.0
"""Seconds after which the lock of a dead machine has expired."""


class RayTasks:
    """Parallel tasks on a cluster: one per core, or `jobs`."""

    def __init__(self, address: str | None = None, retries: int = 5, jobs: int | None = None) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError:
            raise Refused("a sweep on a cluster needs Ray: pip install 'rewirl[ray]'", "on") from None
        address = address or os.environ.get("RAY_ADDRESS")
        _check_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports from a Ray started here
        try:
            self._ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise Failed(f"the Ray cluster at {address or 'this machine'} cannot be used: {reason}") from None
        self._jobs, self._retries = jobs, retries
        self._running: dict[int, Any] = {}

    def room(self) -> bool:
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        return len(self._running) < (self._jobs or max(cores, 1))

    def start(self, key: int, config: RunConfig, folder: Path) -> None:
        task = self._ray.remote(num_cpus=config.threads, max_retries=self._retries)(train_here)
        self._running[key] = task.remote(config.to_toml(), str(folder.resolve()), import_flags(config.task)[1:])

    def ended(self) -> list[tuple[int, Ending]]:
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running.values()), num_returns=len(self._running), timeout=0)
        back = [(key, self._ending(ref)) for key, ref in self._running.items() if ref in ready]
        for key, _ in back:
            del self._running[key]
        return back

    def _ending(self, ref: Any) -> Ending:
        try:
            return Ending(*self._ray.get(ref))
        except self._ray.exceptions.TaskCancelledError:
            return Ending(Stopped.exit_code)
        except self._ray.exceptions.RayError as error:
            return Ending(Failed.exit_code, (str(error).strip() or type(error).__name__).splitlines()[0])

    def took(self, megabytes: float) -> None:
        """Ray manages the memory of its machines."""

    def stop(self, key: int | None = None) -> None:
        for number, ref in self._running.items():
            if key is None or key == number:
                self._ray.cancel(ref)

    def kill(self) -> None:
        for ref in self._running.values():
            self._ray.cancel(ref, force=True)

    def close(self) -> None:
        self._ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Ray itself would try for minutes. Addresses without a port (auto, local) are Ray's to find."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(
            f"no Ray cluster answers at {address} ({reason}): start one with  ray start --head  and give its address"
        ) from None


def train_here(config: str, folder: str, modules: Sequence[str] = ()) -> tuple[int, str]:
    """One run in this process, started or resumed; the exit code of `rewirl train`."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    descriptor = open_file(path / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with os.fdopen(descriptor, "a", encoding="utf-8", buffering=1) as log:
        try:
            for module in modules:
                import_module(module)
            with _opened(RunConfig.from_toml(config), path, LogLines(log)) as run:
                if not run.done:
                    run.train()
        except (Refused, Failed, Stopped) as error:
            print(f"rewirl: {error}", file=log)
            return error.exit_code, str(error)
    return 0, ""


def _opened(config: RunConfig, folder: Path, observer: Observer) -> Run:
    """Opens the run once its lock is free: the lock of a machine that just died may not have expired."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            if (folder / "config.toml").exists():
                return resume(folder, config=config, observers=[observer])
            return start(config, folder, observers=[observer])
        except InUse:
            if time.monotonic() > until:
                raise
            time.sleep(1.0)


class LogLines(Observer):
    """A line for each thing that happens."""

    def __init__(self, log: IO[str]) -> None:
        self._log = log

    def on_start(self, run: Run) -> None:
        self._say(f"from step {run.step:,} of {run.config.steps:,} by {Holder.me()}")

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        self._say(f"step {row.step:,}  return {row.return_mean:,.1f} ± {row.return_std:,.1f}")

    def on_notice(self, run: Run, text: str) -> None:
        self._say(f"note: {text}")

    def on_end(self, run: Run, error: BaseException | None) -> None:
        self._say(f"ended at step {run.step:,}")

    def _say(self, text: str) -> None:
        with suppress(OSError):  # a full disk is reported by the run itself
            print(text, file=self._log)
