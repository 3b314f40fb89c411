"""Evaluation in this process or in another one on a spare core, with the same results."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import deque
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Protocol

from rewirl import nn
from rewirl.envs.creation import Source, close
from rewirl.envs.environment import Environment, Misbehaved
from rewirl.envs.task_names import import_module_of
from rewirl.errors import Refused
from rewirl.training.evaluation.critic_bias import Visits, biases
from rewirl.training.evaluation.episodes import Evaluation, Snapshot, evaluate, evaluation_seed


class Evaluator(Protocol):
    """Takes snapshots and returns their evaluations, in order."""

    pending: deque[Snapshot]
    """Snapshots not yet evaluated, or whose result was not yet taken."""

    def submit(self, snapshot: Snapshot) -> None: ...
    def next(self, wait: bool) -> Evaluation | None:
        """The evaluation of the first pending snapshot; None if there is none, or (without waiting) not yet."""
        ...

    def close(self) -> None: ...


class Here:
    """Evaluates when the result is requested."""

    def __init__(self, source: Source, seed: int, episodes: int) -> None:
        self.pending: deque[Snapshot] = deque()
        self._seed, self._episodes = seed, episodes
        self._env = Environment(source.another(), source.task)

    def submit(self, snapshot: Snapshot) -> None:
        self.pending.append(snapshot)

    def next(self, wait: bool) -> Evaluation | None:
        if not self.pending:
            return None
        evaluation = _evaluation(self.pending[0], self._env, self._seed, self._episodes)
        self.pending.popleft()
        return evaluation

    def close(self) -> None:
        close(self._env.env)


class Elsewhere:
    """Evaluates in another process; if that dies, the rest is evaluated here."""

    def __init__(self, source: Source, seed: int, episodes: int) -> None:
        self.pending: deque[Snapshot] = deque()
        self._source, self._seed, self._episodes = source, seed, episodes
        self._here: Here | None = None
        context = multiprocessing.get_context("spawn")
        self._end, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, source, seed, episodes, nn.isa()), name="rewirl evaluation", daemon=True
        )
        try:
            self._process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise Refused(
                f"{source.task} cannot be evaluated in another process ({error}): give a task by name or a function "
                "at the top of a module, or evaluate in this process (eval_process = false)"
            ) from None
        finally:
            theirs.close()

    def submit(self, snapshot: Snapshot) -> None:
        self.pending.append(snapshot)
        if self._here:
            self._here.submit(snapshot)
            return
        try:
            self._end.send(snapshot)
        except OSError:
            self._evaluate_here()

    def next(self, wait: bool) -> Evaluation | None:
        if not self.pending:
            return None
        if not self._here:
            try:
                if not wait and not self._end.poll():
                    return None
                answer = self._end.recv()
            except (OSError, EOFError):
                self._evaluate_here()
            else:
                if isinstance(answer, str):
                    raise Misbehaved(answer)
                assert isinstance(answer, Evaluation)
                self.pending.popleft()
                return answer
        assert self._here
        evaluation = self._here.next(wait)
        self.pending.popleft()
        return evaluation

    def _evaluate_here(self) -> None:
        self._here = Here(self._source, self._seed, self._episodes)
        for snapshot in self.pending:
            self._here.submit(snapshot)

    def close(self) -> None:
        self._end.close()
        self._process.kill()
        self._process.join()
        if self._here:
            self._here.close()


def _evaluation(snapshot: Snapshot, env: Environment, seed: int, episodes: int) -> Evaluation:
    own = evaluation_seed(seed, snapshot.step)
    try:
        visits = Visits(snapshot.gamma, snapshot.scaling) if snapshot.critics else None
        evaluation = evaluate(snapshot.acting(env.actions), env, episodes, own, visits)
        return replace(evaluation, q_bias=biases(snapshot.critics, visits)) if visits else evaluation
    except Misbehaved as error:
        raise Misbehaved(f"{error}, in the evaluation at step {snapshot.step} with seed {own}") from error


def _serve(end: Connection, source: Source, seed: int, episodes: int, isa: str) -> None:
    """The other process: runs until the first one closes the pipe or dies."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # asks the first process for a checkpoint
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process handles Ctrl-C and ends this one
    try:
        nn.select_isa(isa)
        if isinstance(source.env, str):
            import_module_of(source.env)  # the first process has created the task, so its module was allowed
        env = Environment(source.another(), source.task)
        while True:
            snapshot = end.recv()
            end.send(_evaluation(snapshot, env, seed, episodes))
    except (Refused, Misbehaved) as error:
        end.send(str(error))
    except (EOFError, OSError):
        pass
