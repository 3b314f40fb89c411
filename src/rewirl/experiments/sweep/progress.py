"""Progress of a run, read from its folder while another process writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewirl.storage.folder import RunFolder
from rewirl.storage.logs.tables import parse, whole_lines
from rewirl.training.measurements import EvaluationRow
from rewirl.untrusted import opened, read_bytes

TAIL = 4096
"""Bytes at the end of progress.csv that contain its last row."""


@dataclass(frozen=True)
class Progress:
    """A run at a glance."""

    step: int = 0
    last_return: float | None = None
    best_return: float | None = None
    steps_per_second: float | None = None
    """Speed between its last two evaluations."""
    memory_mb: float | None = None


class ProgressReader:
    """Reads the progress of one run folder; unchanged files are not read again."""

    def __init__(self, folder: Path) -> None:
        self._place = RunFolder(folder)
        self._seen: tuple[int, int] | None = None
        self._rows: list[EvaluationRow] = []

    def rows(self) -> list[EvaluationRow]:
        """Its evaluations so far."""
        self._read_rows()
        return self._rows

    def read(self) -> Progress:
        """The current progress; zeros if there is no run yet."""
        self._read_rows()
        last = self._rows[-1] if self._rows else None
        step = max(self._place.read_status().get("step") or 0, self._last_episode(), last.step if last else 0)
        if last is None:
            return Progress(step)
        best = max(row.return_mean for row in self._rows)
        rate = last.steps_per_second if last.step else None
        return Progress(step, last.return_mean, best, rate, last.memory_mb)

    def _read_rows(self) -> None:
        try:
            about = self._place.evaluations.stat()
            if self._seen != (about.st_mtime_ns, about.st_size):
                self._rows = parse(EvaluationRow, whole_lines(read_bytes(self._place.evaluations)))
                self._seen = (about.st_mtime_ns, about.st_size)
        except (OSError, ValueError, TypeError):
            self._rows = []

    def _last_episode(self) -> int:
        """The step at which the last episode ended."""
        try:
            with opened(self._place.progress) as file:
                size = file.seek(0, 2)
                file.seek(max(size - TAIL, 0))
                lines = file.read().split(b"\n")
            return int(lines[-2].split(b",")[0])
        except (OSError, ValueError, IndexError):
            return 0
