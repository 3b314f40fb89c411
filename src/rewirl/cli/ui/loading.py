"""Importing modules with readable errors, and without interruption by signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rewirl.errors import Refused


@contextmanager
def loading() -> Iterator[None]:
    """Delays Ctrl-C until imports are complete; reports a failed import in one sentence.

    During an import Ctrl-C may be turned into another error (in MuJoCo a task that cannot be created, or a crash), and
    child processes that search for a library would each print a traceback.
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


@contextmanager
def early_signals(*, to_the_end: bool) -> Iterator[None]:
    """SIGUSR1 asks a run for a checkpoint. Before the run can be asked, and after it ended, there is nothing to save:
    then the signal does nothing, and does not end the process, as it would by default. With `to_the_end` this holds
    until the process has ended."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGUSR1, lambda *_: None)  # and not SIG_IGN, which other processes would inherit
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN if to_the_end else signal.SIG_DFL)
