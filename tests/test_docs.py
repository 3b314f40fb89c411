"""What the docs show must run."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from rewirl import SET, TD3
from rewirl.topology import erdos_renyi

DOCS = Path(__file__).parents[1] / "docs"


def code_blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)


def test_the_rule_of_the_docs_drops_and_grows_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    page = types.ModuleType("docs_extending")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # where dataclasses look for the names in annotations
    exec(code_blocks("extending.md")[0], page.__dict__)
    rule = page.NearTheStrong(eta=0.3)
    rng = np.random.default_rng(0)
    links = erdos_renyi(20, 16, 120, rng)
    change = rule.rewire(links, rng.standard_normal(120).astype(np.float32), rng)
    assert change.links.count == 120
    assert len(change.grown) == 36


def test_the_statistics_of_the_docs_run(capsys: pytest.CaptureFixture[str]) -> None:
    exec(code_blocks("report.md")[0], {})
    assert capsys.readouterr().out.startswith("Estimate(value=0.8333333333333333, low=0.5,")


def test_every_link_between_the_docs_leads_somewhere() -> None:
    root = DOCS.parent
    for page in [*root.glob("*.md"), *DOCS.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_the_python_of_the_deploying_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with TD3("Pendulum-v1", hidden=(8, 8), eval_every=0) as agent:
        agent.save("policy.safetensors")
    page: dict[str, object] = {}
    for block in code_blocks("deploying.md"):
        exec(block, page)
    assert np.shape(page["action"]) == (4, 1)


def test_the_python_of_the_inspecting_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden": (8, 8), "random_steps": 50, "eval_every": 50, "eval_episodes": 1, "replay_size": 500}
    with TD3("Pendulum-v1", wiring=SET(every=20), lambdas=(1, 2), run_dir="runs/demo/seed3", **sizes) as agent:
        agent.learn(100)
    for block in code_blocks("inspecting.md"):
        exec(block, {})
    assert "cosine of angle" in capsys.readouterr().out
