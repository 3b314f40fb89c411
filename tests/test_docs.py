"""What the docs show must run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rewirl.topology import erdos_renyi

DOCS = Path(__file__).parents[1] / "docs"


def code_blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)


def test_the_rule_of_the_docs_keeps_the_links_and_prefers_busy_inputs() -> None:
    space: dict[str, object] = {"__name__": "docs"}
    exec(code_blocks("extending.md")[0], space)
    rule = space["NearTheStrong"](eta=0.3)  # type: ignore[operator]
    rng = np.random.default_rng(0)
    links = erdos_renyi(20, 16, 120, rng)
    change = rule.rewire(links, rng.standard_normal(120).astype(np.float32), rng)
    assert change.links.count == 120
    assert len(change.grown) == 36


def test_every_link_between_the_docs_leads_somewhere() -> None:
    root = DOCS.parent
    for page in [*root.glob("*.md"), *DOCS.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
