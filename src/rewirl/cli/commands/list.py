"""List runs and their state."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show, table, width
from rewirl.errors import Refused
from rewirl.storage import RunInfo, inspect_run, list_runs
from rewirl.untrusted import printable

EXAMPLES = ("rewirl list", "rewirl list /data/runs", "rewirl list runs/HalfCheetah-v5/ds-td3-seed1")
STYLES = {"running": "cyan", "done": "green", "stopped": "yellow", "failed": "red", "damaged": "red"}


COLUMNS = ("run", "method", "task", "seed", "state", "steps", "done", "last return", "best return")
NUMBERS = ("seed", "steps", "done", "last return", "best return")
SPARE = ("task", "method", "seed", "best return", "steps")
"""Columns left out on a narrow terminal, in this order: the name of a run usually contains the first three."""


def arguments(parser: Parser) -> None:
    """The folder to list."""
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("runs"),
        metavar="DIR",
        help="Folder of runs, or a single run (default: runs)",
    )


def run(args: argparse.Namespace) -> None:
    """Prints a table of runs."""
    if not args.folder.is_dir():
        raise Refused(f"there is no folder {args.folder}: start a run with  rewirl train ds-td3 HalfCheetah-v5")
    itself = [inspect_run(args.folder)] if (args.folder / "config.toml").is_file() else []
    found = itself + list_runs(args.folder)
    if not found:
        show(f"No runs in {args.folder}. Start one with  rewirl train ds-td3 HalfCheetah-v5")
        return
    show(listed(found, width()))
    for info in found:
        if info.message and (info.state in ("failed", "damaged") or info.config is None):
            show(f"{info.folder}: {info.message}")
    if any(info.resumable for info in found):
        show("To resume a run that stopped or failed:  rewirl train --resume RUN")


def listed(found: Sequence[RunInfo], room: int) -> Table:
    """One row per run, with as many columns as fit."""
    cells = [_cells(info) for info in found]
    columns = list(COLUMNS)
    for spare in (None, *SPARE):
        columns = [column for column in columns if column != spare]
        widest = [max(len(column), *(len(row[column]) for row in cells)) for column in columns]
        if sum(widest) + 3 * len(columns) - 1 <= room:
            break
    rows = table(*columns, right=NUMBERS)
    rows.columns[0].no_wrap, rows.columns[0].overflow = False, "fold"  # a truncated name is useless
    for row in cells:
        state = Text(row["state"], style=STYLES.get(row["state"], ""))
        rows.add_row(*(state if column == "state" else Text(row[column]) for column in columns))
    return rows


def _cells(info: RunInfo) -> dict[str, str]:
    returns = ["–" if value is None else f"{value:,.1f}" for value in (info.last_return, info.best_return)]
    config, about = info.config, ["–", "–", "–"]
    steps = share = "–"
    if config is not None:
        about = [config.method, config.task, str(config.seed)]
        steps, share = f"{info.step:,}", f"{min(info.step / config.steps, 1):.0%}"
    texts = [str(info.folder), *about, info.state, steps, share, *returns]
    return dict(zip(COLUMNS, map(printable, texts), strict=True))
