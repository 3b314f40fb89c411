"""Writes a report: first to a temporary folder, then to its destination."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rewirl.errors import Failed, Refused
from rewirl.experiments.analysis.aggregates import aggregate
from rewirl.experiments.analysis.comparison import Comparison
from rewirl.experiments.analysis.wiring.study import WiringStudy, studies
from rewirl.experiments.report.figures import figures, save
from rewirl.experiments.report.page import Page
from rewirl.experiments.report.page_data import page_data
from rewirl.experiments.report.style import inks_for
from rewirl.experiments.report.tables.result_tables import all_tables
from rewirl.files import refuse_link, to_json

PAGE, MARK = "index.html", "report.json"
ENTRIES = (PAGE, MARK, "figures", "tables")
"""Content of a report folder; other files in it are kept."""


@dataclass(frozen=True)
class Written:
    """Folder and content of a report."""

    page: Path
    figures: int
    tables: int
    notes: tuple[str, ...]


def check(out: Path) -> None:
    """Refused if a library is missing, or if `out` is something that a report must not be written over."""
    for name in ("matplotlib", "plotly"):
        if importlib.util.find_spec(name) is None:
            raise Refused(f"a report needs {name}, which is not installed: pip install 'rewirl[report]'")
    if out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise Refused(f"{out} exists and is not a report: choose another folder, or empty it", "out")
    for name in ENTRIES:
        refuse_link(out / name)


def write_report(
    comparison: Comparison, out: Path, title: str, command: str, tell: Callable[[str], None] = lambda _: None
) -> Written:
    """Writes a page, figures and tables into the folder `out`, replacing an existing report. `tell` receives
    progress."""
    check(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as aside:
            written = _write(comparison, Path(aside), title, command, tell)
            _move(Path(aside), out)
    except OSError as error:
        raise Failed(f"the report could not be written to {out} ({error.strerror}): choose another folder") from error
    return Written(out / PAGE, *written)


def _write(
    comparison: Comparison, folder: Path, title: str, command: str, tell: Callable[[str], None]
) -> tuple[int, int, tuple[str, ...]]:
    tell("statistics")
    aggregates = aggregate(comparison)
    notes = [*comparison.notes, *aggregates.notes]
    wiring = _wiring(comparison, notes, tell)
    inks = inks_for(comparison.labels)
    tables = all_tables(comparison, aggregates)
    (folder / "tables").mkdir()
    for table in tables:
        for kind, content in (("csv", table.csv()), ("md", table.markdown()), ("tex", table.latex())):
            _write_text(folder / "tables" / f"{table.name}.{kind}", content)
    (folder / "figures").mkdir()
    count = 0
    for name, draw in figures(comparison, aggregates, wiring, inks):
        tell(f"figure {name}")
        save(draw, folder / "figures" / name)
        count += 1
    tell("the page")
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    page = Page(comparison, aggregates, wiring, tables, inks, notes)
    data = page_data(comparison, aggregates, wiring, inks)
    _write_text(folder / PAGE, page.html(title, command, data, get_plotlyjs()))
    (folder / MARK).write_bytes(_mark(comparison, title, command, notes))
    return count, len(tables), tuple(notes)


def _write_text(path: Path, text: str) -> None:
    """Paths of runs may have bytes that are not UTF-8."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _wiring(comparison: Comparison, notes: list[str], tell: Callable[[str], None]) -> list[WiringStudy]:
    out = []
    for group in comparison.groups:
        if not group.dense:
            tell(f"wiring of {group.label} on {group.task}")
            found, problems = studies(group)
            out += found
            notes += problems
    return sorted(out, key=lambda study: not study.moves)  # checked before anything is moved


def _mark(comparison: Comparison, title: str, command: str, notes: Sequence[str]) -> bytes:
    """Marks the folder as a report, and lists its runs."""
    return to_json(
        {
            "title": title,
            "command": command,
            "rewirl": version("rewirl"),
            "bootstrap_seed": comparison.seed,
            "steps": {task.task: task.at for task in comparison.tasks},
            "runs": [str(run.folder) for run in comparison.runs],
            "notes": list(notes),
        }
    )


def _move(new: Path, out: Path) -> None:
    out.mkdir(exist_ok=True)
    for name in ENTRIES:
        old = out / name
        if old.is_dir():
            shutil.rmtree(old)
        os.replace(new / name, old)
