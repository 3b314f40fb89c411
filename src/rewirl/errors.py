"""Errors with the exit codes of the command line; hints for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class Refused(Exception):
    """A user's mistake, found before any work: one sentence that says what is wrong and what would be right."""

    exit_code: ClassVar[int] = 2

    def __init__(self, text: str = "", option: str = "") -> None:
        super().__init__(text)
        self.option = option
        """The invalid argument, if there is one; the command line adds its flag."""


class Failed(Exception):
    """Something went wrong during the work; what was saved before is intact."""

    exit_code: ClassVar[int] = 1


class NoRoom(Failed):
    """A disk that is full or cannot be written to."""

    exit_code: ClassVar[int] = 4


class Stopped(Exception):
    """Stopped on request, with a checkpoint: the message says how to resume."""

    exit_code: ClassVar[int] = 3


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name, or an empty string.

    >>> nearest("HalfCheeta-v5", ["HalfCheetah-v5", "Hopper-v5"])
    ', did you mean HalfCheetah-v5?'
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f", did you mean {found[0]}?" if found else ""
