"""List the methods: an algorithm combined with a wiring rule."""

from __future__ import annotations

import argparse

from rewirl.agents.methods import METHODS
from rewirl.cli.ui.parser import Parser
from rewirl.cli.ui.tables import show, table
from rewirl.topology import DropAndGrow

EXAMPLES = ("rewirl methods", "rewirl train ds-td3 HalfCheetah-v5")


def arguments(parser: Parser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> None:
    """Prints all methods."""
    rows = table("method", "description", "η", "random steps")
    for name, method in METHODS.items():
        eta = f"{method.eta:g}" if issubclass(method.rule, DropAndGrow) else "–"
        rows.add_row(name, method.about, eta, f"{method.random_steps:,}")
    show(rows)
