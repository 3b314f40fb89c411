"""Formatting of numbers in reports."""

from __future__ import annotations

import math


def steps_text(steps: float) -> str:
    """Steps in short.

    >>> steps_text(300_000), steps_text(1_000_000), steps_text(1500), steps_text(450)
    ('300k', '1M', '1.5k', '450')
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if steps >= unit:
            return f"{steps / unit:.4g}{name}"
    return f"{steps:.0f}"


def spaced(number: float) -> str:
    """A whole number with thin groups of three.

    >>> spaced(1234567.8).replace("\\N{NARROW NO-BREAK SPACE}", "_")
    '1_234_568'
    """
    return f"{number:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def ratio(value: float | None) -> str:
    """
    >>> ratio(0.4912), ratio(None), ratio(12.34)
    ('0.49 ×', '–', '12.3 ×')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.3g} ×" if abs(value) >= 10 else f"{value:.2f} ×"


def plain(value: float | None, form: str = ".2f") -> str:
    """A number, or a dash where there is none.

    >>> plain(3.14159), plain(float("nan"))
    ('3.14', '–')
    """
    return "–" if value is None or not math.isfinite(value) else format(value, form)


def hours(seconds: float | None) -> str:
    """
    >>> hours(75), hours(7265), hours(None)
    ('1:15 min', '2:01 h', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"
