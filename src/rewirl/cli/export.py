"""A trained policy for other machines: as C source without dependencies, or as an ONNX graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from rewirl.cli.parser import Parser
from rewirl.cli.runs import policy_at
from rewirl.cli.tables import show
from rewirl.deploy.c_source import export_c
from rewirl.deploy.errors import ExportError
from rewirl.deploy.onnx_graph import export_onnx
from rewirl.deploy.weights import BYTES
from rewirl.errors import Failed, Refused

EXAMPLES = (
    "rewirl export runs/HalfCheetah-v5/ds-td3-seed1 --to c --out cheetah/",
    "rewirl export runs/HalfCheetah-v5/ds-td3-seed1 --best --to c --out cheetah/ --dtype int8",
    "rewirl export policy.safetensors --to onnx --out policy.onnx",
)


def arguments(parser: Parser) -> None:
    """Which policy, as what, to where."""
    parser.add_argument("run", type=Path, metavar="RUN", help="A run folder, or a policy.safetensors")
    parser.add_argument("--to", choices=("c", "onnx"), required=True, help="As what")
    parser.add_argument("--out", type=Path, required=True, metavar="PATH", help="For C a folder, for ONNX a file")
    parser.add_argument("--best", action="store_true", help="Of a run folder, the best policy instead of the last")
    parser.add_argument(
        "--name", default="policy", help="C: begins the files' names and every identifier (default: policy)"
    )
    parser.add_argument("--dtype", choices=tuple(BYTES), default="f32", help="C: how weights are stored (default: f32)")
    parser.add_argument("--sparse", action="store_true", help="ONNX: write links only; smaller from 67%% sparsity on")


def run(args: argparse.Namespace) -> None:
    """Writes the files, and says what they need."""
    policy = policy_at(args.run, args.best)
    try:
        if args.to == "c":
            show(str(export_c(policy, args.out, name=args.name, dtype=args.dtype)))
        else:
            show(str(export_onnx(policy, args.out, sparse=args.sparse)))
    except ExportError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Failed(f"cannot write {error.filename or args.out}: {error.strerror}") from None
