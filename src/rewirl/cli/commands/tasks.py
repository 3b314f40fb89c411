"""List the tasks that are known to work. Other Gymnasium tasks with a flat Box observation work too."""

from __future__ import annotations

import argparse

from rewirl.agents.methods import algorithms
from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show, table
from rewirl.envs.catalogue import TASKS

NOTES = """\
obs., act.  size of an observation and of an action; of discrete ones, how many
λ           of the paper; tasks without it are 50% sparse (--sparsity 0.5)
Other tasks with a flat Box observation, and a bounded Box or Discrete actions,
work too, if importing gymnasium registers them."""
EXAMPLES = ("rewirl tasks", "rewirl train ds-sac Hopper-v5")


def arguments(parser: Parser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> None:
    """Prints the tasks."""
    published = [name for name in algorithms() if any(name in task.lambdas for task in TASKS.values())]
    numbers = ("obs.", "act.")
    rows = table("task", *numbers, *(f"λ {algorithms()[name].title}" for name in published), "about", right=numbers)
    for name, task in TASKS.items():
        shown = (" ".join(f"{value:g}" for value in task.lambdas.get(each, ())) or "–" for each in published)
        rows.add_row(name, *map(str, task.sizes()), *shown, task.phrase)
    show(rows, NOTES)
