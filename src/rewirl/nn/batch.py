"""Batches from NumPy arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewirl._core import Batch

Floats = NDArray[np.float32]


def batch_of(array: Floats) -> Batch:
    """A batch with a copy of `array`, of shape (features, samples).

    >>> batch_of(np.ones((3, 5), dtype=np.float32)).array.sum()
    np.float32(15.0)
    """
    if array.dtype != np.float32 or array.ndim != 2:
        raise TypeError(
            f"a batch is a float32 array of shape (features, samples), not {array.dtype} with {array.ndim} dimensions"
        )
    batch = Batch(*array.shape)
    batch.array[...] = array
    return batch
