"""Colours of methods: the same in every figure, safe for the colour-blind, for light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ink:
    """How a method is drawn."""

    light: str
    """On a light page, and in print."""
    dark: str
    dash: str = "solid"
    """As Plotly calls it."""

    @property
    def line(self) -> object:
        """The dash, as Matplotlib calls it."""
        return {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": "-."}[self.dash]


# Okabe and Ito's palette, darkened for white and lightened for black where its own contrast is too low. Dense is grey:
# it is the reference.
INKS = {
    "td3": Ink("#595959", "#c4c4c4"),
    "ds-td3": Ink("#0072b2", "#56b4e9"),
    "static-td3": Ink("#b77700", "#e6a92e"),
    "sac": Ink("#c44e00", "#ff8f4d"),
    "ds-sac": Ink("#a8407f", "#e59ac4"),
    "rigl-td3": Ink("#00805d", "#2cc79b"),
    "static-sac": Ink("#7a5c2e", "#cdab72"),
    "rigl-sac": Ink("#5a4fcf", "#a59cff"),
}
DASHES = ("dash", "dot", "dashdot")


def inks_for(labels: Sequence[str]) -> dict[str, Ink]:
    """An ink for each label: a method's own for its plainest variant, others' for further ones, dashed.

    >>> inks_for(["td3", "ds-td3", "ds-td3 e=200"])["ds-td3 e=200"]
    Ink(light='#b77700', dark='#e6a92e', dash='dash')
    """
    out: dict[str, Ink] = {}
    for label in sorted(labels, key=len):
        method = label.split()[0]
        if method in INKS and not any(other.split()[0] == method for other in out):
            out[label] = INKS[method]
    methods = {label.split()[0] for label in labels}
    free = [ink for method, ink in INKS.items() if method not in methods] or list(INKS.values())
    for number, label in enumerate(label for label in labels if label not in out):
        ink = free[number % len(free)]
        out[label] = Ink(ink.light, ink.dark, DASHES[number // len(free) % len(DASHES)])
    return {label: out[label] for label in labels}
