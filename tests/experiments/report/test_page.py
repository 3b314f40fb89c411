"""The page in a real browser: Chromium without a window, on a laptop and on a phone, light and dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import write_study

from rewirl.experiments.analysis.comparison import compare
from rewirl.experiments.analysis.trained_runs import load
from rewirl.experiments.report import write_report, writer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "CI" not in os.environ, reason="chromium is not installed (apt-get install chromium)"
)
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two tasks, without the figures for print, which have their own test."""
    folder = tmp_path_factory.mktemp("page")
    write_study(
        folder / "runs", ["HalfCheetah-v5", "Hopper-v5"], seeds=2, steps=40_000, hidden=(16, 16), eval_every=2000
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "figures", lambda *_: ())
        write_report(compare(load([folder / "runs"])), folder / "out", "A study", "rewirl report runs --out out")
    return folder / "out" / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # As root, which a container's user often is, Chromium has no sandbox.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=300_000)
        yield opened
        opened.close()


class Visit:
    """A page that is open, and all that went wrong in it."""

    def __init__(self, browser: Any, file: Path, size: dict[str, int], scheme: str) -> None:
        touch = size == PHONE
        self.context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=touch, is_mobile=touch)
        self.context.set_default_timeout(300_000)  # a machine may be busy
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.problems.append(m.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._asked)
        self.page.goto(file.as_uri())
        self.page.locator("#learning-curves .plot").first.scroll_into_view_if_needed()  # it is drawn when it is near
        self.page.wait_for_selector("#learning-curves .plot .scatterlayer")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.problems.append(f"asked for {request.url}")

    def traces(self, query: str) -> list[dict[str, Any]]:
        """What a plot draws: the name and whether it is seen, of each line that has a name."""
        lines = "document.querySelector(q).data.filter(t => t.name)"
        seen = "t => ({name: t.name, seen: t.visible !== false})"
        found: list[dict[str, Any]] = self.page.evaluate(f"q => {lines}.map({seen})", query)
        return found

    def scroll_through(self) -> None:
        """To see every plot, each of which is drawn when it is near."""
        for number in range(self.page.locator(".plot").count()):
            self.page.evaluate("n => document.querySelectorAll('.plot')[n].scrollIntoView()", number)
            self.page.wait_for_function(
                "n => document.querySelectorAll('.plot')[n].querySelector('.main-svg')", arg=number
            )


@pytest.fixture(params=[(LAPTOP, "light"), (LAPTOP, "dark"), (PHONE, "light"), (PHONE, "dark")], ids=str)
def visit(request: pytest.FixtureRequest, browser: Any, page_file: Path) -> Iterator[Visit]:
    opened = Visit(browser, page_file, *request.param)
    yield opened
    opened.context.close()


@pytest.fixture
def laptop(browser: Any, page_file: Path) -> Iterator[Visit]:
    opened = Visit(browser, page_file, LAPTOP, "light")
    yield opened
    assert opened.problems == []
    opened.context.close()


def test_it_loads_whole_and_alone(visit: Visit, tmp_path: Path) -> None:
    visit.scroll_through()
    assert visit.problems == []
    wide = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], "only tables scroll sideways, and inside their box"
    picture = visit.page.screenshot(path=str(tmp_path / "page.png"), full_page=True)
    assert len(picture) > 50_000
    sections = visit.page.locator("section h2").all_text_contents()
    assert sections == [
        *("Summary", "Learning curves", "The paper's tables", "Statistics", "Cost", "Diagnostics", "Wiring"),
        "Reproduce",
    ]


def test_a_click_in_the_legend_hides_a_method_everywhere(laptop: Visit) -> None:
    laptop.scroll_through()
    plots = ["#learning-curves .plot", "#cost .plot", "#diagnostics .plot", ".plot.profile"]
    assert {"name": "ds-td3", "seen": True} in laptop.traces(plots[0])
    chip = laptop.page.locator("#learning-curves .chip[data-label=ds-td3]").first
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    for plot in plots:
        assert {"name": "ds-td3", "seen": False} in laptop.traces(plot)
        assert {"name": "td3", "seen": True} in laptop.traces(plot)
    chip.click()
    assert {"name": "ds-td3", "seen": True} in laptop.traces(plots[0])


