"""Measure a trained policy: returns of complete episodes, without exploration noise."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.text import Text

from rewirl.cli.ui.parser import Parser, whole
from rewirl.cli.ui.policy_path import policy_at, without_wrappers
from rewirl.cli.ui.tables import count, show
from rewirl.errors import Refused
from rewirl.training import evaluate_policy
from rewirl.training.config import SEEDS

EXAMPLES = (
    "rewirl evaluate runs/HalfCheetah-v5/ds-td3-seed1",
    "rewirl evaluate runs/HalfCheetah-v5/ds-td3-seed1 --best --episodes 100",
    "rewirl evaluate policy.safetensors --task HalfCheetah-v5 --seed 7",
)


def arguments(parser: Parser) -> None:
    """The policy and the number of episodes."""
    parser.add_argument("run", type=Path, metavar="RUN", help="Run folder or policy.safetensors")
    parser.add_argument("--best", action="store_true", help="Use the best policy of a run folder, not the latest")
    parser.add_argument("--episodes", type=whole, default=10, metavar="N", help="Number of episodes (default: 10)")
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="Random seed of the environment (default: 0)"
    )
    parser.add_argument("--task", metavar="TASK", help="Task, if not the one it was trained on")


def run(args: argparse.Namespace) -> None:
    """Prints the returns and their mean."""
    if args.episodes < 1:
        raise Refused(f"--episodes must be at least 1, not {args.episodes}")
    if not 0 <= args.seed < SEEDS:
        raise Refused(f"--seed must be from 0 to {SEEDS - 1}, not {args.seed}")
    policy = policy_at(args.run, args.best)
    task = args.task or policy.task
    if not task:
        raise Refused("the policy file does not name its task: give --task")
    if note := without_wrappers(policy):
        show(Text(note))
    result = evaluate_policy(policy, task, episodes=args.episodes, seed=args.seed)
    show(
        f"{task}: return {result.mean:,.1f} ± {result.std:,.1f} over {count(args.episodes, 'episode')} "
        f"(lowest {result.min:,.1f}, highest {result.max:,.1f}), {result.steps:,} steps"
    )
