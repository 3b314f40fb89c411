"""What the numbers in an observation and an action of a task are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

XYZ = "xyz"
ANT_LEGS = ("front left", "front right", "back left", "back right")
SIDES = ("right", "left")
HUMANOID_BODIES = (
    *("torso", "lower waist", "pelvis"),
    *(f"{side} {part}" for side in SIDES for part in ("thigh", "shin", "foot")),
    *(f"{side} {part} arm" for side in SIDES for part in ("upper", "lower")),
)
HUMANOID_JOINTS = (
    *(f"abdomen {axis}" for axis in "zyx"),
    *(f"{side} {joint}" for side in SIDES for joint in ("hip x", "hip z", "hip y", "knee")),
    *(f"{side} {joint}" for side in SIDES for joint in ("shoulder 1", "shoulder 2", "elbow")),
)


def observation_names(task: str, n_obs: int) -> tuple[str, ...]:
    """Names of the features of an observation; numbers where the task is not known.

    >>> observation_names("HalfCheetah-v5", 17)[8]
    'forward speed'
    >>> observation_names("Mine-v0", 2)
    ('observation 0', 'observation 1')
    """
    return _of(_OBSERVATIONS, task, n_obs, "observation")


def action_names(task: str, n_act: int) -> tuple[str, ...]:
    """Names of the numbers of an action; numbers where the task is not known.

    >>> action_names("Hopper-v5", 3)
    ('thigh torque', 'leg torque', 'foot torque')
    """
    return _of(_ACTIONS, task, n_act, "action")


def _of(known: dict[str, tuple[str, ...]], task: str, count: int, what: str) -> tuple[str, ...]:
    # What a task's version or options change is the number of features: other numbers, other features.
    names = known.get(re.sub(r"-v\d+$", "", task), ())
    return names if len(names) == count else tuple(f"{what} {number}" for number in range(count))


def _each(things: Iterable[str], *whats: str) -> tuple[str, ...]:
    return tuple(f"{thing} {what}" for thing in things for what in whats)


def _flat_walker(joints: Sequence[str]) -> tuple[str, ...]:
    """A body in a plane on a chain of hinges."""
    body = ("forward speed", "vertical speed", "torso turning")
    return ("torso height", "torso angle", *_each(joints, "angle"), *body, *_each(joints, "speed"))


def _free_body(joints: Sequence[str]) -> tuple[str, ...]:
    """A body in space: its height and orientation, its joints, and how both move."""
    orientation = tuple(f"torso orientation {part}" for part in "wxyz")
    moving = (*(f"torso speed {axis}" for axis in XYZ), *(f"torso turning {axis}" for axis in XYZ))
    return ("torso height", *orientation, *_each(joints, "angle"), *moving, *_each(joints, "speed"))


def _contacts(bodies: Iterable[str]) -> tuple[str, ...]:
    return _each(bodies, *(f"contact {kind} {axis}" for kind in ("torque", "force") for axis in XYZ))


_CHEETAH = _each(("back", "front"), "thigh", "shin", "foot")
_HOPPER = ("thigh", "leg", "foot")
_WALKER = _each(SIDES, *_HOPPER)
_ANT = _each(ANT_LEGS, "hip", "ankle")
_ANT_MOTORS = _each((ANT_LEGS[3], *ANT_LEGS[:3]), "hip", "ankle")
_ANT_BODIES = ("torso", *_each(ANT_LEGS, "leg", "upper leg", "foot"))
_ARM = ("shoulder pan", "shoulder lift", "upper arm roll", "elbow flex", "forearm roll", "wrist flex", "wrist roll")
_HUMANOID = (
    *_free_body(HUMANOID_JOINTS),
    *_each(
        HUMANOID_BODIES,
        *(f"inertia {axes}" for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
        *(f"mass offset {axis}" for axis in XYZ),
        "mass",
    ),
    *_each(HUMANOID_BODIES, *(f"centre {kind} {axis}" for kind in ("turning", "speed") for axis in XYZ)),
    *_each(HUMANOID_JOINTS, "motor force"),
    *_contacts(HUMANOID_BODIES),
)
_HUMANOID_MOTORS = (HUMANOID_JOINTS[1], HUMANOID_JOINTS[0], *HUMANOID_JOINTS[2:])

_OBSERVATIONS: dict[str, tuple[str, ...]] = {
    "HalfCheetah": _flat_walker(_CHEETAH),
    "Hopper": _flat_walker(_HOPPER),
    "Walker2d": _flat_walker(_WALKER),
    "Ant": (*_free_body(_ANT), *_contacts(_ANT_BODIES)),
    "Humanoid": _HUMANOID,
    "HumanoidStandup": _HUMANOID,
    "Swimmer": (
        *("front angle", "first joint angle", "second joint angle"),
        *("front speed x", "front speed y", "front turning", "first joint speed", "second joint speed"),
    ),
    "Reacher": (
        *(f"{function} of {joint} angle" for function in ("cosine", "sine") for joint in ("first", "second")),
        *("target x", "target y", "first joint speed", "second joint speed"),
        *("fingertip to target x", "fingertip to target y"),
    ),
    "Pusher": (
        *_each(_ARM, "angle"),
        *_each(_ARM, "speed"),
        *_each(("fingertip", "object", "goal"), *XYZ),
    ),
    "InvertedPendulum": ("cart position", "pole angle", "cart speed", "pole speed"),
    "InvertedDoublePendulum": (
        *("cart position", "sine of first angle", "sine of second angle"),
        *("cosine of first angle", "cosine of second angle"),
        *("cart speed", "first pole speed", "second pole speed", "cart constraint force"),
    ),
    "Pendulum": ("cosine of angle", "sine of angle", "angular speed"),
    "MountainCarContinuous": ("position", "speed"),
}
_ACTIONS: dict[str, tuple[str, ...]] = {
    "HalfCheetah": _each(_CHEETAH, "torque"),
    "Hopper": _each(_HOPPER, "torque"),
    "Walker2d": _each(_WALKER, "torque"),
    "Ant": _each(_ANT_MOTORS, "torque"),
    "Humanoid": _each(_HUMANOID_MOTORS, "torque"),
    "HumanoidStandup": _each(_HUMANOID_MOTORS, "torque"),
    "Swimmer": ("first joint torque", "second joint torque"),
    "Reacher": ("first joint torque", "second joint torque"),
    "Pusher": _each(_ARM, "torque"),
    "InvertedPendulum": ("cart force",),
    "InvertedDoublePendulum": ("cart force",),
    "Pendulum": ("torque",),
    "MountainCarContinuous": ("force",),
}
