"""Standard output and error that may fail: `rewirl train … | head`, a closed terminal, a full disk."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rewirl.errors import Failed


class _Output(io.FileIO):
    """One of the two streams. A failed write ends the command if the output is its result, but not if it is only a
    display."""

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.needed = needed

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or len(data)
        except OSError as error:
            if not self.needed:
                return len(data)
            self.needed = False  # reported once: later output has nowhere to go
            if isinstance(error, BrokenPipeError):
                raise
            raise Failed(f"the output could not be written: {error.strerror}") from None


_stdout: _Output | None = None
"""Standard output while a command runs."""


@contextmanager
def outputs() -> Iterator[None]:
    """Standard output and error of a command; write errors are ignored or reported in one sentence."""
    global _stdout
    before = sys.stdout, sys.stderr
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr, _ = _opened(sys.stderr, needed=False)
    if sys.stdout is None or sys.stdout is sys.__stdout__:  # not a replacement by a test or a notebook
        sys.stdout, _stdout = _opened(sys.stdout, needed=True)
    try:
        yield
        sys.stdout.flush()
    finally:
        _stdout = None
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, Failed):
                stream.flush()
        sys.stdout, sys.stderr = before


def only_shown() -> None:
    """Declares further output a display: if it cannot be written, the work continues."""
    if _stdout is not None:
        sys.stdout.flush()
        _stdout.needed = False


def _opened(stream: TextIO | None, *, needed: bool) -> tuple[TextIO, _Output]:
    """`stream` wrapped in an `_Output`; discarded if it was closed from the start (>&-)."""
    descriptor = os.open(os.devnull, os.O_WRONLY) if stream is None else stream.fileno()
    raw = _Output(descriptor, needed=needed)
    # errors: a λ that the output cannot encode must not fail.
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = io.TextIOWrapper(io.BufferedWriter(raw), encoding, "replace", line_buffering=True)
    return text, raw
