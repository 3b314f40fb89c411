"""What it can be trained on. These tasks were tried; any other Gymnasium task with a flat Box observation works too."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from rewirl.agents.methods import METHODS
from rewirl.cli.parser import Parser
from rewirl.cli.tables import show, table

EXAMPLES = ("rewirl tasks", "rewirl train ds-sac Hopper-v5")


class Task(NamedTuple):
    """A task as Gymnasium has it."""

    n_obs: int
    n_act: int
    about: str


TASKS = {
    "HalfCheetah-v5": Task(17, 6, "a flat cheetah learns to run"),
    "Walker2d-v5": Task(17, 6, "a flat two-legged walker"),
    "Hopper-v5": Task(11, 3, "one leg that hops"),
    "Ant-v5": Task(105, 8, "a four-legged ant"),
    "Humanoid-v5": Task(348, 17, "a human figure learns to walk"),
    "HumanoidStandup-v5": Task(348, 17, "a human figure gets up"),
    "Swimmer-v5": Task(8, 2, "a swimmer of three links"),
    "Reacher-v5": Task(10, 2, "an arm reaches for a point"),
    "Pusher-v5": Task(23, 7, "an arm pushes a cylinder to a goal"),
    "InvertedPendulum-v5": Task(4, 1, "a pole is balanced on a cart"),
    "InvertedDoublePendulum-v5": Task(9, 1, "two poles on a cart"),
    "Pendulum-v1": Task(3, 1, "a pendulum swings up: small, quick, a good first test"),
    "MountainCarContinuous-v0": Task(2, 1, "a weak car climbs a hill"),
}
"""Tasks that were tried, the paper's five first."""


def arguments(parser: Parser) -> None:
    """It takes none."""


def run(args: argparse.Namespace) -> None:
    """Prints the tasks that are known to work."""
    numbers = ("observations", "actions")
    rows = table("task", *numbers, "λ of the paper (TD3)", "λ of the paper (SAC)", "about", right=numbers)
    for name, task in TASKS.items():
        lambdas = (METHODS[f"ds-{algorithm}"].lambdas(name) for algorithm in ("td3", "sac"))
        shown = (" ".join(f"{value:g}" for value in pair) if pair else "–" for pair in lambdas)
        rows.add_row(name, str(task.n_obs), str(task.n_act), *shown, task.about)
    show(rows, "Where there is no λ, half of the weights do not exist (--sparsity 0.5). Other tasks with a flat Box")
    show("observation and a bounded Box action work too, if importing gymnasium registers them.")
