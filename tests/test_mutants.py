"""The deliberate faults of `make mutants` still apply to the sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutants"))
from run import ROOT, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant["name"])
def test_the_place_of_each_fault_is_there_once(mutant: dict[str, str]) -> None:
    assert (ROOT / mutant["file"]).read_text().count(mutant["search"]) == 1
    assert mutant["replace"] != mutant["search"]
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant["tests"])
