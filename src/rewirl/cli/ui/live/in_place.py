"""Output that is redrawn in place on a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.live import Live


class InPlace:
    """Starts with the first `show`; `end` leaves the last output on the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    @property
    def begun(self) -> bool:
        """Whether something is shown now."""
        return self._live is not None

    def show(self, what: RenderableType) -> None:
        """Replaces the previous output."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._console.show_cursor(True)  # Ctrl-C twice must leave the cursor visible
        self._live.update(what, refresh=True)

    def end(self) -> None:
        """Later output is printed below."""
        if self._live is not None:
            self._live.stop()
            self._live = None
