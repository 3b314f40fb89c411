"""Speed and remaining time of a run."""

from __future__ import annotations

import time
from collections import deque


class Pace:
    """Speed and remaining time, from the last seconds. Random steps are fast and do not predict the rest."""

    def __init__(self, window: float = 20.0) -> None:
        self._window = window
        self._seen: deque[tuple[float, int]] = deque()
        self._learning = False

    def see(self, step: int, random_steps: int, now: float | None = None) -> None:
        """Records the current step; to be called often."""
        now = time.monotonic() if now is None else now
        if step > random_steps and not self._learning:
            self._learning = True
            self._seen.clear()
        self._seen.append((now, step))
        while len(self._seen) > 2 and now - self._seen[1][0] > self._window:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """Steps per second; 0 if not known yet."""
        if len(self._seen) < 2:
            return 0.0
        (start, first), (end, last) = self._seen[0], self._seen[-1]
        return (last - first) / (end - start) if end > start else 0.0

    def to_go(self, steps: int) -> str:
        """Expected time of this many steps."""
        return duration(steps / self.rate) if self._learning and self.rate > 0 else "–"


def duration(seconds: float) -> str:
    """A readable duration.

    >>> duration(75), duration(7265), duration(200_000)
    ('1:15', '2:01:05', '2 d 7:33:20')
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours or days else f"{rest // 60}:{rest % 60:02}"
    return f"{days} d {clock}" if days else clock
