"""A whole agent as one file, written by `agent.save` and read by `TD3.load` and `SAC.load`.

The file is a policy file (`policies/policy.py`) with further content, so programs that read policies read it too:

    metadata    format "rewirl-agent"; everything else as in a policy file
    arrays      those of the policy; agent.state.*: networks, targets, optimizer, the current episode;
                agent.config, agent.run, agent.evaluations: config.toml, run.json and evaluations.csv, as bytes;
                agent.replay, if it was requested: one transition per row, the oldest first
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.methods import method
from rewirl.envs.creation import EnvLike, wrappers_of
from rewirl.errors import Refused
from rewirl.policies import sealed_file
from rewirl.policies.file_header import AGENT, AGENT_FORMAT
from rewirl.policies.policy import Policy, PolicyFileError
from rewirl.storage.checkpoint import UNFIT, check_all_read, format_values, parse_values
from rewirl.storage.logs.tables import content, parse
from rewirl.training.config import RunConfig
from rewirl.training.measurements import EvaluationRow
from rewirl.training.observers import Observer
from rewirl.training.replay import Replay
from rewirl.training.run import Run
from rewirl.training.state import State


@dataclass(frozen=True)
class AgentFile:
    """The content of a file, checked as far as possible without the environment."""

    path: Path
    policy: Policy
    config: RunConfig
    state: State
    evaluations: list[EvaluationRow]
    replay: NDArray[Any] | None


def save_agent(run: Run, path: str | Path, *, replay: bool = False) -> None:
    """Writes everything that the agent's next step depends on; the replay only if it is requested."""
    memory, state = run.loop.replay, run.state()
    state.values["replay_count"] = memory.count if replay else 0
    texts = {
        "config": run.config.to_toml().encode(),
        "run": format_values(state, wrappers_of(run.loop.env.env)),
        "evaluations": content(EvaluationRow, run.evaluations),
    }
    parts = State()
    parts.add_arrays(f"{AGENT}state.", state.arrays)
    parts.add_arrays(AGENT, {name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()})
    if replay:
        parts.add_arrays(AGENT, {"replay": memory.records[memory.slots_of(np.arange(len(memory)))]})
    tensors, metadata = run.policy().to_tensors()
    rule = type(run.config.wiring().rule)
    if rule is not method(run.config.method).rule:
        metadata["own_rule"] = rule.__name__
    sealed_file.write(path, tensors | parts.arrays, {**metadata, "format": AGENT_FORMAT})


def read_agent(path: str | Path) -> AgentFile:
    """The content of a file written by `save_agent`; anything else is refused."""
    policy = Policy.load(path)
    with sealed_file.opened(path) as file:
        if file.metadata["format"] != AGENT_FORMAT:
            raise PolicyFileError("this file contains a policy, which cannot learn: read it with Policy.load")
        parts = State(arrays=file.tensors())
        try:
            texts = {name: parts.arrays[f"{AGENT}{name}"].tobytes() for name in ("config", "run", "evaluations")}
            return AgentFile(
                path=Path(path),
                policy=policy,
                config=RunConfig.from_toml(texts["config"].decode("utf-8")),
                state=State(parse_values("its part 'run'", texts["run"]), parts.part(f"{AGENT}state.")),
                evaluations=parse(EvaluationRow, texts["evaluations"]),
                replay=parts.arrays.get(f"{AGENT}replay"),
            )
        except UNFIT as error:
            raise PolicyFileError(f"this is not an agent file: {error}") from error


def load_agent(
    file: AgentFile, *, config: RunConfig | None = None, env: EnvLike | None = None, observers: Sequence[Observer] = ()
) -> Run:
    """A run in memory that continues the saved one."""
    config, state = config or file.config, file.state
    run = Run(config, config.source(env), None, observers)
    try:
        sizes = (state.whole("n_obs"), state.whole("n_act"))
        if run.shape != sizes:
            raise Refused(
                f"{file.path} is for {sizes[0]} observations and {sizes[1]} actions, {config.task} has "
                f"{run.shape.n_obs} and {run.shape.n_act}"
            )
        if run.costs.links > sum(array.size for array in state.arrays.values()):
            raise ValueError("its config needs more links than the file has")
        run.begin(_replay(file, run))
        run.load_state(state)
        state.table("versions")
        check_all_read(state)
        run.log.rows = list(file.evaluations)
    except UNFIT as error:
        run.close()
        raise PolicyFileError(f"{file.path}: {error}") from error
    except BaseException:
        run.close()
        raise
    if run.step and file.replay is None:
        run.tell(run.loop.refill_notice(f"{file.path} has no replay"))
    return run


def _replay(file: AgentFile, run: Run) -> Replay:
    replay, count = Replay.in_memory(run.config.replay_size, run.shape), file.state.whole("replay_count")
    if file.replay is None:
        if count:
            raise ValueError(f"its replay of {count} transitions is missing")
        return replay
    expected = (min(count, replay.capacity), run.shape.width)
    if count > file.state.whole("step") or file.replay.shape != expected or file.replay.dtype != np.float32:
        raise ValueError(f"its replay must be float32 of shape {expected}, and is {file.replay.shape}")
    replay.count = count
    replay.records[replay.slots_of(np.arange(len(replay)))] = file.replay
    return replay
