"""What the docs show must run."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rewirl
from rewirl import SET, TD3
from rewirl.topology import erdos_renyi

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


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


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub and MkDocs name them in links."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_link_between_the_docs_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} links to {target}, which does not exist"
            assert not anchor or anchor in anchors(there), f"{page.name} links to {target}#{anchor}: no such heading"


def test_the_site_lists_every_page() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    outside = {"index.md", "contributing.md", "changelog.md"}  # README.md and its siblings, added by docs/site.py
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert set(listed) == pages | outside


def test_the_diagrams_are_those_of_the_script() -> None:
    drawn: dict[str, Any] = {"__name__": "diagrams"}
    exec((DOCS / "images" / "diagrams.py").read_text(), drawn)
    assert drawn["quads"]() == (DOCS / "images" / "quads.svg").read_text()
    assert drawn["layout"]() == (DOCS / "images" / "layout.svg").read_text()


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page: dict[str, Any] = {}
    exec(code_blocks("../README.md")[0].replace("100_000", "20"), page)
    assert page["action"].shape == (6,)
    assert (tmp_path / "agent.safetensors").exists()


def test_the_sparse_agents_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    block = code_blocks("../README.md")[1]
    exec(block, {"SET": SET})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.MULTILINE)


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


def test_the_python_of_the_api_page_runs_and_shows_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page: dict[str, Any] = {"__name__": "docs_api"}
    blocks = code_blocks("api.md")
    for block in blocks:
        exec(block, page)
    text = (DOCS / "api.md").read_text()
    for name in set(rewirl.__all__) - {"__version__"}:
        assert f"::: rewirl.{name}\n" in text, f"{name} is not in the reference"
        assert re.search(rf"\b{name}\b", "".join(blocks)), f"{name} has no example"
    out = capsys.readouterr().out.splitlines()
    # What comments say that is printed, but for returns, which differ from machine to machine.
    for said in re.findall(r"^ *print\(.*\)  # (.*)$", "\n".join(blocks), flags=re.MULTILINE):
        assert any(line.split(", return")[0] == said.split(", return")[0] for line in out), said


def test_every_test_that_a_page_names_exists() -> None:
    tests = {str(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("test_*.py")}
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for named in re.findall(r"[\w/]*test_\w+\.py", page.read_text()):
            wanted = named.removeprefix("tests/")
            assert any(test == wanted or test.endswith(f"/{wanted}") for test in tests), f"{page.name}: {named}"
