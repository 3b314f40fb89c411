"""How things end other than well, each with the exit code of the command line."""

from __future__ import annotations

from typing import ClassVar


class Refused(Exception):
    """A user's mistake, found before any work: one sentence that names the thing and what would be right."""

    exit_code: ClassVar[int] = 2


class Failed(Exception):
    """Something went wrong on the way; what was saved before is whole."""

    exit_code: ClassVar[int] = 1


class NoRoom(Failed):
    """A full disk, or one that cannot be written to: nothing that the work itself could help."""

    exit_code: ClassVar[int] = 4


class Stopped(Exception):
    """Asked to stop, and did, with a checkpoint: the message says how to go on."""

    exit_code: ClassVar[int] = 3
