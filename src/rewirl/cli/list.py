"""The runs in a folder, with their state."""

from __future__ import annotations

import argparse
from pathlib import Path

from rewirl.cli.parser import Parser
from rewirl.cli.tables import show, table
from rewirl.errors import Refused
from rewirl.training import RunInfo, list_runs

EXAMPLES = ("rewirl list", "rewirl list /data/runs")
STYLES = {"running": "cyan", "done": "green", "stopped": "yellow", "failed": "red"}


def arguments(parser: Parser) -> None:
    """Where to look."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs"), metavar="DIR", help="Default: runs")


def run(args: argparse.Namespace) -> None:
    """Prints a table of runs."""
    if not args.folder.is_dir():
        raise Refused(f"there is no folder {args.folder}: start a run with  rewirl train ds-td3 HalfCheetah-v5")
    found = list_runs(args.folder)
    if not found:
        show(f"No runs in {args.folder}. Start one with  rewirl train ds-td3 HalfCheetah-v5")
        return
    numbers = ("seed", "steps", "done", "last return", "best return")
    rows = table("run", "method", "task", "seed", "state", *numbers[1:], "", right=numbers)
    for info in found:
        rows.add_row(*_cells(info))
    show(rows)
    if any(info.resumable for info in found):
        show("To go on with a run that stopped or failed:  rewirl train --resume RUN")


def _cells(info: RunInfo) -> list[str]:
    state = f"[{STYLES.get(info.state, 'default')}]{info.state}[/]"
    returns = ["–" if value is None else f"{value:,.1f}" for value in (info.last_return, info.best_return)]
    if info.config is None:
        return [str(info.folder), "–", "–", "–", state, "–", "–", *returns, info.message]
    config = info.config
    share = f"{min(info.step / config.steps, 1):.0%}"
    about = [str(info.folder), config.method, config.task, str(config.seed), state]
    return [*about, f"{info.step:,}", share, *returns, info.message if info.state == "failed" else ""]
