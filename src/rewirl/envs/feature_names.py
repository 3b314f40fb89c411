"""Building blocks for the feature names in the task catalogue."""

from __future__ import annotations

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


def each(things: Iterable[str], *whats: str) -> tuple[str, ...]:
    """
    >>> each(("left", "right"), "hip", "knee")
    ('left hip', 'left knee', 'right hip', 'right knee')
    """
    return tuple(f"{thing} {what}" for thing in things for what in whats)


def flat_walker(joints: Sequence[str]) -> tuple[str, ...]:
    """A planar body with a chain of hinges."""
    body = ("forward speed", "vertical speed", "torso turning")
    return ("torso height", "torso angle", *each(joints, "angle"), *body, *each(joints, "speed"))


def free_body(joints: Sequence[str]) -> tuple[str, ...]:
    """A body in space: height, orientation and joints, and their velocities."""
    orientation = tuple(f"torso orientation {part}" for part in "wxyz")
    moving = (*(f"torso speed {axis}" for axis in XYZ), *(f"torso turning {axis}" for axis in XYZ))
    return ("torso height", *orientation, *each(joints, "angle"), *moving, *each(joints, "speed"))


def contacts(bodies: Iterable[str]) -> tuple[str, ...]:
    return each(bodies, *(f"contact {kind} {axis}" for kind in ("torque", "force") for axis in XYZ))


CHEETAH = each(("back", "front"), "thigh", "shin", "foot")
HOPPER = ("thigh", "leg", "foot")
WALKER = each(SIDES, *HOPPER)
ANT = each(ANT_LEGS, "hip", "ankle")
ANT_MOTORS = each((ANT_LEGS[3], *ANT_LEGS[:3]), "hip", "ankle")
ANT_BODIES = ("torso", *each(ANT_LEGS, "leg", "upper leg", "foot"))
ARM = ("shoulder pan", "shoulder lift", "upper arm roll", "elbow flex", "forearm roll", "wrist flex", "wrist roll")
HUMANOID_FEATURES = (
    *free_body(HUMANOID_JOINTS),
    *each(
        HUMANOID_BODIES,
        *(f"inertia {axes}" for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
        *(f"mass offset {axis}" for axis in XYZ),
        "mass",
    ),
    *each(HUMANOID_BODIES, *(f"centre {kind} {axis}" for kind in ("turning", "speed") for axis in XYZ)),
    *each(HUMANOID_JOINTS, "motor force"),
    *contacts(HUMANOID_BODIES),
)
HUMANOID_MOTORS = (HUMANOID_JOINTS[1], HUMANOID_JOINTS[0], *HUMANOID_JOINTS[2:])