def test_a_double_click_leaves_one_method(laptop: Visit) -> None:
    laptop.page.locator("#learning-curves .chip[data-label=td3]").first.dblclick()
    seen = [trace["name"] for trace in laptop.traces("#learning-curves .plot") if trace["seen"]]
    assert seen == ["td3"]


def test_seeds_are_shown_on_demand(laptop: Visit) -> None:
    before = laptop.traces("#learning-curves .plot")
    assert not any("seed" in trace["name"] for trace in before)
    laptop.page.locator("#seeds").check()
    after = {trace["name"] for trace in laptop.traces("#learning-curves .plot")}
    assert {"ds-td3, seed 1", "ds-td3, seed 2", "sac, seed 1", "ds-td3"} <= after


def test_raw_data_are_shown_on_demand(laptop: Visit) -> None:
    drawn = "document.querySelector('#learning-curves .plot').data.find(t => t.name === 'td3').y"
    smooth = laptop.page.evaluate(drawn)
    laptop.page.locator("#raw").check()
    raw = laptop.page.evaluate(drawn)
    assert smooth[-1] == pytest.approx((raw[-2] + raw[-1]) / 2, rel=1e-3), "a tenth of 21 evaluations"
    laptop.page.locator("#seeds").check()
    assert laptop.page.evaluate(drawn) == raw


def test_no_box_is_empty(visit: Visit) -> None:
    """Not for any method and network that can be chosen."""
    visit.scroll_through()
    seen = "[...document.querySelectorAll('.card, .tile')].filter(box => box.offsetParent)"
    lines = ".js-plotly-plot .scatterlayer .trace, .js-plotly-plot .heatmaplayer image"
    for method in range(visit.page.locator("#wiring-method option").count()):
        visit.page.locator("#wiring-method").select_option(index=method)
        for network in ("actor", "critics"):
            visit.page.locator("#wiring-network").select_option(label=network)
            empty = visit.page.evaluate(
                f"{seen}.filter(box => box.matches('.card') ? !box.querySelector('{lines}') : !box.innerText.trim())"
                ".map(box => box.innerText)"
            )
            assert empty == []
    cut = "[...document.querySelectorAll('.tile')].filter(tile => tile.scrollWidth > tile.clientWidth).length"
    assert visit.page.evaluate(cut) == 0


def test_hovering_shows_values_and_n(laptop: Visit) -> None:
    plot = laptop.page.locator("#learning-curves .plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box
    laptop.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    laptop.page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + box["height"] * 0.5)
    laptop.page.wait_for_selector("#learning-curves .hoverlayer .legend")
    text = " ".join(laptop.page.locator("#learning-curves .hoverlayer").first.locator("text").all_text_contents())
    for method in ("td3", "static-td3", "ds-td3", "sac"):
        assert f"{method} : " in text
    assert "±" in text
    assert "(n = 2)" in text


def test_the_theme_follows_the_button(laptop: Visit) -> None:
    line = "document.querySelector('#learning-curves .plot').data.find(t => t.name === 'ds-td3').line.color"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = laptop.page.evaluate(line), laptop.page.evaluate(ground)
    laptop.page.locator("#theme").click()
    dark = laptop.page.evaluate(line), laptop.page.evaluate(ground)
    assert light == ("#0072b2", "rgb(255, 255, 255)")
    assert dark == ("#56b4e9", "rgb(20, 23, 27)")


def test_cost_and_wiring_follow_their_choices(laptop: Visit) -> None:
    laptop.scroll_through()
    first = laptop.page.evaluate("document.querySelector('#cost .plot').data.find(t => t.name === 'td3').y.at(-1)")
    laptop.page.locator("#cost-task").select_option(label="Hopper-v5")
    other = laptop.page.evaluate("document.querySelector('#cost .plot').data.find(t => t.name === 'td3').y.at(-1)")
    assert first != other
    heat = "document.querySelector('.plot.heat').data[0].y.length"
    assert laptop.page.evaluate(heat) == 17
    laptop.page.locator("#wiring-network").select_option(label="critics")
    assert laptop.page.evaluate(heat) == 23
    laptop.page.locator("#wiring-method").select_option(label="ds-td3 on Hopper-v5")
    assert laptop.page.evaluate(heat) == 14
    assert laptop.page.locator("#wiring-n").text_content() == "n = 2"
