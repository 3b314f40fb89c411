"""The action box in 32-bit numbers, for exported code."""

from __future__ import annotations

import numpy as np

from rewirl.policies.layer import Floats


def box_in_float32(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """`center` and `half` such that clipping `center + half * t` to [low, high] maps -1 and 1 onto the ends exactly.

    Rounded to 32 bits, center + half can fall short of the end, so half is widened by as little as necessary.

    >>> box_in_float32(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    (array([0., 5.], dtype=float32), array([2., 5.], dtype=float32))
    """
    wide_low, wide_high = low.astype(np.float64), high.astype(np.float64)
    center = ((wide_high + wide_low) / 2).astype(np.float32)
    half = ((wide_high - wide_low) / 2).astype(np.float32)
    with np.errstate(over="ignore"):
        while (short := (center + half < high) | (center - half > low)).any():
            half = np.where(short, np.nextafter(half, np.float32(np.inf)), half)
    return center, half
