"""A two-minute demonstration: a cheetah with a tenth of the usual links learns to run.

It runs `rewirl train lean-td3 HalfCheetah-v5` with fewer random steps and more evaluations than the paper. All flags of
`rewirl train` can be used.
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

EXAMPLES = ("rewirl demo", "rewirl demo --seed 2", "rewirl demo --sparsity 0.95")

PRESET: dict[str, Any] = {
    "method": "lean-td3",
    "task": "HalfCheetah-v5",
    "seed": 3,  # seeds 1, 2 and 3 ended at 4,900, 3,600 and 6,000; 3 at 7,000 with later kernels
    "steps": 80_000,
    "random_steps": 5_000,
    "eval_every": 2_500,
    "eval_episodes": 3,
    "eval_process": True,
}
"""Settings of the demo that flags can override."""

FREE = RunConfig.FREE - {"steps"}
"""Settings that do not affect the result."""


def arguments(parser: Parser) -> None:
    """The flags of `rewirl train`, with the demo's defaults."""
    train.arguments(parser)
    parser.usage = f"{parser.prog} [METHOD TASK] [flags]"
    own = {
        **PRESET,
        "eval_process": "on",
        "run_dir": f"runs/demo/seed{PRESET['seed']}; other settings are added to the name",
    }
    for action in parser._actions:
        if action.dest in own and action.help:
            action.help = f"{action.help.split(' (default: ')[0]} (default: {own[action.dest]})"


def run(args: argparse.Namespace) -> None:
    """Trains, after a short introduction."""
    if args.resume is not None:
        raise Refused(f"a demo is resumed like any run:  rewirl train --resume {args.resume}")
    config = train.config_of(train.words_of(args, train.given(args), PRESET))
    named = args.run_dir is not None or args.name is not None
    folder = train.folder_of(args, config) if named else Path("runs", "demo", name_of(config))
    train.carry_out(args, config, folder, welcome)


def name_of(config: RunConfig) -> str:
    """Folder name of a demo run. It contains every setting that differs, so each variant has its own folder.

    >>> name_of(RunConfig.resolve(**PRESET)), name_of(RunConfig.resolve(**PRESET, sparsity=0.8))
    ('seed3', 'seed3-sparsity0.8')
    """
    which = {"method": config.method, "task": config.task}
    usual = RunConfig.resolve(**{**PRESET, **which}).items()
    words = [value for name, value in which.items() if value != PRESET[name]]
    words.append(f"seed{config.seed}")
    for name, value in config.items().items():
        if name not in (*which, "seed", *FREE, *config.by_length()) and value != usual.get(name):
            values = value if isinstance(value, tuple) else (value,)
            words.append(
                name.replace("_", "-") + "-".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            )
    return folder_name("-".join(words))


def welcome(run: Run) -> str:
    """A short introduction."""
    cheetah, costs, rule = run.config.task == PRESET["task"], run.costs, run.config.wiring().rule
    lines = [
        "A cheetah with six joints learns to run. It is rewarded for speed and told nothing else."
        if cheetah
        else f"An agent learns {run.config.task} from its reward alone.",
        f"Its three neural networks have {costs.links / costs.dense_links:.0%} of the usual links"
        + (", and keep rewiring them" if isinstance(rule, DropAndGrow) else "."),
        *(["as they learn: weak links are dropped, new ones grow."] if isinstance(rule, DropAndGrow) else []),
        "Watch the return: at 0 it stands still, at 5,000 it runs." if cheetah else "Watch the return.",
        "",
    ]
    return "\n".join(lines)
