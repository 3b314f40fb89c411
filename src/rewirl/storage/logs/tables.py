"""evaluations.csv, diagnostics.csv and progress.csv: tables that grow row by row."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from rewirl.files import open_file
from rewirl.storage.disk_errors import complaining
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow
from rewirl.untrusted import decoded, finite, whole

Row = TypeVar("Row", EvaluationRow, DiagnosticsRow, Episode)


class Table(Generic[Row]):
    """A CSV file that grows row by row, or only its text if there is no folder."""

    def __init__(self, kind: type[Row], path: Path | None) -> None:
        self._path = path
        self._columns = _columns(kind)
        self._file: IO[bytes] | None = None

    def begin(self, content: bytes = b"") -> None:
        """Sets the file to exactly `content` (by default the column names) and opens it for appending."""
        if self._path:
            content = content or _line(self._columns)
            with complaining(self._path):
                self._file = os.fdopen(open_file(self._path, os.O_RDWR | os.O_CREAT), "r+b")
                if self._file.read(len(content)) != content:
                    self._file.seek(0)
                    self._file.write(content)
                self._file.truncate(len(content))
                self._file.seek(len(content))
                self._file.flush()

    def add(self, row: Row) -> None:
        if self._file and self._path:
            with complaining(self._path):
                self._file.write(_line(astuple(row)))

    def flush(self) -> None:
        """Makes the rows visible to other programs."""
        if self._file and self._path:
            with complaining(self._path):
                self._file.flush()

    def content(self) -> bytes:
        """The content so far, even if the file was unlinked."""
        if not self._file or not self._path:
            return b""
        with complaining(self._path):
            self._file.seek(0)
            return self._file.read()  # which ends where the next row belongs

    def close(self) -> None:
        if self._file and self._path:
            file, self._file = self._file, None
            with complaining(self._path):
                file.close()


def whole_lines(content: bytes) -> bytes:
    """The complete lines of a file that a run may be writing.

    >>> whole_lines(b"step,return\\n200,-1")
    b'step,return\\n'
    """
    return content[: content.rfind(b"\n") + 1]


def rows_of(content: bytes) -> list[list[str]]:
    """The cells of a CSV file; ValueError if it is invalid."""
    try:
        return list(csv.reader(io.StringIO(decoded(content))))
    except csv.Error as error:
        raise ValueError(str(error)) from None


def count(text: str) -> int:
    """A cell with a count."""
    number = whole(text)
    if not 0 <= number < 2**63:
        raise ValueError(f"{number} is not a count")
    return number


def content(kind: type[Row], rows: Iterable[Row]) -> bytes:
    """A file with these rows, as `parse` reads it."""
    return b"".join([_line(_columns(kind)), *(_line(astuple(row)) for row in rows)])


def parse(kind: type[Row], content: bytes) -> list[Row]:
    """Rows of a file; ValueError if it is invalid.

    >>> parse(Episode, b"step,return,length\\n200,-1.5,200\\n")
    [Episode(step=200, return_=-1.5, length=200)]
    """
    lines = rows_of(content)
    names = _columns(kind)
    if not lines or lines[0] != names:
        raise ValueError(f"the columns must be {', '.join(names)}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            raise ValueError(f"line {number} has {len(line)} of {len(names)} columns")
        values: dict[str, Any] = {}
        for column, text in zip(fields(kind), line, strict=True):
            try:
                values[column.name] = _value(str(column.type), text)
            except ValueError as error:
                raise ValueError(f"line {number}, column {column.name.rstrip('_')}: {error}") from None
        rows.append(kind(**values))
    return rows


def returns(content: bytes) -> list[tuple[int, float]]:
    """Step and mean return of each evaluation; tables of other versions may have other columns.

    >>> returns(b"step,return_mean\\n0,-1.5\\n")
    [(0, -1.5)]
    """
    lines = rows_of(content)
    if not lines or lines[0] == [f.name for f in fields(EvaluationRow)]:
        return [(row.step, row.return_mean) for row in (parse(EvaluationRow, content) if lines else [])]
    try:
        step, mean = (lines[0].index(name) for name in ("step", "return_mean"))
        return [(count(line[step]), finite(line[mean])) for line in lines[1:]]
    except (IndexError, ValueError) as error:
        raise ValueError(f"a column or cell is missing or wrong ({error})") from None


def _columns(kind: type[Row]) -> list[str]:
    return [f.name.rstrip("_") for f in fields(kind)]


def _value(kind: str, text: str) -> int | float | str | None:
    if kind == "str":
        return text
    if kind.endswith("None") and not text:
        return None
    return count(text) if kind.startswith("int") else finite(text)


def _line(values: object) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)  # type: ignore[arg-type]
    return out.getvalue().encode()
