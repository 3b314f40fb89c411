"""Importing modules: a second in which no work has started and much can go wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rewirl.errors import Refused


@contextmanager
def loading() -> Iterator[None]:
    """Delays Ctrl-C until imports are complete; reports in one sentence what cannot be loaded.

    In the middle of an import Ctrl-C would surface as whatever the module turns it into: in MuJoCo, a task that could
    not be created, or a crash; and processes started to find a library would each print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    except ImportError as error:
        if "REWIRL_ISA" in os.environ and "instruction set" in str(error):
            raise Refused(f"REWIRL_ISA: {error}") from None
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # KeyboardInterrupt, if there was one
