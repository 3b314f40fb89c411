"""A small task, small networks, and what makes two runs equal: for all tests of a run, in this process or another.

As a program: `python tiny.py FOLDER [field=value ...]` starts or resumes the run in FOLDER, and exits as a run does.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from rewirl.envs.task_names import import_module_of
from rewirl.errors import Failed, Refused, Stopped
from rewirl.storage import resume, start
from rewirl.training import Run, RunConfig

CLOCK = {"seconds", "steps_per_second", "memory_mb"}
"""Columns that depend on the clock: all others must be the same bit by bit."""

TABLES = ("evaluations.csv", "diagnostics.csv", "progress.csv")


class Walk(gymnasium.Env[Any, Any]):
    """A noisy walk: random starts, random ends (terminated), a time limit (truncated), an asymmetric action box."""

    observation_space = Box(-np.inf, np.inf, (3,), dtype=np.float64)
    action_space = Box(np.array([-2, 0], dtype=np.float32), np.array([2, 1], dtype=np.float32))
    limit = 40
    slow = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=3)
        self.steps = 0
        return self.place, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place[:2] += 0.1 * action  # one and the same array: whoever keeps it without a copy is wrong
        self.place += 0.05 * self.np_random.normal(size=3)
        self.steps += 1
        if self.slow > 60:
            print("in a step", flush=True)
        if self.slow:
            time.sleep(self.slow)
        ends = bool(self.np_random.random() < 0.03)
        return self.place, -float(self.place @ self.place), ends, self.steps >= self.limit, {}


class Strides(Walk):
    """The same walk in one of three strides."""

    action_space = Discrete(3, start=-1)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return super().step(np.array([action, 0.5]))


if "tiny/Walk-v0" not in gymnasium.registry:  # pytest looks for doctests in a copy of its own
    gymnasium.register("tiny/Walk-v0", entry_point=Walk)
    gymnasium.register("tiny/Strides-v0", entry_point=Strides)


def config(**given: Any) -> RunConfig:
    """A run of a second or so, with everything in it: a random phase, adaptations, evaluations, checkpoints."""
    values = {
        "method": "ds-td3",
        "task": "tiny/Walk-v0",
        "seed": 7,
        "steps": 600,
        "random_steps": 100,
        "eval_every": 150,
        "eval_episodes": 2,
        "checkpoint_every": 100,
        "hidden": (8, 8),
        "batch": 8,
        "adapt_every": 20,
        "eta": 0.2,
    }
    return RunConfig.resolve(**{**values, **given})


def train(folder: Path | None, **given: Any) -> Run:
    """A whole run, from its start."""
    with start(config(**given), folder) as run:
        run.train()
    return run


def rows(path: Path) -> list[dict[str, str]]:
    """Of a CSV file, without the clock."""
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in CLOCK} for row in csv.DictReader(file)]


def content(folder: Path) -> dict[str, Any]:
    """All that must be the same in two runs of one config that are done (or stopped at the same step)."""
    out: dict[str, Any] = {name: rows(folder / name) for name in TABLES}
    for name in ("policy.safetensors", "best_policy.safetensors"):
        out[name] = (folder / name).read_bytes() if (folder / name).exists() else None
    newest = max((folder / "checkpoint").glob("step-*"))
    state = json.loads((newest / "run.json").read_bytes())
    out["run.json"] = {k: v for k, v in state.items() if k not in ("seconds", "row_seconds", "replay_slots")}
    out["state.safetensors"] = (newest / "state.safetensors").read_bytes()
    return out


def main(folder: str, *settings: str) -> int:
    given = dict(setting.split("=", 1) for setting in settings)
    slow = float(given.pop("slow", 0))
    chosen = config(**{name: json.loads(value) for name, value in given.items()})
    import_module_of(chosen.task)
    try:
        path = Path(folder)
        opened = resume(path, config=chosen) if (path / "config.toml").exists() else start(chosen, path)
        with opened as run:
            print("\n".join(["ready", *run.notices]), flush=True)
            Walk.slow = slow
            run.train()
    except (Refused, Failed, Stopped) as error:
        print(error, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
