"""Search for λ of each layer, η and e of a sparse method on a task, by random search (as in the paper) or TPE.

Each trial is a normal run (one per seed) below --dir. The objective is R, the mean return of the last ten evaluations.
Repeating the command continues the search; more --trials extend it. Needs Optuna.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rewirl.cli.commands.train import config_file
from rewirl.cli.ui.live.tune_display import tune_display, tuned
from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser, number, whole
from rewirl.cli.ui.session import say
from rewirl.cli.ui.tables import show
from rewirl.envs.task_names import import_flags
from rewirl.errors import Failed, Refused, Stopped
from rewirl.experiments.sweep.workers import Processes
from rewirl.experiments.tune.search_space import ETAS, SCHEDULES, configs_of, space_of
from rewirl.experiments.tune.tuning import BEST, SAMPLERS, Tuning
from rewirl.storage.folder import folder_name
from rewirl.training.config import SEEDS

EXAMPLES = (
    "rewirl tune ds-td3 Hopper-v5 --trials 20 --steps 200000",
    "rewirl tune ds-td3 Hopper-v5 --sampler tpe --prune --workers 4 --seeds 1 2 3",
    "rewirl tune ds-sac Ant-v5 --eta 0.05 0.2 --adapt-every 500 1000 --lambdas 10 60 20 100",
    "rewirl train --config tuning/Hopper-v5/ds-td3/best.toml --seed 1     train with the best settings",
)

SEARCHED = ("seed", "sparsity", "lambdas", "eta", "adapt_every")
"""Options that the search sets itself."""


def arguments(parser: Parser) -> None:
    """The method and task, the length of the search, and its bounds."""
    parser.add_argument("method", metavar="METHOD", help="A sparse method, e.g. ds-td3")
    parser.add_argument("task", metavar="TASK", help="E.g. Hopper-v5")
    parser.add_argument("--trials", type=whole, default=20, metavar="N", help="Number of trials (default: 20)")
    parser.add_argument("--steps", type=whole, default=200_000, metavar="N", help="Steps of each run (default: 200000)")
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=whole,
        default=[0],
        metavar="N",
        help="Random seeds; each trial has one run per seed (default: 0)",
    )
    parser.add_argument("--workers", type=whole, metavar="N", help="Number of parallel runs (default: one per core)")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="Folder of the search (default: tuning/TASK/METHOD)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with other options of the runs")
    search = parser.add_argument_group("search")
    search.add_argument("--sampler", choices=SAMPLERS, default="random", help="Search method (default: random)")
    search.add_argument("--prune", action="store_true", help="Stop trials that are below the median of earlier ones")
    search.add_argument(
        "--search-seed", type=whole, default=0, metavar="N", help="Random seed of the search (default: 0)"
    )
    search.add_argument(
        "--lambdas",
        nargs="+",
        type=number,
        metavar="X",
        help="Lower and upper bound of λ for each layer except the last (default: 0.1 to 0.8 of a dense layer's)",
    )
    search.add_argument(
        "--eta", nargs=2, type=number, metavar="X", help=f"Bounds of η (default: {ETAS[0]} {ETAS[1]}, log-uniform)"
    )
    schedules = " ".join(map(str, SCHEDULES))
    search.add_argument(
        "--adapt-every", nargs="+", type=whole, metavar="N", help=f"Values of e to try (default: {schedules})"
    )


def run(args: argparse.Namespace) -> None:
    """Searches and prints the best trial."""
    given = config_file(args.config) if args.config else {}
    base = _base(args, given)
    config = configs_of(base, {}, args.seeds[:1])[0]
    if not config.eval_every:
        raise Refused("eval_every is 0, so trials would not be evaluated: set it to the steps between evaluations")
    if config.steps // config.eval_every * config.eval_every <= config.random_steps:
        raise Refused(
            f"no trial would be evaluated after learning: it has {config.steps:,} steps, of which "
            f"{config.random_steps:,} are random, and an evaluation every {config.eval_every:,}: give more --steps, or "
            "smaller random_steps and eval_every in --config"
        )
    space = space_of(config, lambdas=args.lambdas, eta=args.eta, adapt_every=args.adapt_every)
    task = folder_name(config.task)
    console = Console(highlight=False)
    tuning = Tuning(
        base,
        space,
        args.dir or Path("tuning", task, config.method),
        Processes(args.workers or os.cpu_count() or 1),
        trials=args.trials,
        seeds=args.seeds,
        sampler=args.sampler,
        prune=args.prune,
        search_seed=args.search_seed,
        watcher=tune_display(console),
    )
    only_shown()
    if unused := [name for name, value in given.items() if name in SEARCHED or base.get(name, value) != value]:
        say(console, f"Note: ignoring {', '.join(unused)} in {args.config}: the search sets these.")
    tuning.run()
    show(tuned(tuning))
    _conclude(tuning)


def _base(args: argparse.Namespace, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not searched."""
    for flag, value in (("--trials", args.trials), ("--steps", args.steps), ("--workers", args.workers)):
        if value is not None and value < 1:
            raise Refused(f"{flag} must be at least 1, not {value}")
    for seed in args.seeds:
        if not 0 <= seed < SEEDS:
            raise Refused(f"--seeds must be from 0 to {SEEDS - 1}, not {seed}")
    if len(set(args.seeds)) < len(args.seeds):
        raise Refused("--seeds contains a seed twice: each is a run of its own")
    if not 0 <= args.search_seed < SEEDS:
        raise Refused(f"--search-seed must be from 0 to {SEEDS - 1}, not {args.search_seed}")
    kept = {name: value for name, value in given.items() if name not in SEARCHED}
    return {**kept, "method": args.method, "task": args.task, "steps": args.steps}


def _conclude(tuning: Tuning) -> None:
    best, again = tuning.best, f"to continue, repeat the command:  {shlex.join(['rewirl', *sys.argv[1:]])}"
    if best is not None:
        options = tuning.space.options(best.params)
        words = ", ".join(f"{name} {_shown(value)}" for name, value in options.items())
        show(f"Best: trial {best.number} with R = {best.value:,.1f} ({words})")
        config = ["--config", str(tuning.folder / BEST), *import_flags(str(tuning.base["task"]))]
        show(f"Next: {shlex.join(['rewirl', 'train', *config, '--seed', '1'])}")
    cut = tuning.of("stopped", "waiting")
    if tuning.stopping and (cut or len(tuning.trials) < tuning.wanted):
        raise Stopped(f"stopped with {len(tuning.trials) - len(cut)} of {tuning.wanted} trials finished; {again}")
    if cut:
        raise Failed(
            f"{len(cut)} of {tuning.wanted} trials were interrupted (trial {cut[0].number}: {cut[0].message}); {again}"
        )
    if best is None:
        raise Failed(f"no trial of {tuning.folder} finished: see the messages above")


def _shown(value: Any) -> str:
    return " ".join(f"{item:g}" for item in value) if isinstance(value, tuple) else f"{value:g}"
