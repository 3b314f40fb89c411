"""evaluations.csv and progress.csv: tables that grow row by row."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from rewirl.files import open_file
from rewirl.storage.disk_errors import complaining
from rewirl.training.measurements import Episode, EvaluationRow

Row = TypeVar("Row", EvaluationRow, Episode)


class Table(Generic[Row]):
    """A CSV file that grows row by row, or only its text if there is no folder."""

    def __init__(self, kind: type[Row], path: Path | None) -> None:
        self._path = path
        self._columns = [f.name.rstrip("_") for f in fields(kind)]
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


def parse(kind: type[Row], content: bytes) -> list[Row]:
    """Rows of a file; ValueError if it is invalid.

    >>> parse(Episode, b"step,return,length\\n200,-1.5,200\\n")
    [Episode(step=200, return_=-1.5, length=200)]
    """
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    names = [f.name.rstrip("_") for f in fields(kind)]
    if not lines or lines[0] != names:
        raise ValueError(f"the columns must be {', '.join(names)}")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            raise ValueError(f"line {number} has {len(line)} of {len(names)} columns")
        values: dict[str, Any] = {f.name: _value(str(f.type), text) for f, text in zip(fields(kind), line, strict=True)}
        rows.append(kind(**values))
    return rows


def _value(kind: str, text: str) -> int | float | str | None:
    if kind == "str":
        return text
    if not text:
        return None
    return int(text) if kind == "int" else float(text)


def _line(values: object) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)  # type: ignore[arg-type]
    return out.getvalue().encode()
