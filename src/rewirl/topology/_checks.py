"""Refusals that the whole package shares: each says what was wrong and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

BLOCKS = (1, 2, 4, 8)
"""Numbers of output rows that may share one input as a block: what the core has kernels for."""

MAX_WIDTH = 65_536
"""Widest layer: the core keeps 16-bit indices."""


def whole_number(name: str, value: object) -> int:
    """`value` as an int; NumPy integers are welcome, floats and bools are not."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def finite_number(name: str, value: object) -> float:
    """`value` as a float that is neither NaN nor infinite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {float(value)}")
    return float(value)


def layer_width(name: str, value: object) -> int:
    """`value` as the number of neurons on one side of a layer."""
    width = whole_number(name, value)
    if not 1 <= width <= MAX_WIDTH:
        raise ValueError(f"{name} must be from 1 to {MAX_WIDTH}, not {width}")
    return width


def block_size(value: object, widths: Sequence[int]) -> int:
    """`value` as a block size that divides every one of `widths`."""
    block = whole_number("block", value)
    if block not in BLOCKS:
        raise ValueError(f"block must be 1, 2, 4 or 8, not {block}")
    for width in widths:
        if width % block:
            fitting = " or ".join(str(b) for b in BLOCKS if not any(w % b for w in widths))
            raise ValueError(f"block {block} does not divide a layer of {width} outputs: {fitting} would")
    return block


def listed(name: str, values: object, example: str) -> list[object]:
    """`values` as a list; a single number or a text is refused with an example of what would be right."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of numbers such as {example}, not {values!r}")
    return list(values)
