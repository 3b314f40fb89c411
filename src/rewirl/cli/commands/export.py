"""Export a trained policy as C source without dependencies, or as an ONNX graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.text import Text

from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.policy_path import policy_at
from rewirl.cli.ui.tables import show
from rewirl.errors import Failed, Refused
from rewirl.export import export
from rewirl.export.weights import BYTES
from rewirl.policies import Policy
from rewirl.policies.layer import Floats
from rewirl.training.evaluation.rollout import watch

EXAMPLES = (
    "rewirl export runs/HalfCheetah-v5/ds-td3-seed1 --to c --out cheetah/",
    "rewirl export runs/HalfCheetah-v5/ds-td3-seed1 --best --to c --out cheetah/ --dtype int8",
    "rewirl export policy.safetensors --to onnx --out policy.onnx",
)


def arguments(parser: Parser) -> None:
    """The policy, the format and the destination."""
    parser.add_argument("run", type=Path, metavar="RUN", help="Run folder or policy.safetensors")
    parser.add_argument("--to", choices=("c", "onnx"), required=True, help="Output format")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="PATH",
        help="Destination: a folder for C; a folder or a .onnx file for ONNX",
    )
    parser.add_argument("--best", action="store_true", help="Use the best policy of a run folder, not the latest")
    parser.add_argument("--name", default="policy", help="Prefix of file names and of C identifiers (default: policy)")
    parser.add_argument(
        "--dtype", choices=tuple(BYTES), default="f32", help="C only: data type of the weights (default: f32)"
    )
    parser.add_argument(
        "--sparse", action="store_true", help="ONNX only: store links only; smaller above 67%% sparsity"
    )


def run(args: argparse.Namespace) -> None:
    """Writes the files and prints their size."""
    policy = policy_at(args.run, args.best)
    only_shown()
    if policy.around:
        show(
            f"note: the policy was trained with the wrappers {policy.around}: apply the same wrappers wherever it runs"
        )
    lossy = args.to == "c" and args.dtype != "f32"
    seen, told = _observations(policy) if lossy else (None, "")
    try:
        done = export(
            policy, args.to, args.out, name=args.name, dtype=args.dtype, sparse=args.sparse, observations=seen
        )
    except OSError as error:
        raise Failed(f"cannot write {error.filename or args.out}: {error.strerror}") from None
    show(Text(f"{done}{told}"))


def _observations(policy: Policy) -> tuple[Floats | None, str]:
    """Observations for measuring the loss of accuracy, and a note on their origin: an episode, or random ones."""
    try:
        if not policy.task:
            raise Refused("the policy file does not name its task")
        if policy.around:
            raise Refused("the wrappers of its task are known only to Python")
        seen, _ = watch(policy, policy.task, episodes=1, seed=0)
    except (Refused, Failed) as error:
        return None, f"\nmeasured on random observations, because no episode could be run: {error}"
    return seen, f"\nmeasured on an episode of {policy.task}"
