"""Reading untrusted files: bounded in size, depth and the length of numbers; all numbers are finite.

Invalid content raises a ValueError in one sentence; only the system's errors are OSErrors.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 64 << 20
"""Maximum bytes of a table or JSON file, far above that of a run of a hundred million steps."""
MOST_TEXT = 1 << 20
"""Maximum bytes of a config or grid."""
MOST_POLICY = 1 << 40
"""Maximum bytes of a policy, which may have any number of links."""
MOST_DEPTH = 50
"""Maximum depth of nesting."""
MOST_DIGITS = 60
"""Maximum digits of a whole number: the state of a random generator has 39."""


_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:""")?"{0,2}'
    r"|'''(?:[^']|'(?!''))*+(?:''')?'{0,2}"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?|\#[^\n]*+|[\w-]++|[ \t]++|[\s\S]"
)
"""A part of TOML text: a string, a comment, a bare key, blanks, or one other character."""


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that control a terminal, or the direction of a line."""


def printable(text: str) -> str:
    """A text from a file, a path or an error, in one line and without control characters: a terminal would obey them.

    >>> printable("a\\x1b[31mb\\nc λ")
    'a\\\\x1b[31mb\\\\nc λ'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, for reading. A pipe in its place does not make us wait."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{path} is not a regular file")
        yield file


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file, which must not be longer than `most` bytes."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"{path} has more than {most} bytes")
        return file.read(size)


def reason(error: Exception) -> str:
    """Why a file could not be read, without its name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The content of a UTF-8 file."""
    return decoded(read_bytes(path, most))


def decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start})") from None


def from_json(content: bytes) -> Any:
    """
    >>> from_json(b'{"step": 3}')
    {'step': 3}
    >>> from_json(b"1e999")
    Traceback (most recent call last):
    ValueError: 1e999 is not a finite number
    """
    try:
        found = json.loads(
            decoded(content), parse_constant=finite, parse_float=finite, parse_int=whole, object_pairs_hook=_once
        )
    except RecursionError:
        raise ValueError(_deep()) from None
    return _shallow(found)


def from_toml(text: str) -> dict[str, Any]:
    """
    >>> from_toml("seed = 3")
    {'seed': 3}
    """
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT} characters")
    _check_keys(text)
    try:
        found: dict[str, Any] = tomllib.loads(text, parse_float=finite)
    except RecursionError:
        raise ValueError(_deep()) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        long = "digits" in str(error)  # Python's own limit
        raise ValueError("a whole number has too many digits" if long else str(error)) from None
    _shallow(found)
    _check_texts(found)
    return found


def _check_texts(found: Any) -> None:
    """Refuses control characters: settings and names have none, and a terminal would obey them."""
    items = [*found.keys(), *found.values()] if isinstance(found, dict) else found
    for item in items:
        if isinstance(item, str) and printable(item) != item:
            raise ValueError(f"it has a control character in {item[:50]!r}")
        if isinstance(item, dict | list):
            _check_texts(item)


def _check_keys(text: str) -> None:
    """Refuses keys of too many parts before they are parsed, which takes time with the square of their number."""
    parts, dot = 0, True
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0] in " \t":
            continue
        if token == ".":
            parts, dot = 0 if dot else parts, True
        elif token[0] in "\"'_-" or token[0].isalnum():
            parts, dot = parts + 1 if dot else 1, False
        else:
            parts, dot = 0, True
        if parts > MOST_DEPTH:
            raise ValueError(_deep())


def whole(text: str) -> int:
    """
    >>> whole("-12")
    -12
    >>> whole("1" * 5000)
    Traceback (most recent call last):
    ValueError: a whole number has 5000 digits
    """
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a whole number has {len(text)} digits")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def finite(text: str) -> float:
    """
    >>> finite("1.5")
    1.5
    """
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text[:50]!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{text[:50]} is not a finite number")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _shallow(found: Any) -> Any:
    """The parsed value, checked for depth and digits, so that later code cannot exceed limits."""
    level, depth = [found], 0
    while level:
        if depth > MOST_DEPTH:
            raise ValueError(_deep())
        if any(isinstance(item, int) and abs(item) >= 10**MOST_DIGITS for item in level):
            raise ValueError("a whole number has too many digits")
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level, depth = [item for items in inner for item in items], depth + 1
    return found


def _deep() -> str:
    return f"it is nested more than {MOST_DEPTH} levels deep"
