"""The state of a run between two steps. Each part of a run saves and restores its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]


class State:
    """JSON values and arrays, by name. Reading a value checks its type.

    >>> state = State({"step": 3, "seconds": 1.5})
    >>> state.whole("step")
    3
    >>> state.whole("seconds")
    Traceback (most recent call last):
    ValueError: seconds is 1.5, which is not a whole number
    >>> state.unread()
    []
    """

    def __init__(
        self, values: Mapping[str, Any] | None = None, arrays: Mapping[str, NDArray[np.generic]] | None = None
    ) -> None:
        self.values: dict[str, Any] = dict(values or {})
        self.arrays: Arrays = dict(arrays or {})
        self._read: set[str] = set()

    def add(self, other: State) -> None:
        """The state of another part."""
        self.values |= other.values
        self.arrays |= other.arrays

    def add_arrays(self, prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Arrays under names that begin with a prefix."""
        self.arrays |= {f"{prefix}{name}": array for name, array in arrays.items()}

    def part(self, prefix: str) -> Arrays:
        """Arrays whose name begins with a prefix, without it."""
        return {name[len(prefix) :]: array for name, array in self.arrays.items() if name.startswith(prefix)}

    def whole(self, name: str) -> int:
        value = self._value(name)
        if type(value) is not int or not 0 <= value < 2**63:
            raise _not(name, value, "a whole number")
        return value

    def number(self, name: str) -> float:
        value = self._value(name)
        if type(value) is not float:
            raise _not(name, value, "a number")
        return value

    def table(self, name: str) -> dict[str, Any]:
        value = self._value(name)
        if not isinstance(value, dict):
            raise _not(name, value, "a table")
        return value

    def table_or_none(self, name: str) -> dict[str, Any] | None:
        return None if self._value(name) is None else self.table(name)

    def tables(self, name: str) -> list[dict[str, Any]]:
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise _not(name, value, "a list of tables")
        return value

    def texts(self, name: str) -> dict[str, str]:
        table = self.table(name)
        if not all(isinstance(text, str) for text in table.values()):
            raise _not(name, table, "a table of texts")
        return table

    def unread(self) -> list[str]:
        """Names of values that have not been read."""
        return sorted(self.values.keys() - self._read)

    def _value(self, name: str) -> Any:
        self._read.add(name)
        if name not in self.values:
            raise ValueError(f"there are other fields than a run has: {name} is missing")
        return self.values[name]


def set_generator(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Checks a generator's state; ValueError if it is invalid."""
    try:
        generator.bit_generator.state = state
    except (TypeError, KeyError, OverflowError, AttributeError) as error:
        raise ValueError(f"not the state of a random generator: {error}") from None


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    return dict(generator.bit_generator.state)


def _not(name: str, value: object, what: str) -> ValueError:
    return ValueError(f"{name} is {str(value)[:50]}, which is not {what}")
