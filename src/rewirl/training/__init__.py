"""One run: loop, evaluation, run folder, checkpoint and resume."""

from rewirl.training.config import RunConfig
from rewirl.training.environments import EnvLike
from rewirl.training.evaluation import Evaluation, evaluate_policy
from rewirl.training.folder import RunInfo, inspect_run, list_runs, run_folder
from rewirl.training.observer import Observer
from rewirl.training.resuming import resume
from rewirl.training.rows import Episode, EvaluationRow
from rewirl.training.run import Run
from rewirl.training.starting import start
from rewirl.training.verify import verify

__all__ = [
    "EnvLike",
    "Episode",
    "Evaluation",
    "EvaluationRow",
    "Observer",
    "Run",
    "RunConfig",
    "RunInfo",
    "evaluate_policy",
    "inspect_run",
    "list_runs",
    "resume",
    "run_folder",
    "start",
    "verify",
]
