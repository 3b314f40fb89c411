"""Checks of input to the core, with readable errors; checks of saved states."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def not_a_batch(verb: str, value: object) -> TypeError:
    return TypeError(f"{verb} takes a Batch, not {kind_of(value)}; batch_of(array) makes one")


def kind_of(value: object) -> str:
    if isinstance(value, np.ndarray):
        contiguous = "" if value.flags.c_contiguous else "non-contiguous "
        return f"a {contiguous}{value.dtype} array of shape {value.shape}"
    return type(value).__name__


def entry(name: str, state: Mapping[str, NDArray[np.generic]]) -> NDArray[np.generic]:
    if name not in state:
        raise ValueError(f"the state has no {name!r}; it has {', '.join(sorted(state)) or 'nothing'}")
    return state[name]


def same_kind(name: str, state: Mapping[str, NDArray[np.generic]], like: NDArray[np.generic]) -> Floats:
    value = entry(name, state)
    if value.dtype != like.dtype or value.shape != like.shape:
        raise ValueError(f"{name} must be {like.dtype} of shape {like.shape}, the state has {kind_of(value)}")
    return np.asarray(value, order="C")  # ascontiguousarray would turn a scalar into one dimension
