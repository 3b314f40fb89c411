"""The environments of a run: how many there are, and whether they step in this process or in workers."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium

from rewirl.envs.creation import Source
from rewirl.envs.environment import Environment
from rewirl.envs.several import Environments, InTurn
from rewirl.envs.vector_rows import Row
from rewirl.envs.workers import CannotStart, Workers
from rewirl.errors import Refused


def make_first(source: Source, n: int, n_step: int = 1) -> list[Environment]:
    """All environments of a vector environment, else only the first of `n`. Refused if there cannot be `n`."""
    if n > 1 and isinstance(source.env, gymnasium.Env):
        raise Refused(
            f"envs={n} needs a task by its name, a function that creates an environment, or a vector environment: "
            "one environment cannot be in several episodes"
        )
    made = source.make_all()
    envs = [Environment(env, source.task) for env in made]
    if len(envs) > 1 and len(envs) != n:
        raise Refused(f"{source.task} is a vector environment with {len(envs)} environments, so envs cannot be {n}")
    if n_step > 1 and any(isinstance(env, Row) and env.is_late for env in made):
        raise Refused(
            f"{source.task} begins episodes one step after their end, which n_step={n_step} does not support: create "
            "it with autoreset_mode=AutoresetMode.SAME_STEP, or give envs and the task by its name"
        )
    return envs


def take_turns(
    source: Source, first: list[Environment], n: int, processes: int, tell: Callable[[str], None]
) -> Environments:
    """`n` environments, of which `first` are made already: in so many worker processes if that is possible."""
    if processes and len(first) == 1:
        try:
            return Workers(source, n, min(processes, n))
        except CannotStart as problem:
            tell(
                f"{source.task} cannot be made in worker processes ({problem}): its environments are stepped in this "
                "process; the results are the same"
            )
    more = [Environment(source.make(), source.task) for _ in range(n - len(first))]
    return InTurn([*first, *more], ours=[] if source.is_given else [*first[1:], *more])
