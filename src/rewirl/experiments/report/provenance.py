"""Origin of the numbers: commands, versions and machines of the runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import chain, count
from typing import Any

from rewirl.experiments.analysis.comparison import Comparison
from rewirl.experiments.analysis.number_format import steps_text
from rewirl.experiments.analysis.trained_runs import UNKNOWN, TrainedRun, counted
from rewirl.experiments.report.tables.table import Record, Table
from rewirl.training.config import RunConfig


def command_of(run: TrainedRun) -> str:
    """The command that trains a run again, from its config, without default values."""
    config = run.config
    words = ["rewirl", "train", config.method, config.task, "--seed", str(config.seed)]
    # The default of random steps depends on the number of steps.
    default = RunConfig.resolve(method=config.method, task=config.task, steps=config.steps).items()
    default["steps"] = RunConfig.steps
    for name, value in config.items().items():
        if name in ("method", "task", "seed") or default.get(name) == value:
            continue
        if name == "initial_samples":
            value = run.folder / "initial_policy.safetensors"  # the config has its hash
        words += _flag(name, value)
    return shlex.join(words)


def commands_of(runs: Sequence[TrainedRun]) -> list[str]:
    """The command of each run; runs that would share a folder get different names."""
    commands: list[str] = []
    taken: set[tuple[str, str]] = set()
    for run in runs:
        task, usual = run.config.task, f"{run.config.method}-seed{run.config.seed}"
        names = chain((usual, run.folder.name), (f"{usual}-{number}" for number in count(2)))
        name = next(name for name in names if name and (task, name) not in taken)
        taken.add((task, name))
        commands.append(command_of(run) + (f" --name {shlex.quote(name)}" if name != usual else ""))
    return commands


def run_table(comparison: Comparison) -> Table:
    """Every run, with the command that trains it again."""
    rows: list[list[str]] = []
    records: list[Record] = []
    commands = iter(commands_of(comparison.runs))
    for task in comparison.tasks:
        for group in task.groups:
            for run in group.runs:
                steps = f"{steps_text(run.last)} of {steps_text(run.config.steps)}"
                versions = {name: value for session in run.about for name, value in session.versions.items()}
                state = "done" if run.whole else run.state
                about = (task.task, group.label, str(run.config.seed), steps, state)
                rows.append([*about, versions.get("rewirl", "–"), str(run.folder)])
                records.append(
                    {
                        **{"task": task.task, "method": group.label, "seed": run.config.seed, "state": state},
                        **{"last_evaluation": run.last, "steps": run.config.steps, "folder": str(run.folder)},
                        "command": next(commands),
                        "typed": "; ".join(session.command for session in run.about if session.command) or None,
                        "versions": " ".join(f"{name}={value}" for name, value in versions.items()) or None,
                    }
                )
    return Table(
        "runs", "Runs", ["task", "method", "seed", "steps", "state", "rewirl", "folder"], rows, records, words=7
    )


def _flag(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = value if isinstance(value, tuple) else (value,)
    return [
        f"--{flag}",
        *(f"{part:g}" if isinstance(part, float) and part == int(part) else str(part) for part in values),
    ]


def facts(runs: Sequence[TrainedRun], what: str) -> list[tuple[str, str]]:
    """Versions or machines of all sessions; if they differ, with numbers of runs."""
    rows = []
    unknown = sum(not any(getattr(session, what) for session in run.about) for run in runs)
    for name, counts in counted(runs, what).items():
        if len(counts) == 1 and not unknown:
            rows.append((name, next(iter(counts))))
        else:
            rows.append((name, "; ".join(f"{value} ({_runs(n)})" for value, n in counts.items())))
    if unknown:
        rows.append((what, f"{UNKNOWN} for {_runs(unknown)}"))
    return rows


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"
