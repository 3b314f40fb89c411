"""The rows of a run, and its pending evaluations."""

from __future__ import annotations

import math
import resource
import sys
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rewirl.agents import Agent, Costs, Diverged
from rewirl.nn import Network
from rewirl.policies.scaling import Scaling
from rewirl.training.evaluation.critic_bias import Critic, critics_of
from rewirl.training.evaluation.diagnostics import diagnose
from rewirl.training.evaluation.episodes import Evaluation, Snapshot
from rewirl.training.measurements import NETWORKS, STATISTICS, DiagnosticsRow, EvaluationRow
from rewirl.training.state import State

if TYPE_CHECKING:
    from rewirl.training.run import Run
    from rewirl.training.store import Store


@dataclass(frozen=True)
class Pending:
    """A row whose evaluation is not complete."""

    values: dict[str, Any]
    """The values of the row that were known when it was started."""
    acted: int
    """Number of actions that the policy had chosen in training by then."""
    snapshot: Snapshot
    diagnostics: list[DiagnosticsRow] = field(default_factory=list)
    """Diagnostics of its step, without the critic bias."""

    def __post_init__(self) -> None:
        unknown = ("return_mean", "return_std", "return_min", "return_max", "length_mean", "full_flops")
        known: dict[str, Any] = {**dict.fromkeys(unknown, 0.0), **self.values}
        EvaluationRow(**known)  # TypeError if it is not a row
        for name, value in {"acted": self.acted, "updates": self.values["updates"]}.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} must be a number of actions, not {value!r}")


class RunLog:
    """The evaluations of a run, complete and pending. Every row is passed to the store, if there is one."""

    def __init__(self, costs: Costs, store: Store | None) -> None:
        self._costs, self._store = costs, store
        self.rows: list[EvaluationRow] = []
        self.diagnostics: list[DiagnosticsRow] = []
        self.pending: deque[Pending] = deque()
        self.evaluation_steps = 0
        self.row_step, self.row_seconds = 0, 0.0

    def state(self) -> State:
        """Counters and pending rows."""
        values = {
            "evaluation_steps": self.evaluation_steps,
            "row_step": self.row_step,
            "row_seconds": self.row_seconds,
            "pending": [
                {
                    "values": pending.values,
                    "acted": pending.acted,
                    "diagnostics": [asdict(row) for row in pending.diagnostics],
                }
                for pending in self.pending
            ],
        }
        state = State(values)
        for number, pending in enumerate(self.pending):
            state.add_arrays(f"pending.{number}.", pending.snapshot.state)
            state.add_arrays(f"pending_scaling.{number}.", pending.snapshot.scaling.arrays())
            for name, critic in pending.snapshot.critics.items():
                state.add_arrays(f"pending_critics.{number}.{name}.", critic.arrays)
        return state

    def load_state(self, state: State, agent: Agent) -> None:
        """Restores what `state` returned; complete rows come from the store."""
        self.evaluation_steps = state.whole("evaluation_steps")
        self.row_step, self.row_seconds = state.whole("row_step"), state.number("row_seconds")
        self.pending = deque()
        for number, row in enumerate(state.tables("pending")):
            scaling = Scaling.with_arrays(state.part(f"pending_scaling.{number}."), like=agent.normaliser.scaling)
            snapshot = Snapshot.with_state(agent, row["values"]["step"], state.part(f"pending.{number}."), scaling)
            snapshot.network()  # ValueError if it is invalid
            diagnostics = [DiagnosticsRow(**values) for values in row.get("diagnostics", [])]
            snapshot = snapshot.with_critics(agent, _saved_critics(agent, state, number))
            self.pending.append(Pending(row["values"], row["acted"], snapshot, diagnostics))

    @property
    def begun(self) -> bool:
        """Whether there is a row, complete or pending."""
        return bool(self.rows or self.pending)

    @property
    def last_step(self) -> int | None:
        """Step of the last row, complete or pending."""
        if self.pending:
            return int(self.pending[-1].values["step"])
        return self.rows[-1].step if self.rows else None

    def open_row(self, run: Run) -> Pending:
        """Starts a row for the current agent."""
        agent, step, seconds = run.agent, run.step, run.seconds
        statistics = agent.statistics()
        for name, value in statistics.items():
            if not math.isfinite(value):
                raise Diverged(f"the average of {name} is {value} at step {step}")
        elapsed = seconds - self.row_seconds
        values = {
            "step": step,
            "seconds": round(seconds, 3),
            "steps_per_second": round((step - self.row_step) / elapsed, 1) if elapsed > 0 else 0.0,
            "memory_mb": own_memory_mb(),
            "episodes": run.episodes,
            "updates": agent.updates,
            "links": self._costs.links,
            **{f"{name}_links": _per_layer(agent.networks.get(name)) for name in NETWORKS},
            "paper_flops": self._costs.paper_flops(agent.updates),
            **{name: statistics.get(name) for name in STATISTICS},
        }
        self.row_step, self.row_seconds = step, seconds
        if self._store:
            self._store.add_wiring(agent.networks)
        snapshot = Snapshot.of(agent, step).with_critics(agent, critics_of(agent))
        diagnostics = diagnose(agent, run.loop.replay, run.config.seed, step)
        self.pending.append(Pending(values, run.loop.acted, snapshot, diagnostics))
        return self.pending[-1]

    def close_row(self, evaluation: Evaluation) -> tuple[EvaluationRow, bool]:
        """The first pending row with its evaluation, and whether it is the best so far."""
        pending = self.pending.popleft()
        self.evaluation_steps += evaluation.steps
        row = EvaluationRow(
            return_mean=evaluation.mean,
            return_std=evaluation.std,
            return_min=evaluation.min,
            return_max=evaluation.max,
            length_mean=evaluation.steps / len(evaluation.lengths),
            full_flops=self._costs.full_flops(pending.values["updates"], pending.acted + self.evaluation_steps),
            **pending.values,
        )
        is_best = all(row.return_mean > other.return_mean for other in self.rows)
        self.rows.append(row)
        diagnostics = [_with_bias(layer, pending.diagnostics, evaluation) for layer in pending.diagnostics]
        self.diagnostics += diagnostics
        if self._store:
            self._store.add_evaluation(row)
            for layer in diagnostics:
                self._store.add_diagnostics(layer)
        return row, is_best


def _saved_critics(agent: Agent, state: State, number: int) -> dict[str, Critic]:
    """The critics of a pending row; none in checkpoints of older versions."""
    critics = {}
    for name in agent.critic_names:
        if arrays := state.part(f"pending_critics.{number}.{name}."):
            critics[name] = Critic.with_arrays(agent.networks[name], arrays)
            critics[name].network()  # ValueError if it is invalid
    return critics


def _with_bias(row: DiagnosticsRow, rows: list[DiagnosticsRow], evaluation: Evaluation) -> DiagnosticsRow:
    """Adds the bias of critics to the rows of their last layers."""
    last = max(other.layer for other in rows if other.network == row.network)
    return replace(row, q_bias=evaluation.q_bias.get(row.network)) if row.layer == last else row


def own_memory_mb() -> float:
    """Memory of this process; its peak if the system reports only that."""
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return round(int(line.split()[1]) / 1024, 1)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def _per_layer(network: Network | None) -> str:
    return " ".join(map(str, network.counts)) if network else ""
