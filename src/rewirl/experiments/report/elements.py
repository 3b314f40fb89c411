"""Small HTML elements of the page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files

from rewirl.experiments.report.figures import KINDS
from rewirl.experiments.report.style import Ink


def card(title: str, content: str, figure: str | None = None) -> str:
    links = ""
    if figure:
        links = " · ".join(f'<a href="figures/{figure}.{kind}">{kind.upper()}</a>' for kind in KINDS)
        links = f"<span class=files>{links}</span>"
    return f"<figure class=card><figcaption>{text(title)}{links}</figcaption>{content}</figure>"


def plot(kind: str, alt: str, **given: object) -> str:
    more = "".join(f' data-{name}="{text(str(value))}"' for name, value in given.items())
    return f'<div class="plot {kind}" role=img aria-label="{text(alt)}" data-plot={kind}{more}></div>'


def options(name: str, id_: str, values: Sequence[str]) -> str:
    options = "".join(f"<option value={number}>{text(value)}" for number, value in enumerate(values))
    return f"<label>{name} <select id={id_}>{options}</select></label>"


def swatch(ink: Ink) -> str:
    return f'<i style="--light:{ink.light};--dark:{ink.dark}" class={ink.dash}></i>'


def items(each: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{text(item)}" for item in each) + "</ul>"


def count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def id_of(name: str) -> str:
    return "".join(sign if sign.isalnum() else "-" for sign in name.lower())


def text(value: str) -> str:
    return html.escape(value)


def asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text("utf-8")
