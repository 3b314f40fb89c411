"""Names at the ends of the lines of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class End(NamedTuple):
    """End of a line, and its label."""

    x: float
    y: float
    name: str
    colour: str


def label_ends(axis: Axes, ends: Sequence[End]) -> None:
    """Labels to the right of line ends, moved apart so that they do not overlap."""
    from matplotlib.patheffects import withStroke

    low, high = axis.get_ylim()
    height = axis.get_position().height * axis.figure.get_figheight() * 72  # type: ignore[union-attr]
    unit = (high - low) / max(height, 1)  # of a point
    for end, y in zip(ends, moved_apart([end.y for end in ends], 9.5 * unit, high), strict=True):
        axis.annotate(
            end.name,
            (end.x, y),
            xytext=(4, 0),
            textcoords="offset points",
            color=end.colour,
            fontsize=7.5,
            va="center",
            annotation_clip=False,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],  # it may lie over other lines
        )


def moved_apart(values: Sequence[float], apart: float, high: float) -> list[float]:
    """The values, moved so that no two are closer than `apart`, and none above `high` if there is room.

    >>> moved_apart([1.0, 5.0, 1.5], 1.0, 10.0), moved_apart([9.5, 9.8], 1.0, 10.0)
    ([1.0, 5.0, 2.0], [9.0, 10.0])
    """
    out = list(values)
    order = sorted(range(len(values)), key=values.__getitem__)
    for below, above in pairwise(order):
        out[above] = max(out[above], out[below] + apart)
    top = high
    for number in reversed(order):
        out[number] = min(out[number], max(top, values[number]) if number == order[-1] else top)
        top = out[number] - apart
    return out
