"""List the tasks that are known to work. Any other Gymnasium task with a flat Box observation works too."""

from __future__ import annotations

import argparse

from rewirl.agents.methods import algorithms
from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show, table
from rewirl.envs.catalogue import TASKS

EXAMPLES = ("rewirl tasks", "rewirl train ds-sac Hopper-v5")


def arguments(parser: Parser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> None:
    """Prints the tasks."""
    published = [name for name in algorithms() if any(name in task.lambdas for task in TASKS.values())]
    numbers = ("observations", "actions")
    columns = [f"λ of the paper ({name.upper()})" for name in published]
    rows = table("task", *numbers, *columns, "about", right=numbers)
    for name, task in TASKS.items():
        shown = (" ".join(f"{value:g}" for value in task.lambdas.get(each, ())) or "–" for each in published)
        rows.add_row(name, *map(str, task.sizes()), *shown, task.phrase)
    show(rows, "Tasks without λ are 50% sparse by default (--sparsity 0.5). Other tasks with a flat Box")
    show("observation and a bounded Box action work too, if importing gymnasium registers them.")
