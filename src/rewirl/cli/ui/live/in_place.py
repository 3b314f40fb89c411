"""What is drawn over and over in one place of a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.live import Live


class InPlace:
    """Begins with the first `show`; `end` leaves the last one standing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    @property
    def begun(self) -> bool:
        """Whether something is shown now."""
        return self._live is not None

    def show(self, what: RenderableType) -> None:
        """Instead of what was there before."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._console.show_cursor(True)  # whoever leaves at once (Ctrl-C twice) finds it where it was
        self._live.update(what, refresh=True)

    def end(self) -> None:
        """What comes next is printed below."""
        if self._live is not None:
            self._live.stop()
            self._live = None
