"""Write a report about runs: one HTML page, figures and tables.

RUN is a run folder or a folder of runs; several may be given. A run needs only its config.toml and evaluations.csv;
other files add detail. Missing seeds, unfinished runs and runs that do not match are used as far as possible, and
listed.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser, whole
from rewirl.errors import Refused
from rewirl.experiments.analysis.comparison import compare
from rewirl.experiments.analysis.trained_runs import load
from rewirl.experiments.report.writer import check, write_report

EXAMPLES = (
    "rewirl report runs --out report                        everything in a folder; then open report/index.html",
    "rewirl report runs/HalfCheetah-v5 runs/Hopper-v5 --out report",
    'rewirl report runs --out report --title "Sparse on a laptop" --seed 1',
    "rewirl report runs --out report --at 300000            compare at this step, without shorter runs",
)


def arguments(parser: Parser) -> None:
    """The runs and the destination."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="Run folders, or folders that contain them")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="Folder of the report; an existing report is replaced"
    )
    parser.add_argument(
        "--title", default="Dynamic sparse training", help="Title of the page (default: Dynamic sparse training)"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="Random seed of the bootstrap (default: 0)")
    parser.add_argument(
        "--at",
        type=whole,
        metavar="STEP",
        help="Compare at this step (default: the last step that a method and its dense counterpart both reached)",
    )
    parser.add_argument(
        "--wall-clock",
        action="store_true",
        help="Compare wall-clock times too: only for runs that each had the machine to themselves",
    )


def run(args: argparse.Namespace) -> None:
    """Writes the report and prints what it contains and what is missing."""
    for name in ("seed", "at"):
        if (getattr(args, name) or 0) < 0:
            raise Refused(f"--{name} must not be negative, got {getattr(args, name)}")
    check(args.out)
    only_shown()
    console = Console(highlight=False, soft_wrap=True)
    command = shlex.join(["rewirl", "report", *map(str, args.runs), "--out", str(args.out), *_more(args)])
    with telling(console) as tell:
        tell("runs")
        comparison = compare(load(args.runs), seed=args.seed, at=args.at, wall_clock=args.wall_clock)
        written = write_report(comparison, args.out, args.title, command, tell)
    for note in written.notes:
        console.print(f"Note: {note}", markup=False)
    console.print(
        f"{args.out} contains {written.figures} figures and {written.tables} tables of {len(comparison.runs)} run"
        f"{'s' if len(comparison.runs) > 1 else ''}. Open {written.page}",
        markup=False,
    )


@contextmanager
def telling(console: Console) -> Iterator[Callable[[str], None]]:
    """Shows progress on a terminal."""
    with console.status("Reading runs …") as status:
        yield lambda what: status.update(f"Working on {what} …")


def _more(args: argparse.Namespace) -> list[str]:
    words = ["--seed", str(args.seed)]
    words += ["--at", str(args.at)] if args.at is not None else []
    return words + (["--wall-clock"] if args.wall_clock else [])
