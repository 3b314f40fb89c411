"""List the tasks that are known to work. Any other Gymnasium task with a flat Box observation works too."""

from __future__ import annotations

import argparse

from rewirl.agents.methods import METHODS
from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show, table
from rewirl.envs.catalogue import TASKS

EXAMPLES = ("rewirl tasks", "rewirl train ds-sac Hopper-v5")


def arguments(parser: Parser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> None:
    """Prints the tasks."""
    numbers = ("observations", "actions")
    rows = table("task", *numbers, "λ of the paper (TD3)", "λ of the paper (SAC)", "about", right=numbers)
    for name, task in TASKS.items():
        lambdas = (METHODS[f"ds-{algorithm}"].lambdas(name) for algorithm in ("td3", "sac"))
        shown = (" ".join(f"{value:g}" for value in pair) if pair else "–" for pair in lambdas)
        rows.add_row(name, str(task.n_obs), str(task.n_act), *shown, task.about)
    show(rows, "Tasks without λ are 50% sparse by default (--sparsity 0.5). Other tasks with a flat Box")
    show("observation and a bounded Box action work too, if importing gymnasium registers them.")
