"""Check every file of a run: checksums, wiring, tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show
from rewirl.errors import Failed, Refused
from rewirl.storage import verify

EXAMPLES = ("rewirl verify runs/HalfCheetah-v5/ds-td3-seed1",)


def arguments(parser: Parser) -> None:
    """The run to check."""
    parser.add_argument("run", type=Path, metavar="RUN", help="Run folder")


def run(args: argparse.Namespace) -> None:
    """Prints the problems, or that all files are intact."""
    if not (args.run / "config.toml").exists():
        raise Refused(f"{args.run} is not a run folder: it has no config.toml (rewirl list shows where runs are)")
    wrong = verify(args.run)
    for sentence in wrong:
        show(sentence)
    if wrong:
        raise Failed(f"{args.run} has {len(wrong)} fault{'s' if len(wrong) > 1 else ''}")
    show(f"{args.run}: all files are intact")
