"""The interface of a store, as the run sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rewirl.nn import Network
from rewirl.policies.policy import Policy
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow

if TYPE_CHECKING:
    from rewirl.training.run import Run


class Store(Protocol):
    """Keeps the rows, checkpoints and policies of a run. A run in memory has none."""

    last_step: int
    """Step of the last checkpoint; 0 before the first."""
    limit: int
    """Steps from one checkpoint to the next, at most."""
    finished: bool
    """Whether everything after the last step is written."""

    @property
    def folder(self) -> Path: ...

    def add_evaluation(self, row: EvaluationRow) -> None: ...

    def add_diagnostics(self, row: DiagnosticsRow) -> None: ...

    def add_episode(self, episode: Episode) -> None: ...

    def add_wiring(self, networks: Mapping[str, Network]) -> None:
        """Records the current links for the evaluation that starts."""

    def flush(self) -> None:
        """Makes the rows visible to other programs."""

    def checkpoint(self, run: Run) -> Path:
        """Saves everything that the next step depends on."""
        ...

    def is_current(self, step: int) -> bool:
        """Whether the last checkpoint contains everything at a step."""
        ...

    def save_policies(self, policy: Policy, is_best: bool) -> None: ...

    def running(self, step: int) -> None: ...

    def finish(self, run: Run) -> None:
        """All steps are done."""

    def ended(self, step: int, done: bool, error: BaseException | None) -> None:
        """`train` ends, for whatever reason."""

    def how_to_resume(self, run: Run) -> str: ...

    def close_tables(self) -> None: ...

    def close(self) -> None: ...
