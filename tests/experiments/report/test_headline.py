"""The main finding: whole sentences, whatever the sign of the returns and whatever is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewirl.experiments.analysis.ratios import Ratios
from rewirl.experiments.report.headline import sentences

ONE = Ratios(
    label="ds-td3",
    reference="td3",
    tasks=("Hopper-v5",),
    at=1_000_000,
    n=3,
    reference_n=3,
    returns=((3300.0, 3000.0),),
    reached=1,
    final_return=1.1,
    lca=1.2,
    links=0.494,
    paper_flops=0.492,
    full_flops=0.6,
    seconds=None,
    memory_mb=0.93,
    share_of_steps=0.67,
)
TWO = replace(ONE, tasks=("Hopper-v5", "Pendulum-v1"), returns=((3300.0, 3000.0), (-163.0, -152.0)), reached=1)


def told(item: Ratios) -> list[str]:
    return [str(said).replace("\N{NARROW NO-BREAK SPACE}", " ") for said in sentences(item)]


def test_every_tile_is_a_sentence() -> None:
    assert told(ONE) == [
        "ds-td3 earns 1.10 × the return of td3: 3 300 against 3 000.",
        "It reaches the final return of td3 after 67% of the steps.",
        "It has 49% of the links of td3.",
        "Training takes 49% of the FLOPs of td3.",
        "At its peak, training needs 93% of the memory of td3.",
    ]
    assert "Training takes 81% of the time of td3." in told(replace(ONE, seconds=0.81))


@pytest.mark.parametrize(
    ("returns", "says"),
    [
        ((-152.0, -163.0), "ds-td3 earns 11.0 more than td3: −152 against −163."),
        ((-163.0, -152.0), "ds-td3 earns 11.0 less than td3: −163 against −152."),
        ((20.0, -0.5), "ds-td3 earns 20.5 more than td3: 20.0 against −0.500."),
        ((-3.0, 0.0), "ds-td3 earns 3.00 less than td3: −3.00 against 0."),
        ((-152.1, -152.2), "ds-td3 earns as much as td3: −152."),
    ],
)
def test_returns_that_are_not_positive(returns: tuple[float, float], says: str) -> None:
    assert told(replace(ONE, returns=(returns,), final_return=None))[0] == says


def test_several_tasks() -> None:
    assert told(replace(TWO, share_of_steps=None, final_return=None))[:2] == [
        "ds-td3 earns more than td3 on 1 of 2 tasks.",
        "It reaches the final return of td3 on 1 of 2 tasks.",
    ]
    assert told(TWO)[0] == "ds-td3 earns 1.10 × the return of td3."


def test_what_is_not_known_has_no_sentence() -> None:
    unknown = replace(ONE, links=None, paper_flops=None, memory_mb=None, share_of_steps=None, reached=0)
    assert told(unknown)[1:] == ["It does not reach the final return of td3."]
