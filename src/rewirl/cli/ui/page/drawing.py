"""Small drawings as text: curves, bars and matrices in SVG, coloured by the page's style."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from rewirl.experiments.report.end_labels import moved_apart

LETTER = 6.2
"""Width of a letter at the largest size that the page's style has for drawings."""
LEVELS = 8
"""Shades of a weight's magnitude."""
RED, BLUE = (214, 69, 65), (47, 128, 237)
"""Colours of negative and positive weights, readable on white and on black."""


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; an underscore in an attribute's name stands for a hyphen.

    >>> tag("text", "a &lt; b", class_="name", text_anchor="end", x=3)
    '<text class="name" text-anchor="end" x="3">a &lt; b</text>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{words}>{content}</{name}>"


def curves(lines: Mapping[str, Sequence[float]], x: Sequence[float], *, what: str) -> str:
    """Shares between 0 and 1 over steps: one line each, labelled at its end."""
    left, top, bottom, apart = 46, 8, 26, 13
    right = round(LETTER * max(map(len, lines))) + 12
    width, height = left + 340 + right, max(210, top + apart * len(lines) + bottom)
    span = max(x[-1] - x[0], 1)

    def place(step: float, share: float) -> tuple[float, float]:
        return left + (step - x[0]) / span * (width - left - right), top + (1 - share) * (height - top - bottom)

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        _, y = place(x[0], share)
        parts.append(tag("line", x1=left, x2=width - right, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", f"{share:.0%}", x=left - 8, y=y + 4, text_anchor="end", class_="axis"))
    for step, anchor in ((x[0], "start"), (x[-1], "end")):
        parts.append(tag("text", f"{step:,.0f}", x=place(step, 0)[0], y=height - 8, text_anchor=anchor, class_="axis"))
    middle = (left + width - right) / 2
    parts.append(tag("text", "steps", x=middle, y=height - 8, text_anchor="middle", class_="axis"))
    ends = moved_apart([place(x[-1], shares[-1])[1] for shares in lines.values()], apart, height - bottom)
    for number, ((name, shares), y) in enumerate(zip(lines.items(), ends, strict=True)):
        points = " ".join("{:.1f},{:.1f}".format(*place(*pair)) for pair in zip(x, shares, strict=True))
        colour = f"series s{number % 6}"
        parts.append(tag("polyline", points=points, class_=colour))
        parts.append(tag("text", escape(name), x=width - right + 8, y=y + 4, class_=f"label {colour}"))
    return tag("svg", "".join(parts), viewBox=f"0 0 {width} {height}", role="img", aria_label=what)


def histogram(values: NDArray[np.float64], *, bins: int, what: str, low: str, high: str) -> str:
    """A histogram of values between 0 and 1."""
    counts, _ = np.histogram(values, bins=bins, range=(0, 1))
    width, height, foot = 320, 130, 22
    step, most = width / bins, max(int(counts.max()), 1)
    parts = []
    for number, count in enumerate(counts.tolist()):
        tall = count / most * (height - foot - 18)
        x, y = number * step, height - foot - tall
        about = tag("title", f"{count} neurons from {number / bins:.0%} to {(number + 1) / bins:.0%}")
        parts.append(tag("rect", about, x=x + 1, y=y, width=step - 2, height=tall, class_="bar"))
        if count:
            parts.append(tag("text", f"{count}", x=x + step / 2, y=y - 4, text_anchor="middle", class_="axis"))
    parts.append(tag("text", low, x=0, y=height - 6, class_="axis"))
    parts.append(tag("text", high, x=width, y=height - 6, text_anchor="end", class_="axis"))
    return tag("svg", "".join(parts), viewBox=f"0 0 {width} {height}", role="img", aria_label=what)


def heat(rows: Sequence[str], shares: NDArray[np.float64], x: Sequence[float], *, what: str) -> str:
    """A row of shares between 0 and 1 for each name, over steps."""
    each, foot = 13, 24
    left = round(LETTER * max(map(len, rows))) + 12
    width, height = left + 340, each * len(rows) + foot
    step, most = (width - left) / len(x), float(shares.max()) or 1.0
    parts = []
    for number, (name, values) in enumerate(zip(rows, shares, strict=True)):
        y = number * each
        parts.append(tag("text", escape(name), x=left - 8, y=y + 9.5, text_anchor="end", class_="label"))
        for at, share in enumerate(values.tolist()):
            about = tag("title", f"{escape(name)}, step {x[at]:,.0f}: {share:.0%}")
            cell = {"x": left + at * step, "y": y, "width": step, "height": each - 1}
            parts.append(tag("rect", about, **cell, class_="heat", fill_opacity=max((share / most) ** 1.5, 0.02)))
    parts.append(tag("text", f"{x[0]:,.0f}", x=left, y=height - 8, class_="axis"))
    parts.append(tag("text", f"{x[-1]:,.0f}", x=width, y=height - 8, text_anchor="end", class_="axis"))
    parts.append(tag("text", "steps", x=(left + width) / 2, y=height - 8, text_anchor="middle", class_="axis"))
    return tag("svg", "".join(parts), viewBox=f"0 0 {width} {height}", role="img", aria_label=what)


def matrix(weights: NDArray[np.float32], *, what: str) -> str:
    """A picture with one pixel per position: red and blue by the sign of the weight, paler the smaller it is,
    transparent where there is no link (nan)."""
    links = ~np.isnan(weights)
    magnitudes = np.abs(weights[links])
    top = float(np.quantile(magnitudes, 0.98)) if magnitudes.size else 1.0
    shades = np.ceil(np.abs(np.nan_to_num(weights)) / (top or 1.0) * LEVELS).clip(1, LEVELS)
    codes = np.where(links, np.where(weights < 0, shades, shades + LEVELS), 0).astype(np.uint8)
    palette = [(0, 0, 0, 0)]
    palette += [(*colour, round(40 + 215 * shade / LEVELS)) for colour in (RED, BLUE) for shade in range(1, LEVELS + 1)]
    source = f"data:image/png;base64,{base64.b64encode(png(codes, palette)).decode()}"
    return f'<img class="matrix" alt="{escape(what)}" src="{source}">'


def png(codes: NDArray[np.uint8], palette: Sequence[tuple[int, int, int, int]]) -> bytes:
    """A PNG file of codes into a palette of red, green, blue and opacity.

    >>> png(np.zeros((1, 1), np.uint8), [(0, 0, 0, 0)])[1:4]
    b'PNG'
    """
    height, width = codes.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits into a palette
    lines = np.hstack([np.zeros((height, 1), np.uint8), codes])  # 0: no filter
    chunks = [
        (b"IHDR", header),
        (b"PLTE", bytes(value for colour in palette for value in colour[:3])),
        (b"tRNS", bytes(colour[3] for colour in palette)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
