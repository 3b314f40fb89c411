"""File permissions for root as for everybody else."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

VERSION = 0x20080522
"""Of the structure that `capset` takes: Linux's third."""
OVERRIDES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them, permissions do not count."""


@contextmanager
def as_normal_user() -> Iterator[None]:
    """Root without the right to ignore permissions; anybody else as they are."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    head, rights = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()

    def call(function: str) -> None:
        if getattr(libc, function)(head, rights):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    call("capget")
    before = rights[0]  # the first is the effective set
    rights[0] = before & ~OVERRIDES
    call("capset")
    try:
        yield
    finally:
        rights[0] = before
        call("capset")
