"""The task catalogue: one table of the tasks that were tested, with all facts about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rewirl.envs.creation import close, make_by_name
from rewirl.envs.environment import Environment
from rewirl.envs.feature_names import (
    ANT,
    ANT_BODIES,
    ANT_MOTORS,
    ARM,
    CHEETAH,
    HOPPER,
    HUMANOID_FEATURES,
    HUMANOID_MOTORS,
    WALKER,
    XYZ,
    contacts,
    each,
    flat_walker,
    free_body,
)
from rewirl.envs.task_names import without_version
from rewirl.errors import Refused


@dataclass(frozen=True)
class Task:
    """Facts about a task that Gymnasium does not provide."""

    name: str
    phrase: str
    """At most 20 characters: `rewirl tasks` has 80 columns."""
    observations: tuple[str, ...]
    """Names of the features of an observation."""
    actions: tuple[str, ...]
    """Names of the numbers of an action, or of the actions to choose from."""
    lambdas: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """(λ¹, λ²) of the paper's appendices by algorithm, chosen there for the -v3 tasks."""

    def sizes(self) -> tuple[int, int]:
        """How many numbers an observation and an action have, as Gymnasium says.

        >>> TASKS["Pendulum-v1"].sizes()
        (3, 1)
        """
        try:
            made = make_by_name(self.name)
        except Refused:  # the task needs a package that is not installed
            return len(self.observations), len(self.actions)
        env = Environment(made, self.name)
        close(made)
        return env.n_obs, env.actions.size


_TASKS = (
    Task(
        "HalfCheetah-v5",
        "a cheetah runs",
        flat_walker(CHEETAH),
        each(CHEETAH, "torque"),
        {"td3": (7, 64), "sac": (12, 80)},
    ),
    Task(
        "Walker2d-v5",
        "two legs walk",
        flat_walker(WALKER),
        each(WALKER, "torque"),
        {"td3": (7, 64), "sac": (12, 80)},
    ),
    Task(
        "Hopper-v5",
        "one leg hops",
        flat_walker(HOPPER),
        each(HOPPER, "torque"),
        {"td3": (7, 64), "sac": (7, 20)},
    ),
    Task(
        "Ant-v5",
        "four legs walk",
        (*free_body(ANT), *contacts(ANT_BODIES)),
        each(ANT_MOTORS, "torque"),
        {"td3": (40, 64), "sac": (30, 64)},
    ),
    Task(
        "Humanoid-v5",
        "a human walks",
        HUMANOID_FEATURES,
        each(HUMANOID_MOTORS, "torque"),
        {"td3": (61, 64), "sac": (61, 64)},
    ),
    Task(
        "HumanoidStandup-v5",
        "a human gets up",
        HUMANOID_FEATURES,
        each(HUMANOID_MOTORS, "torque"),
    ),
    Task(
        "Swimmer-v5",
        "three links swim",
        (
            *("front angle", "first joint angle", "second joint angle"),
            *("front speed x", "front speed y", "front turning", "first joint speed", "second joint speed"),
        ),
        ("first joint torque", "second joint torque"),
    ),
    Task(
        "Reacher-v5",
        "an arm reaches",
        (
            *(f"{function} of {joint} angle" for function in ("cosine", "sine") for joint in ("first", "second")),
            *("target x", "target y", "first joint speed", "second joint speed"),
            *("fingertip to target x", "fingertip to target y"),
        ),
        ("first joint torque", "second joint torque"),
    ),
    Task(
        "Pusher-v5",
        "an arm pushes",
        (*each(ARM, "angle"), *each(ARM, "speed"), *each(("fingertip", "object", "goal"), *XYZ)),
        each(ARM, "torque"),
    ),
    Task(
        "InvertedPendulum-v5",
        "a pole on a cart",
        ("cart position", "pole angle", "cart speed", "pole speed"),
        ("cart force",),
    ),
    Task(
        "InvertedDoublePendulum-v5",
        "two poles on a cart",
        (
            *("cart position", "sine of first angle", "sine of second angle"),
            *("cosine of first angle", "cosine of second angle"),
            *("cart speed", "first pole speed", "second pole speed", "cart constraint force"),
        ),
        ("cart force",),
    ),
    Task(
        "Pendulum-v1",
        "a quick first test",
        ("cosine of angle", "sine of angle", "angular speed"),
        ("torque",),
    ),
    Task("MountainCarContinuous-v0", "a car climbs a hill", ("position", "speed"), ("force",)),
    Task(
        "CartPole-v1",
        "discrete: a pole",
        ("cart position", "cart speed", "pole angle", "pole speed"),
        ("push left", "push right"),
    ),
    Task(
        "LunarLander-v3",
        "discrete: a landing",
        (
            *("x", "y", "speed x", "speed y", "angle", "turning"),
            *("left leg on the ground", "right leg on the ground"),
        ),
        ("no engine", "left engine", "main engine", "right engine"),
    ),
)
TASKS = {task.name: task for task in _TASKS}
"""Tasks that are known to work, the paper's five first."""
_BY_BASE = {without_version(task.name): task for task in _TASKS}


def known_task(name: str) -> Task | None:
    """The catalogue's entry for a task, for any version; None if there is none."""
    return _BY_BASE.get(without_version(name))


def paper_lambdas(task: str, algorithm: str) -> tuple[float, float] | None:
    """The paper's λ for a task of any version; None if it has none.

    >>> paper_lambdas("HalfCheetah-v5", "td3")
    (7, 64)
    """
    known = known_task(task)
    return known.lambdas.get(algorithm) if known else None


def observation_names(task: str, n_obs: int) -> tuple[str, ...]:
    """Names of the features of an observation; numbers if the task is unknown.

    >>> observation_names("HalfCheetah-v5", 17)[8]
    'forward speed'
    >>> observation_names("Mine-v0", 2)
    ('observation 0', 'observation 1')
    """
    known = known_task(task)
    return _names(known.observations if known else (), n_obs, "observation")


def action_names(task: str, n_act: int) -> tuple[str, ...]:
    """Names of the features of an action; numbers if the task is unknown.

    >>> action_names("Hopper-v5", 3)
    ('thigh torque', 'leg torque', 'foot torque')
    """
    known = known_task(task)
    return _names(known.actions if known else (), n_act, "action")


def _names(known: tuple[str, ...], count: int, what: str) -> tuple[str, ...]:
    # Versions and options of a task change the number of features: another number means other features.
    return known if len(known) == count else tuple(f"{what} {number}" for number in range(count))
