"""Checks that the package shares: each error says what is wrong and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewirl.limits import BLOCKS, MAX_WIDTH

Floats: TypeAlias = NDArray[np.floating[Any]]


def whole_number(name: str, value: object) -> int:
    """`value` as an int; accepts NumPy integers, but not floats and bools."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def finite_number(name: str, value: object) -> float:
    """`value` as a float that is neither NaN nor infinite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is a number of {len(str(value))} digits: it must fit a float") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {number}")
    return number


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
        *others, largest = map(str, BLOCKS)
        raise ValueError(f"block must be {', '.join(others)} or {largest}, not {block}")
    for width in widths:
        if width % block:
            fitting = " or ".join(str(b) for b in BLOCKS if not any(w % b for w in widths))
            raise ValueError(f"block {block} does not divide a layer of {width} outputs: {fitting} would")
    return block


def listed(name: str, values: object, example: str) -> list[object]:
    """`values` as a list; a single number or a string is refused, with an example."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of numbers such as {example}, not {values!r}")
    return list(values)


def integer_array(name: str, values: object) -> NDArray[np.integer[Any]]:
    """`values`, checked to be an array of integers in one dimension."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an array of integers, not {kind_of(values)}")
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not the shape {values.shape}")
    return values


def float_array(name: str, values: object, *shapes: tuple[int, ...]) -> Floats:
    """`values`, checked to be an array of floats without NaN in one of `shapes`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        raise TypeError(f"{name} must be an array of floats, not {kind_of(values)}")
    if values.shape not in shapes:
        right = " or ".join(map(str, shapes))
        raise ValueError(f"{name} must have the shape {right}, not {values.shape}")
    if values.size and math.isnan(values.min()):  # NumPy's minimum is NaN if there is one
        raise ValueError(f"{name}{np.argwhere(np.isnan(values))[0].tolist()} is NaN: it must be a number")
    return values


def kind_of(value: object) -> str:
    """A description for messages."""
    return f"one of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
