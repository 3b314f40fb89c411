"""Several environments in worker processes, which step while the agent learns. Results are those of `InTurn`.

A worker has some of the environments and does what it is asked in order. When an episode ends it begins the next one
by itself. It ends when the pipe to the training process closes, so also when that process is killed.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rewirl.envs.creation import Source, close
from rewirl.envs.environment import Environment, Floats, Misbehaved
from rewirl.envs.several import Outcome, Past, restored, stepped
from rewirl.envs.task_names import import_module_of

START = (
    "import sys, json; fd, sys.path[:] = json.loads(sys.argv[1]); from rewirl.envs import workers; workers.serve(fd)"
)
"""A program of its own instead of multiprocessing's spawn, which would run the user's script again."""
PATIENCE = 3.0
"""Seconds that a worker has to close its environments."""


class CannotStart(Exception):
    """The environments cannot be made in other processes; the message says why."""


@dataclass(frozen=True)
class Failure:
    """What a worker answers when an environment misbehaves."""

    text: str


class Workers:
    """Environments in `processes` worker processes: number i in worker i mod `processes`."""

    def __init__(self, source: Source, n: int, processes: int) -> None:
        """Raises CannotStart if the source cannot be sent to another process, or makes no environment there."""
        self._task, self._n = source.task, n
        self._answers: list[deque[Any]] = [deque() for _ in range(n)]
        self._begins = [False] * n
        """Whether the worker was asked for the next episode, or begins it by itself."""
        self._workers: list[_Worker] = []
        try:
            job = _packed(source)
            for w in range(processes):
                self._workers.append(_Worker(job, len(range(w, n, processes))))
            for worker in self._workers:
                worker.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def begin(self, i: int, seed: int | None) -> Floats:
        if not self._begins[i]:
            self._ask(i, "begin", seed)
        self._begins[i] = False
        obs: Floats = self._answer(i)
        return obs

    def waits(self, i: int) -> bool:
        return False

    def send(self, i: int, action: Floats) -> None:
        with suppress(Misbehaved):  # a dead worker is reported when the outcome is needed: between two steps
            self._ask(i, "step", action)

    def receive(self, i: int) -> Outcome:
        outcome = self._answer(i)
        assert isinstance(outcome, Outcome)
        self._begins[i] = outcome.ended
        return outcome

    def restore(self, i: int, past: Past) -> Floats | None:
        self._ask(i, "restore", past)
        obs: Floats | None = self._answer(i)
        return obs

    def close(self) -> list[str]:
        for worker in self._workers:
            worker.end.close()
        for worker in self._workers:
            worker.stop()
        return []

    def _ask(self, i: int, order: str, given: Any) -> None:
        worker = self._workers[i % len(self._workers)]
        try:
            worker.end.send((i // len(self._workers), order, given))
        except OSError:
            raise self._died(worker) from None

    def _answer(self, i: int) -> Any:
        """The next answer about an environment; those about others are kept."""
        worker, first = self._workers[i % len(self._workers)], i % len(self._workers)
        while not self._answers[i]:
            try:
                k, answer = worker.end.recv()
            except (OSError, EOFError):
                raise self._died(worker) from None
            self._answers[first + k * len(self._workers)].append(answer)
        answer = self._answers[i].popleft()
        if isinstance(answer, Failure):
            raise Misbehaved(answer.text)
        return answer

    def _died(self, worker: _Worker) -> Misbehaved:
        return Misbehaved(f"{self._task}: the process that steps it {worker.how_it_ended()}")


class _Worker:
    """A process as the training process sees it."""

    def __init__(self, job: bytes, count: int) -> None:
        self.end, theirs = Pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps([theirs.fileno(), sys.path])],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C and a closed terminal concern the training process alone
            )
        finally:
            theirs.close()
        self.end.send(count)
        self.end.send_bytes(job)

    def wait_until_ready(self) -> None:
        try:
            problem = self.end.recv()
        except (OSError, EOFError):
            problem = f"the process {self.how_it_ended()}"
        if problem is not None:
            raise CannotStart(problem)

    def how_it_ended(self) -> str:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def stop(self) -> None:
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _packed(source: Source) -> bytes:
    """The source, and the specification of its task, which may be registered in this process only."""
    spec = gymnasium.registry.get(source.env.rpartition(":")[2]) if isinstance(source.env, str) else None
    try:
        return pickle.dumps((source, spec))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CannotStart(str(error)) from None


# ------------------------------------------------------------------ in the other process


def serve(fd: int) -> None:
    """A worker: runs until the training process closes the pipe or dies."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)  # the training process handles them, and closes the pipe at its end
    end = Connection(fd)
    envs: list[Environment] = []
    try:
        count = end.recv()
        try:
            source, spec = pickle.loads(end.recv_bytes())
            envs += [_made(source, spec) for _ in range(count)]
        except Exception as error:
            end.send(f"{type(error).__name__}: {error}")
            return
        end.send(None)
        orders: SimpleQueue[tuple[int, str, Any] | None] = SimpleQueue()
        threading.Thread(target=_listen, args=(end, orders), daemon=True).start()
        while (order := orders.get()) is not None:
            for answer in _answers(envs[order[0]], *order[1:]):
                end.send((order[0], answer))
    except (EOFError, OSError):
        pass
    finally:
        for env in envs:
            close(env.env)


def _made(source: Source, spec: EnvSpec | None) -> Environment:
    if isinstance(source.env, str):
        import_module_of(source.env)  # the training process has made the task, so it was allowed to
    if spec is not None and spec.id not in gymnasium.registry:
        if isinstance(spec.entry_point, str):
            import_module_of(spec.entry_point)  # which may register the task
        gymnasium.registry.setdefault(spec.id, spec)
    return Environment(source.make(), source.task)


def _listen(end: Connection, orders: SimpleQueue[tuple[int, str, Any] | None]) -> None:
    """Takes orders as they come, so that neither process ever waits for the other one to read."""
    try:
        while True:
            orders.put(end.recv())
    except (EOFError, OSError):
        orders.put(None)
        time.sleep(PATIENCE)
        os._exit(0)  # a step that does not end must not outlive the run


def _answers(env: Environment, order: str, given: Any) -> Iterator[Outcome | Floats | Failure | None]:
    try:
        if order == "restore":
            yield restored(env, given)
        elif order == "begin":
            yield env.reset(given)
        else:
            outcome = stepped(env, given)
            yield outcome
            if outcome.ended:
                yield env.reset()
    except Misbehaved as error:
        yield Failure(str(error))
