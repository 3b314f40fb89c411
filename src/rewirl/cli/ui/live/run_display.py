"""The display of a run: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rewirl.cli.ui.live.in_place import InPlace
from rewirl.cli.ui.tables import sparkline, table
from rewirl.training import EvaluationRow, Observer, Run
from rewirl.training.observers.pace import Pace, duration
from rewirl.untrusted import printable

REDRAWS = 0.25
"""Seconds between redraws: drawing takes time from training."""
ROWS = 5
"""Evaluations in the panel's table."""


def display(console: Console) -> Observer:
    """The display that suits the output."""
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


class PlainDisplay(Observer):
    """One line at the start, one per evaluation, and notices."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.pace = Pace()

    def on_start(self, run: Run) -> None:
        self._line(f"{title(run)}: {run.config.steps:,} steps from step {run.step:,}, links {links(run)}")

    def on_progress(self, run: Run) -> None:
        self.pace.see(run.step, run.config.random_steps)

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        self.pace.see(run.step, run.config.random_steps)
        best = max(seen.return_mean for seen in run.evaluations)
        self._line(
            f"step {row.step:,}/{run.config.steps:,}  return {_return(row)}  best {best:,.1f}  "
            f"{row.steps_per_second:,.0f} steps/s  links {row.links:,}  "
            f"ETA {self.pace.to_go(run.config.steps - run.step)}"
        )

    def on_notice(self, run: Run, text: str) -> None:
        self._line(f"note: {text}")

    def _line(self, text: str) -> None:
        self._console.out(text, highlight=False)


class LiveDisplay(Observer):
    """A panel that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.pace = Pace()
        self._place = InPlace(console)
        self._drawn = 0.0

    def on_start(self, run: Run) -> None:
        self._place.show(self.panel(run))

    def on_progress(self, run: Run) -> None:
        self.pace.see(run.step, run.config.random_steps)
        if time.monotonic() - self._drawn >= REDRAWS:
            self._draw(run)

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        self._draw(run)

    def on_notice(self, run: Run, text: str) -> None:
        self._console.print(Text(printable(f"note: {text}"), style="yellow"))

    def on_end(self, run: Run, error: BaseException | None) -> None:
        self._draw(run)
        self._place.end()

    def _draw(self, run: Run) -> None:
        if self._place.begun:
            self._place.show(self.panel(run))
            self._drawn = time.monotonic()

    def panel(self, run: Run) -> RenderableType:
        """The current state of the run."""
        config, rows = run.config, run.evaluations
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_row(
            ProgressBar(config.steps, run.step, complete_style="cyan", finished_style="green"),
            f"{run.step:,} / {config.steps:,}",
            Text(f"{run.step / config.steps:.1%}", style="bold"),
            Text(f"ETA {self.pace.to_go(config.steps - run.step)}", style="cyan"),
        )
        facts = Table.grid(padding=(0, 3))
        facts.add_row(*_fact("now", self._phase(run)), *_fact("return", _return(rows[-1] if rows else None)))
        facts.add_row(*_fact("speed", f"{self.pace.rate:,.0f} steps/s"), *_fact("best", _best(run.best)))
        facts.add_row(*_fact("links", links(run)), *_fact("so far", duration(run.seconds)))
        parts: list[RenderableType] = [bar, Text(), facts]
        if rows:
            curve = sparkline([row.return_mean for row in rows])
            parts += [Text(), Text.assemble(("returns  ", "dim"), (curve, "green")), _last(rows)]
        return Panel(
            Group(*parts), title=f"[bold]{title(run)}[/]", border_style="cyan", padding=(1, 2), width=self._width()
        )

    def _phase(self, run: Run) -> str:
        if run.done:
            return "done"
        left = run.config.random_steps - run.step
        if left <= 0:
            return "learning"
        acts = "initial policy acts" if run.config.initial_samples else "trying random actions"
        return f"{acts}, {left:,} more"

    def _width(self) -> int:
        # Room for the ^C that a terminal echoes: if it wrapped, the panel would be drawn one line too low.
        return min(self._console.width - 4, 100)


def title(run: Run) -> str:
    """Name of the run."""
    return f"{run.config.method} on {run.config.task}, seed {run.config.seed}"


def links(run: Run) -> str:
    """Number of links and sparsity."""
    costs = run.costs
    return f"{costs.links:,} of {costs.dense_links:,} ({costs.sparsity:.1%} sparse)"


def _fact(name: str, value: str) -> tuple[Text, Text]:
    return Text(name, style="dim"), Text(value, style="bold")


def _return(row: EvaluationRow | None) -> str:
    return f"{row.return_mean:,.1f} ± {row.return_std:,.1f}" if row else "–"


def _best(row: EvaluationRow | None) -> str:
    return f"{row.return_mean:,.1f} at step {row.step:,}" if row else "–"


def _last(rows: list[EvaluationRow]) -> Table:
    numbers = ("step", "return", "± std", "Q", "links replaced", "steps/s")
    made = table(*numbers, right=numbers)
    best = max(row.return_mean for row in rows)
    for row in rows[-ROWS:]:
        cells = [f"{row.step:,}", f"{row.return_mean:,.1f}", f"{row.return_std:,.1f}"]
        cells += ["–" if row.q is None else f"{row.q:,.1f}", f"{row.links_replaced or 0:,.0f}"]
        cells += [f"{row.steps_per_second:,.0f}" if row.step else "–"]
        made.add_row(*cells, style="green" if row.return_mean == best else None)
    return made
