"""One run: config, loop, evaluation, replay and observers.

It does not access files: a run on disk is in `storage/`, whose public names can be imported from here too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rewirl.envs.creation import EnvLike
from rewirl.training.config import RunConfig
from rewirl.training.evaluation.episodes import Evaluation, evaluate_policy
from rewirl.training.measurements import Episode, EvaluationRow
from rewirl.training.observers import Observer
from rewirl.training.run import Run

__all__ = [
    "EnvLike",
    "Episode",
    "Evaluation",
    "EvaluationRow",
    "Observer",
    "Run",
    "RunConfig",
    "evaluate_policy",
]

_STORED = frozenset({"RunInfo", "inspect_run", "list_runs", "resume", "run_folder", "start", "verify"})
"""Public names that moved to `rewirl.storage`."""


def __getattr__(name: str) -> Any:
    if name in _STORED:
        return getattr(import_module("rewirl.storage"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
