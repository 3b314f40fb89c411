"""The main finding as sentences, each with its number."""

from __future__ import annotations

import math
from typing import NamedTuple

from rewirl.experiments.analysis.number_format import ratio, spaced
from rewirl.experiments.analysis.ratios import Ratios


class Sentence(NamedTuple):
    """A whole sentence in three parts."""

    before: str
    number: str
    """The part in large print."""
    after: str

    def __str__(self) -> str:
        return "".join(self)


def sentences(item: Ratios) -> list[Sentence]:
    """Return and costs of a method, relative to its dense counterpart; without sentences for unknown numbers."""
    dense = item.reference
    costs = (
        (item.links, "It has ", f" of the links of {dense}."),
        (item.paper_flops, "Training takes ", f" of the FLOPs of {dense}."),
        (item.seconds, "Training takes ", f" of the time of {dense}."),
        (item.memory_mb, "At its peak, training needs ", f" of the memory of {dense}."),
    )
    return [
        _on_return(item),
        _on_steps(item),
        *(Sentence(before, f"{value:.0%}", after) for value, before, after in costs if value is not None),
    ]


def _on_return(item: Ratios) -> Sentence:
    verb = f"{item.label} earns "
    if len(item.tasks) > 1:
        if item.final_return is not None:
            return Sentence(verb, ratio(item.final_return), f" the return of {item.reference}.")
        better = sum(mine > dense for mine, dense in item.returns)
        where = f"{better} of {len(item.tasks)}"
        return Sentence(f"{verb}more than {item.reference} on ", where, " tasks.")
    ((mine, dense),) = item.returns
    values = f"{shown(mine)} against {shown(dense)}"
    if item.final_return is not None:
        return Sentence(verb, ratio(item.final_return), f" the return of {item.reference}: {values}.")
    if shown(mine) == shown(dense):
        return Sentence(verb, "as much", f" as {item.reference}: {shown(mine)}.")
    how = f"{shown(abs(mine - dense))} {'more' if mine > dense else 'less'}"
    return Sentence(verb, how, f" than {item.reference}: {values}.")


def _on_steps(item: Ratios) -> Sentence:
    level = f"the final return of {item.reference}"
    if item.share_of_steps is not None:
        return Sentence(f"It reaches {level} after ", f"{item.share_of_steps:.0%}", " of the steps.")
    if len(item.tasks) == 1:
        return Sentence("It ", "does not reach", f" {level}.")
    return Sentence(f"It reaches {level} on ", f"{item.reached} of {len(item.tasks)}", " tasks.")


def shown(value: float) -> str:
    """A return with at least three digits.

    >>> shown(9949.6).replace("\\N{NARROW NO-BREAK SPACE}", "_"), shown(-152.4), shown(-0.0512), shown(0)
    ('9_950', '−152', '−0.0512', '0')
    """
    sign = "−" if value < 0 else ""
    size = abs(value)
    if size >= 100 or size == 0:
        return sign + spaced(size)
    return f"{sign}{size:.{2 - math.floor(math.log10(size))}f}"
