"""Train all runs of an experiment in parallel. Repeating the command does only what is missing.

GRID is a preset (`rewirl sweep` lists them) or your own TOML file. Each run has a normal run folder. A run that already
exists, under any name, is not trained again. A run that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rewirl.cli.ui.live.sweep_display import name, outcome, reasons, sweep_display
from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser, Several, listed, whole
from rewirl.cli.ui.sweep_plan import check, measured, shown_costs, shown_plan
from rewirl.cli.ui.tables import count, show, table
from rewirl.errors import Failed, Refused, Stopped
from rewirl.experiments import Plan, Sweep, load_grid, plan, preset_names
from rewirl.experiments.sweep.workers import Processes, Workers

EXAMPLES = (
    "rewirl sweep                                            the presets",
    "rewirl sweep paper/td3 --dry-run                        runs, hours and disk, before anything starts",
    "rewirl sweep paper/td3 --tasks HalfCheetah-v5 Hopper-v5 --seeds 1 2 3 --jobs 4 --dir runs",
    "rewirl sweep paper/schedule --steps 300000 --methods ds-td3",
    "rewirl sweep my-grid.toml --dir /data/runs",
    "rewirl sweep paper/sac --on ray --address 10.0.0.1:6379 --dir /shared/runs",
    "rewirl sweep paper/costs                                #params and FLOPs; trains nothing",
)


def arguments(parser: Parser) -> None:
    """The runs, their folder, and the number of parallel runs."""
    parser.add_argument("grid", nargs="?", metavar="GRID", help="Preset such as paper/td3, or a TOML file")
    parser.add_argument("--list", action="store_true", help="List the presets")
    parser.add_argument(
        "--dry-run", action="store_true", help="Print runs, expected hours and disk space; train nothing"
    )
    parser.add_argument(
        "--dir", type=Path, default=Path("runs"), metavar="RUNS", help="Folder for the runs (default: runs)"
    )
    parser.add_argument("--jobs", type=whole, metavar="N", help="Number of parallel runs (default: one per core)")
    narrow = parser.add_argument_group("part of the grid")
    for flag, read, metavar, meaning in (
        ("--tasks", str, "TASK", "Only these tasks of the grid"),
        ("--methods", str, "METHOD", "Only these methods of the grid"),
        ("--seeds", whole, "N", "Use these seeds instead of the grid's"),
    ):
        narrow.add_argument(flag, nargs="+", type=listed(read), action=Several, metavar=metavar, help=meaning)
    narrow.add_argument(
        "--steps", type=whole, metavar="N", help="Steps of each run; variants with their own number are shortened too"
    )
    elsewhere = parser.add_argument_group("on other machines")
    elsewhere.add_argument(
        "--on", choices=("here", "ray"), default="here", help="Where to run (default: on this machine)"
    )
    elsewhere.add_argument(
        "--address", help="Address of the Ray cluster (default: RAY_ADDRESS, or start Ray on this machine)"
    )
    elsewhere.add_argument(
        "--retries",
        type=whole,
        default=5,
        metavar="N",
        help="How often Ray restarts a run whose machine died (default: 5)",
    )


def run(args: argparse.Namespace) -> None:
    """Lists, plans or trains."""
    if args.grid is None or args.list:
        _list()
        return
    _check(args)
    grid = load_grid(args.grid).narrowed(tasks=args.tasks, methods=args.methods, seeds=args.seeds, steps=args.steps)
    if not grid.trains:
        show(shown_costs(grid))
        return
    folder: Path = args.dir.resolve() if ".." in args.dir.parts else args.dir
    made = plan(grid, folder)
    jobs = args.jobs if args.jobs is not None or args.on == "ray" else os.cpu_count()
    check(made)
    if args.dry_run:
        cores = os.cpu_count() if args.on == "here" else None
        show(shown_plan(made, measured(made, Console(stderr=True)), jobs, cores))
        return
    workers: Workers = Processes(jobs or 1)
    if args.on == "ray":
        from rewirl.experiments.sweep.ray_tasks import RayTasks

        workers = RayTasks(address=args.address, retries=args.retries, jobs=jobs)
    only_shown()
    console = Console(highlight=False)
    _say_before(made, console)
    display = sweep_display(console, jobs)
    sweep = Sweep(made, workers, display)
    sweep.run()
    if not display.shows_all(sweep):
        show(outcome(sweep))
    for line in reasons(sweep):
        console.out(line, highlight=False)
    if sweep.plan.count("done"):
        console.out(f"Report:  {shlex.join(['rewirl', 'report', str(folder), '--out', 'report'])}", highlight=False)
    _conclude(sweep)


def _check(args: argparse.Namespace) -> None:
    for flag, value in (("--jobs", args.jobs), ("--steps", args.steps)):
        if value is not None and value < 1:
            raise Refused(f"{flag} must be at least 1, not {value}")
    if args.retries < 0:
        raise Refused(f"--retries must not be negative, got {args.retries}")
    if args.address is not None and args.on != "ray":
        raise Refused("--address is for Ray: add --on ray")
    if args.dir.exists() and not args.dir.is_dir():
        raise Refused(f"--dir {args.dir} is not a folder")


def _list() -> None:
    rows = table("preset", "runs", "description", right=("runs",))
    for preset in preset_names():
        grid = load_grid(preset)
        rows.add_row(preset, str(len(grid.runs())) if grid.trains else "–", grid.about)
    show(rows, "Your own grid is a TOML file of the same form: see docs/experiments.md. Next:")
    show("  rewirl sweep paper/td3 --tasks HalfCheetah-v5 --dry-run")


def _say_before(made: Plan, console: Console) -> None:
    words = [f"{count(len(made.jobs), 'run')} in {made.folder}"]
    known = (("done", "done"), ("cut", "to resume"), ("elsewhere", "running elsewhere"), ("new", "new"))
    words += [f"{made.count(state)} {text}" for state, text in known if made.count(state)]
    console.out(f"{made.grid.name}: {', '.join(words)}", highlight=False)


def _conclude(sweep: Sweep) -> None:
    """Raises an error with the exit code of the sweep, if it is not 0."""
    jobs, again = len(sweep.plan.jobs), f"to continue, repeat the command:  {_command(sys.argv)}"
    done = sweep.plan.count("done")
    bad = sweep.of("failed", "blocked")
    if bad:
        names = ", ".join(name(sweep, job) for job in bad[:3]) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        raise Failed(f"{len(bad)} of {jobs} runs failed ({names}), {done} are finished; {again}")
    if done < jobs:
        raise Stopped(f"stopped with {done} of {jobs} runs finished, the others are saved; {again}")


def _command(words: Sequence[str]) -> str:
    return shlex.join(["rewirl", *words[1:]])
