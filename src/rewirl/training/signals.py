"""Signals from the system and the user during a run."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

STOP = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
SAVE = signal.SIGUSR1


class Signals:
    """Within the block a signal is only recorded; a second Ctrl-C ends the process (`hard`) or raises immediately.

    Only the main thread may have handlers; in others nothing is recorded. Ignored signals (nohup) stay ignored.
    """

    def __init__(self, *, hard: bool) -> None:
        self.stop: signal.Signals | None = None
        self.save = False
        self._after_interrupt = signal.SIG_DFL if hard else signal.default_int_handler
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (*STOP, SAVE):
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN and before is not None:
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == SAVE:
            self.save = True
            return
        self.stop = signal.Signals(number)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, self._after_interrupt)
