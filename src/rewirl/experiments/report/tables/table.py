"""A table as HTML, Markdown and LaTeX for reading, and as CSV for computing."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Record = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Table:
    """Formatted cells, and the same numbers unrounded as records."""

    name: str
    """Of its files."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    records: Sequence[Record]
    note: str = ""
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """Cells that stand out: (row, column)."""
    words: int = 1
    """Columns from the left that are words; the others are numbers."""

    def csv(self) -> str:
        """All records, in full precision."""
        out = io.StringIO()
        table = csv.DictWriter(out, list(self.records[0]) if self.records else [], lineterminator="\n")
        table.writeheader()
        table.writerows({name: _plain_cell(value) for name, value in record.items()} for record in self.records)
        return out.getvalue()

    def markdown(self) -> str:
        """As GitHub reads it.

        >>> print(Table("t", "T", ["method", "R"], [["a", "1"], ["b", "2"]], [], bold=frozenset({(1, 1)})).markdown())
        **T**
        <BLANKLINE>
        | method | R |
        |---|--:|
        | a | 1 |
        | b | **2** |
        <BLANKLINE>
        """
        lines = [
            f"**{_markdown(self.title)}**",
            "",
            "| " + " | ".join(map(_markdown, self.columns)) + " |",
            "|" + "|".join("---" if n < self.words else "--:" for n in range(len(self.columns))) + "|",
        ]
        for row in range(len(self.rows)):
            cells = (self._cell(row, column, "**{}**", _markdown) for column in range(len(self.columns)))
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])

    def latex(self) -> str:
        """A table for booktabs."""
        columns = "l" * self.words + "r" * (len(self.columns) - self.words)
        lines = [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(self.title)}. {_latex(self.note)}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            "    " + " & ".join(map(_latex, self.columns)) + r" \\",
            r"    \midrule",
        ]
        for row in range(len(self.rows)):
            cells = (self._cell(row, column, r"\textbf{{{}}}", _latex) for column in range(len(self.columns)))
            lines.append("    " + " & ".join(cells) + r" \\")
        return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""])

    def html(self) -> str:
        """For the page: it scrolls inside its own box."""
        head = "".join(f"<th scope=col{self._number(n)}>{html.escape(text)}" for n, text in enumerate(self.columns))
        body = []
        for row, cells in enumerate(self.rows):
            line = [f"<th scope=row>{self._cell(row, 0, '<strong>{}</strong>', html.escape)}"]
            line += [
                f"<td{self._number(n)}>{self._cell(row, n, '<strong>{}</strong>', html.escape)}"
                for n in range(1, len(cells))
            ]
            body.append("<tr>" + "".join(line))
        note = f"<p class=note>{html.escape(self.note)}</p>" if self.note else ""
        files = " · ".join(
            f'<a href="tables/{self.name}.{kind}">{name}</a>'
            for kind, name in (("csv", "CSV"), ("md", "Markdown"), ("tex", "LaTeX"))
        )
        return (
            f'<figure class=table id="table-{self.name}"><figcaption>{html.escape(self.title)}'
            f"<span class=files>{files}</span></figcaption>"
            f'<div class=scroll tabindex=0 role=region aria-label="{html.escape(self.title)}">'
            f"<table><thead><tr>{head}<tbody>{''.join(body)}</table></div>{note}</figure>"
        )

    def _number(self, column: int) -> str:
        return "" if column < self.words else " class=n"

    def _cell(self, row: int, column: int, stand_out: str, escape: Callable[[str], str]) -> str:
        text = escape(self.rows[row][column])
        return stand_out.format(text) if (row, column) in self.bold else text


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "–": "--",
    "−": "$-$",
    "λ": r"$\lambda$",
    "η": r"$\eta$",
    "γ": r"$\gamma$",
    "τ": r"$\tau$",
    "α": r"$\alpha$",
    "σ": r"$\sigma$",
    "²": "$^2$",
    "<": "$<$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    ">": "$>$",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{NO-BREAK SPACE}": "~",
}


def _latex(text: str) -> str:
    """
    >>> _latex("50% of λ")
    '50\\\\% of $\\\\lambda$'
    """
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _markdown(text: str) -> str:
    """
    >>> _markdown("<b>a|b</b>")
    '&lt;b&gt;a\\\\|b&lt;/b&gt;'
    """
    escaped = html.escape(" ".join(text.splitlines()), quote=False)
    return re.sub(r"([\\|\[\]`*])", r"\\\1", escaped)


def _plain_cell(value: str | float | None) -> str | float | None:
    """A text that spreadsheets do not interpret as a formula.

    >>> _plain_cell("=1+1"), _plain_cell(-1.5)
    ("'=1+1", -1.5)
    """
    return f"'{value}" if isinstance(value, str) and re.match(r"[\t\r\n]|\s*[=+@＝＋－＠-]", value) else value
