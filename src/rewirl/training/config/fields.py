"""The fields of an options dataclass: their types, meanings and defaults, and values of the right type."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, Union

from rewirl.topology._checks import finite_number, whole_number


def hints(kind: type) -> dict[str, Any]:
    """Types of a dataclass's fields, by name."""
    resolved = typing.get_type_hints(kind)
    return {f.name: resolved[f.name] for f in fields(kind) if f.name not in ("method", "task", "options")}


def meanings_of(kind: type) -> Mapping[str, str]:
    """The docstring below each field of a dataclass, by name, for help and config files.

    >>> from rewirl.agents.options import Options
    >>> meanings_of(Options)["gamma"]
    'γ: discount.'
    """
    if kind not in _MEANINGS:
        _MEANINGS[kind] = _read_meanings(kind)
    return _MEANINGS[kind]


_MEANINGS: dict[type, dict[str, str]] = {}
"""Cached: reading source is slow."""


def _read_meanings(kind: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for statement, following in zip(body.body, body.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
                found[ast.unparse(statement.target)] = " ".join(ast.literal_eval(following.value).split())
    return found


def default_of(kind: type, name: str) -> Any:
    """A field's default, or None."""
    default = {f.name: f.default for f in fields(kind)}[name]
    return None if default is MISSING else default


def coerce(name: str, hint: Any, value: object) -> Any:
    """`value` as the field's type; refused if it is of another type, such as 3.5 for a count."""
    try:
        return _as_type(name, hint, value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _as_type(name: str, hint: Any, value: object) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        literal = [a for kind in inner if typing.get_origin(kind) is Literal for a in typing.get_args(kind)]
        if value in literal:
            return value
        if typing.get_origin(inner[0]) is Literal:  # or None
            return _as_type(name, inner[0], value)
        if literal and isinstance(value, str):
            raise TypeError(f"{name} must be a number or {literal[0]!r}, not {value!r}")
        return _as_type(name, next(kind for kind in inner if kind is not types.NoneType), value)
    if origin is Literal:
        if value not in inner:
            raise TypeError(f"{name} must be {' or '.join(map(repr, inner))}, not {value!r}")
        return value
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Iterable):
            right = 'arguments such as ["g=9.81"]' if inner[0] is str else "numbers such as [256, 256]"
            raise TypeError(f"{name} must be {right}, not {value!r}")
        return tuple(_as_type(name, inner[0], item) for item in value)
    if hint is bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false, not {value!r}")
        return value
    if hint is str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {value!r}")
        return value
    return whole_number(name, value) if hint is int else finite_number(name, value)
