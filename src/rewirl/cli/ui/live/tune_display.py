"""The display of a search: a live table of its trials on a terminal, plain lines elsewhere."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rewirl.cli.ui.live.in_place import InPlace
from rewirl.cli.ui.tables import table
from rewirl.experiments.tune.tuning import Trial, TuneWatcher, Tuning
from rewirl.untrusted import printable

STYLES = {"running": "cyan", "done": "green", "failed": "red", "stopped": "yellow", "pruned": "dim", "waiting": "dim"}


def tune_display(console: Console) -> TuneDisplay:
    """The display that suits the output."""
    return LiveTuning(console) if console.is_terminal else TuneDisplay(console)


class TuneDisplay(TuneWatcher):
    """One line when a trial starts or ends."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def on_change(self, tuning: Tuning, trial: Trial) -> None:
        numbers = "  ".join(
            f"{name} {text}" for name, text in zip(_names(tuning), _numbers(tuning, trial), strict=True)
        )
        value = f"  R {trial.value:,.1f}" if trial.value is not None else ""
        why = f": {trial.message}" if trial.message else ""
        self.console.out(f"trial {trial.number} {trial.state}  {numbers}{value}{why}", highlight=False)


class LiveTuning(TuneDisplay):
    """A panel that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._place = InPlace(console)

    def on_change(self, tuning: Tuning, trial: Trial) -> None:
        if trial.state == "failed":
            self.console.print(Text(printable(f"trial {trial.number} failed: {trial.message}"), style="red"))

    def on_look(self, tuning: Tuning) -> None:
        self._place.show(self.panel(tuning))

    def on_end(self, tuning: Tuning) -> None:
        if self._place.begun:
            self._place.show(self.panel(tuning))
            self._place.end()

    def panel(self, tuning: Tuning) -> RenderableType:
        """The current state of the search."""
        ended = len(tuning.of("done", "pruned", "failed"))
        best = tuning.best
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_row(
            ProgressBar(tuning.wanted, ended, complete_style="cyan", finished_style="green"),
            f"{ended} of {tuning.wanted} trials",
            Text(f"best R {best.value:,.1f}" if best is not None else "best R –", style="bold green"),
        )
        parts: list[RenderableType] = [bar, tuned(tuning, max(self.console.height - 10, 3))]
        if tuning.stopping and tuning.of("running"):
            parts.append(Text("Stopping: each run saves and ends; Ctrl-C again kills them.", style="yellow"))
        title = f"[bold]tuning {tuning.base['method']} on {tuning.base['task']}[/]"
        width = min(self.console.width - 4, 100)
        return Panel(Group(*parts), title=title, border_style="cyan", padding=(1, 2), width=width)


def tuned(tuning: Tuning, room: int | None = None) -> Table:
    """The trials, running ones first, then by R; as many as fit."""
    names = ("trial", *_names(tuning), "done", "R")
    rows = table(*names, "state", right=names)
    order = {"running": 0, "done": 1}
    ranked = sorted(tuning.trials, key=lambda trial: (order.get(trial.state, 2), -trial.rank))
    for trial in ranked[:room]:
        cells = [str(trial.number), *_numbers(tuning, trial), f"{min(trial.step / trial.steps, 1):.0%}"]
        cells.append("–" if trial.value is None else f"{trial.value:,.1f}")
        style = "bold" if trial is tuning.best else None
        rows.add_row(*cells, Text(trial.state, style=STYLES[trial.state]), style=style)
    return rows


def _names(tuning: Tuning) -> list[str]:
    lambdas = [f"λ{'¹²³⁴⁵⁶⁷⁸⁹'[layer] if layer < 9 else layer + 1}" for layer in range(len(tuning.space.lambdas))]
    return [*lambdas, *(["η", "e"] if tuning.space.eta else [])]


def _numbers(tuning: Tuning, trial: Trial) -> list[str]:
    options = tuning.space.options(trial.params)
    values = [*options["lambdas"], *(options[name] for name in ("eta", "adapt_every") if name in options)]
    return [f"{value:g}" for value in values]
