"""The tasks that were tried, and what to know of each."""

from __future__ import annotations

from typing import NamedTuple


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
