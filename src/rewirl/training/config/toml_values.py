"""Formatting of values as TOML."""

from __future__ import annotations

import json


def shown(value: object) -> str:
    return "not set" if value is None else toml(value)


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        # A TOML basic string escapes as JSON does, except that JSON leaves DEL alone.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
