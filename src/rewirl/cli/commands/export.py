"""A trained policy for other machines: as C source without dependencies, or as an ONNX graph."""

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
    """Which policy, as what, to where."""
    parser.add_argument("run", type=Path, metavar="RUN", help="A run folder, or a policy.safetensors")
    parser.add_argument("--to", choices=("c", "onnx"), required=True, help="As what")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="For C a folder; for ONNX a folder or a .onnx file"
    )
    parser.add_argument("--best", action="store_true", help="Of a run folder, the best policy instead of the last")
    parser.add_argument(
        "--name", default="policy", help="Begins the files' names, and in C every identifier (default: policy)"
    )
    parser.add_argument("--dtype", choices=tuple(BYTES), default="f32", help="C: how weights are stored (default: f32)")
    parser.add_argument("--sparse", action="store_true", help="ONNX: write links only; smaller from 67%% sparsity on")


def run(args: argparse.Namespace) -> None:
    """Writes the files, and says what they need."""
    policy = policy_at(args.run, args.best)
    only_shown()
    if policy.around:
        show(
            f"note: it acts on, and in units of, the task with {policy.around} around it: "
            "what runs it has to do the same"
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
    """To measure the loss of accuracy on: those of an episode, else random ones; and a word on which they are."""
    try:
        if not policy.task:
            raise Refused("the policy file does not say for which task it is")
        if policy.around:
            raise Refused("only Python knows what is around its task")
        seen, _ = watch(policy, policy.task, episodes=1, seed=0)
    except (Refused, Failed) as error:
        return None, f"\nmeasured on random observations, because no episode could be played: {error}"
    return seen, f"\nmeasured on an episode of {policy.task}"
