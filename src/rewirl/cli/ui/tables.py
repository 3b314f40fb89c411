"""Tables and numbers for the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewirl.untrusted import printable

BARS = "▁▂▃▄▅▆▇█"
UNCUT = 10_000


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table without lines; the columns named in `right` are aligned there."""
    made = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return made


def show(*parts: object) -> None:
    """Prints to standard output at its width. Texts are literal: a path may have brackets in it."""
    literal = [Text(lines(part)) if isinstance(part, str) else part for part in parts]
    Console(highlight=False, width=width()).print(*literal, sep="\n")


def lines(text: str) -> str:
    """Its lines without control characters.

    >>> lines("one\\ntwo\\x1b[2J")
    'one\\ntwo\\\\x1b[2J'
    """
    return "\n".join(map(printable, text.split("\n")))


def width() -> int:
    """Width of standard output; unlimited for a file or a pipe."""
    console = Console()
    return console.width if console.is_terminal else UNCUT


def count(number: int, thing: str) -> str:
    """A number with its noun.

    >>> count(1, "run"), count(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(count: float) -> str:
    """Bytes in a readable unit.

    >>> size(168_000_000), size(900)
    ('168 MB', '900 bytes')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def sparkline(values: list[float], width: int = 40) -> str:
    """A curve in one line of text.

    >>> sparkline([0.0, 1.0, 2.0, 3.0])
    '▁▃▆█'
    """
    if len(values) > width:
        values = [values[(i + 1) * len(values) // width - 1] for i in range(width)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in values)
