"""The time in which modules are imported: a second in which nothing is begun, and much can go wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rewirl.errors import Refused


@contextmanager
def loading() -> Iterator[None]:
    """Imports: Ctrl-C waits until they are over; what cannot be loaded is said in a sentence.

    In the middle of an import it would come up as whatever the module makes of it: MuJoCo's, as a task that could not
    be made, or as a crash; and processes that are started to look for a library would each say what they think of it.
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
