"""A report: its files hold what was computed, and are written with care."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import tiny
from synthetic import write_run, write_study

from rewirl.cli import main
from rewirl.errors import Refused
from rewirl.experiments.analysis.comparison import compare
from rewirl.experiments.analysis.groups import grouped
from rewirl.experiments.analysis.trained_runs import load, load_run
from rewirl.experiments.analysis.wiring.study import studies
from rewirl.experiments.report import writer
from rewirl.experiments.report.provenance import command_of, commands_of, facts, run_table
from rewirl.experiments.report.style import INKS, inks_for
from rewirl.experiments.report.tables.table import Table

SMALL = {"hidden": (16, 16), "eval_every": 2000, "random_steps": 4000}


pytestmark = pytest.mark.xdist_group("report")  # a report takes its time: one worker makes it for all


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two tasks with four methods and two seeds, of which one is missing and one is not done."""
    folder = tmp_path_factory.mktemp("report")
    write_study(folder / "runs", ["HalfCheetah-v5", "Hopper-v5"], seeds=2, steps=40_000, **SMALL)
    for file in (folder / "runs" / "Hopper-v5" / "sac-seed2").iterdir():
        file.unlink()
    write_run(folder / "runs" / "more", np.arange(16.0), method="td3", seed=3, upto=30_000, steps=40_000, **SMALL)
    assert main(["report", str(folder / "runs"), "--out", str(folder / "out"), "--title", "Big & <small>"]) == 0
    return folder / "out"


def test_every_figure_is_there_in_three_formats(report: Path) -> None:
    found = {path.stem for path in (report / "figures").glob("*.png")}
    tasks = ("HalfCheetah-v5", "Hopper-v5")
    assert found == {
        *("curves", "aggregate"),
        *(f"{kind}-{task}" for kind in ("curves", "efficiency", "diagnostics") for task in tasks),
        *(f"{kind}-{task}-ds-td3" for kind in ("wiring", "degrees") for task in tasks),
        *(f"degrees-{task}-static-td3" for task in tasks),
    }
    for name in found:
        assert (report / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (report / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert ET.parse(report / "figures" / f"{name}.svg").getroot().tag.endswith("svg")


def test_tables_hold_the_comparison(report: Path) -> None:
    comparison = compare(load([report.parent / "runs"]))
    with (report / "tables" / "return.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    for row in rows:
        standing = next(task for task in comparison.tasks if task.task == row["task"])[row["method"]]
        assert float(row["return_mean"]) == standing.mean_std[0]
        assert float(row["lca_mean"]) * 5000 == pytest.approx(standing.lcas.mean())
        assert int(row["n"]) == standing.n
        assert row["paper_return_mean"] == "", "small networks are not the paper's"
    for kind in ("csv", "md", "tex"):
        names = {path.stem for path in (report / "tables").glob(f"*.{kind}")}
        assert names == {"summary", "return", "lca", "intervals", "aggregate", "improvement", "costs", "runs"}


def test_n_is_in_every_table(report: Path) -> None:
    """Row 35 of the fault matrix: a missing seed shows."""
    for name in ("return", "lca", "intervals", "aggregate", "costs"):
        with (report / "tables" / f"{name}.csv").open(newline="") as file:
            counts = {row["n"] for row in csv.DictReader(file)}
        assert len(counts) > 1, f"{name} has {counts}"
    assert re.search(r"\| sac \|.*n.=.1\)", (report / "tables" / "return.md").read_text())
    notes = json.loads((report / "report.json").read_text())["notes"]
    assert "Missing seed 2: sac on Hopper-v5 (n = 1 of 2)." in notes
    page = (report / "index.html").read_text()
    assert "Missing seed 2: sac on Hopper-v5 (n = 1 of 2)." in page
    assert "n = 3 (1 at 30k of 40k)" in page


def test_times_are_compared_only_if_the_runs_were_timed_alone(report: Path, tmp_path: Path) -> None:
    page = _own(report)
    assert not re.search(r"wall-clock|of the time of|\bseconds\b", page.split('id="reproduce"')[0], re.IGNORECASE)
    for table in (report / "tables").glob("*.csv"):
        assert not re.search("seconds|wall-clock", table.read_text().splitlines()[0])
    for method in ("td3", "ds-td3"):
        write_run(tmp_path / "runs" / method, np.arange(11.0), method=method, steps=50_000)
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert main([*words, "--wall-clock"]) == 0
    page = _own(tmp_path / "out")
    assert "Training takes <b>100%</b> of the time of td3." in page
    assert "<figcaption>wall-clock, minutes</figcaption>" in page
    assert "--wall-clock</code>" in page, "the command makes the same report"
    assert "wall-clock" in (tmp_path / "out" / "tables" / "costs.md").read_text()


def test_the_papers_tables_are_of_the_papers_tasks(report: Path, tmp_path: Path) -> None:
    assert "<h2>The paper's tables</h2>" in _own(report)
    write_run(tmp_path / "runs" / "a", np.arange(11.0), steps=50_000)
    write_run(tmp_path / "runs" / "b", np.arange(11.0), task="Pendulum-v1", steps=50_000)
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    page = _own(tmp_path / "out")
    assert "The paper's tables" not in page
    assert "<h2>Returns and learning speed</h2>" in page


def test_what_was_not_logged_leaves_no_empty_box(tmp_path: Path) -> None:
    for method in ("td3", "ds-td3"):
        write_run(
            tmp_path / "runs" / method, np.arange(11.0), method=method, steps=50_000, columns=["step", "return_mean"]
        )
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    page = _own(tmp_path / "out")
    tiles = re.findall("<p class=tile>(.*?)</p>", page)
    assert tiles == [
        "ds-td3 earns <b>1.00 ×</b> the return of td3: 5.50 against 5.50.",
        "It reaches the final return of td3 after <b>100%</b> of the steps.",
    ]
    assert "FLOPs</figcaption>" not in page
    assert not list((tmp_path / "out" / "figures").glob("efficiency*"))
    assert not re.search(r"href=\"figures/efficiency", page)


def _own(out: Path) -> str:
    """A page without the library that draws its plots and without their data."""
    page = (out / "index.html").read_text()
    return page[: page.index("<script")]


def test_latex_is_balanced_and_escaped(report: Path) -> None:
    for path in (report / "tables").glob("*.tex"):
        text = path.read_text()
        assert text.count("{") == text.count("}")
        body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
        columns = re.search(r"\\begin{tabular}{(\w+)}", text)
        assert columns
        for line in body.splitlines()[1:-1]:
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns[1]) - 1
        assert not re.search(r"(?<!\\)[%#_]", text)
        assert text.isascii()


def test_the_page_needs_nothing_else(report: Path) -> None:
    page = (report / "index.html").read_text()
    assert "<title>Big &amp; &lt;small&gt;</title>" in page
    own = page.replace(page[page.index("plotly.js v") : page.rindex("<script>")], "")
    for source in re.findall(r'(?:src|href)="?([^"> ]+)', own):
        assert source.startswith(("#", "data:", "figures/", "tables/")), source
        if source.startswith(("figures/", "tables/")):
            assert (report / source).is_file(), source
    data = re.search(r'<script type="application/json" id=data>(.*?)</script>', page, flags=re.DOTALL)
    assert data
    drawn = json.loads(data[1])
    assert [task["task"] for task in drawn["tasks"]] == ["HalfCheetah-v5", "Hopper-v5"]
    assert len(page) < 6_500_000


def test_a_report_replaces_a_report_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a", np.arange(11.0), steps=50_000)
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    (out / "mine.txt").write_text("kept")
    (out / "figures" / "old.png").write_text("gone")
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert (out / "mine.txt").read_text() == "kept"
    assert not (out / "figures" / "old.png").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    capsys.readouterr()
    assert main(["report", str(tmp_path / "runs"), "--out", str(other)]) == 2
    assert "exists and is not a report" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("report nowhere --out out", "there is no folder nowhere"),
        ("report . --out out", "there is no run in ."),
        ("report . --out out --seed -1", "--seed must not be negative"),
        ("report . --out out --at -5", "--at must not be negative"),
        ("report . --out out --at soon", "must be a whole number"),
        ("report .", "--out"),
        ("report --out out", "RUN"),
    ],
)
def test_refusals(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["matplotlib", "plotly"])
def test_without_its_libraries_it_says_how_to_get_them(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else known(name))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert f"needs {missing}, which is not installed: pip install 'rewirl[report]'" in capsys.readouterr().err


def test_a_full_disk_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "runs" / "a", np.arange(11.0), steps=50_000)
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    before = (out / "index.html").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rewirl.experiments.report.writer.save", full)
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 1
    assert (out / "index.html").read_bytes() == before


@pytest.mark.parametrize(
    "given",
    [
        {"method": "td3", "task": "HalfCheetah-v5", "seed": 4},
        {"method": "ds-sac", "task": "Hopper-v5", "seed": 1, "tau": 1.0, "target_interval": 1000, "steps": 50_000},
        {"method": "ds-td3", "task": "HalfCheetah-v5", "lambdas": (12.5, 80), "hidden": (64, 32), "keep_replay": True},
        {"method": "sac", "task": "HalfCheetah-v5", "alpha": "auto", "eval_every": 1000},
    ],
)
def test_the_command_of_a_run_makes_the_same_run(given: dict[str, object], tmp_path: Path) -> None:
    import shlex

    from rewirl.cli.commands import train
    from rewirl.cli.ui.parser import Parser

    run = load_run(write_run(tmp_path / "run", [1.0], **given))
    words = shlex.split(command_of(run))
    assert words[:2] == ["rewirl", "train"]
    parser = Parser("rewirl train", "", ())
    train.arguments(parser)
    args = parser.read(words[2:])
    assert train.config_of(train.words_of(args, train.given(args))) == run.config


def test_commands_of_variants_go_to_folders_of_their_own(tmp_path: Path) -> None:
    for name, block in (("single", 1), ("blocks", 4)):
        for seed in (1, 2):
            write_run(tmp_path / f"{name}{seed}", [1.0], method="ds-td3", seed=seed, block=block, steps=5000)
    runs = compare(load([tmp_path])).runs
    usual = "rewirl train ds-td3 HalfCheetah-v5 --seed"
    assert sorted(commands_of(runs)) == [
        f"{usual} 1 --steps 5000",
        f"{usual} 1 --steps 5000 --block 4 --name blocks1",
        f"{usual} 2 --steps 5000",
        f"{usual} 2 --steps 5000 --block 4 --name blocks2",
    ]
    assert commands_of([runs[0], runs[0], runs[0]])[2].endswith("-seed1-2")


def test_versions_machine_and_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["rewirl", "train", "ds-td3", "mine"])
    tiny.train(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", np.arange(5.0), method="ds-td3", task="tiny/Walk-v0", seed=2, steps=600, eval_every=150)
    comparison = compare(load([tmp_path]))
    versions, machine = dict(facts(comparison.runs, "versions")), dict(facts(comparison.runs, "machine"))
    assert versions["numpy"] == f"{np.__version__} (1 run)"
    assert versions["versions"] == "not recorded for 1 run"
    assert machine["processor"].endswith("(1 run)")
    one, other = sorted(run_table(comparison).records, key=lambda record: str(record["seed"]))
    assert one["typed"] == "rewirl train ds-td3 mine"
    assert str(one["command"]).startswith("rewirl train ds-td3 tiny/Walk-v0 --seed 1 --steps 600 --eta 0.2")
    assert other["typed"] is None
    assert (one["state"], one["last_evaluation"]) == ("done", 600)


def test_the_wiring_of_a_real_run(tmp_path: Path) -> None:
    for seed in (1, 2):
        tiny.train(tmp_path / f"run{seed}", seed=seed, steps=900)
    ((group,), _) = grouped(load([tmp_path]).runs)
    found, notes = studies(group)
    assert notes == []
    actor, critics = found
    assert (actor.network, critics.network) == ("actor", "critics")
    assert actor.seeds == (1, 2)
    assert actor.features == ("observation 0", "observation 1", "observation 2")
    assert critics.features == (*actor.features, "action 0", "action 1")
    assert actor.steps.tolist() == [0, 150, 300, 450, 600, 750, 900]
    # The number of links never changes, wherever they go.
    assert len({round(float(total), 6) for total in actor.per_feature.sum(axis=0)}) == 1
    assert (actor.per_feature != actor.per_feature[:, :1]).any()
    for study in found:
        for degrees in study.degrees:
            assert degrees.first.sum() == pytest.approx(1)
            assert degrees.last.sum() == pytest.approx(1)
        youngest, oldest = min(study.ages), max(study.ages)
        assert (study.ages[youngest] >= study.ages[oldest]).all()
        assert study.ages[youngest][0] == 0
        assert 0 < study.ages[oldest][-1] < 1


def test_a_run_that_has_just_begun_does_not_hide_the_wiring_of_the_others(tmp_path: Path) -> None:
    for seed, upto in ((1, 40_000), (2, 30_000), (3, 4000)):
        write_run(
            tmp_path / str(seed),
            np.arange(30.0),
            method="ds-td3",
            seed=seed,
            upto=upto,
            wiring=True,
            **{"steps": 40_000, "random_steps": 4000, "hidden": (8, 8), "eval_every": 2000},
        )
    ((group,), _) = grouped(load([tmp_path]).runs)
    for study in studies(group)[0]:
        assert study.seeds == (1, 2)
        assert study.n_text == "n = 2 of 3"
        assert study.steps[-1] == 30_000


def test_a_method_that_is_not_there_yet_is_in_the_curves_and_not_in_the_tables(tmp_path: Path) -> None:
    write_run(tmp_path / "a", np.arange(21.0), method="td3", steps=100_000, random_steps=25_000)
    write_run(tmp_path / "b", np.arange(3.0), method="static-td3", steps=100_000, random_steps=25_000, upto=10_000)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out"), "--at", "100000"]) == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "static-td3 <small>n = 1 (1 at 10k of 100k)" in page
    assert re.search(
        r"\| static-td3 \| – \| 10583.84 ± 307.03 \|", (tmp_path / "out" / "tables" / "return.md").read_text()
    )
    assert "static-td3" not in (tmp_path / "out" / "tables" / "costs.md").read_text()


def test_ages_of_a_known_wiring(tmp_path: Path) -> None:
    from rewirl.experiments.analysis.wiring.study import _ages

    bits = np.array([[[1, 1, 0, 0]], [[1, 0, 1, 0]], [[1, 0, 1, 0]], [[1, 1, 0, 0]], [[1, 1, 0, 0]]], dtype=np.bool_)
    ages = _ages([bits], [0, 10, 20, 30, 40])
    assert list(ages) == [10, 20]
    assert ages[10].tolist() == [0, 0.5, 1, 0.5, 1]
    assert ages[20].tolist() == [0, 0, 0.5, 0.5, 0.5]


def test_a_damaged_wiring_is_named(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    (tmp_path / "run" / "wiring.bin").write_bytes(b"nonsense")
    ((group,), _) = grouped(load([tmp_path]).runs)
    found, notes = studies(group)
    assert found == []
    assert "cannot be shown" in notes[0]


def test_a_method_has_one_colour() -> None:
    labels = ["td3", "ds-td3", "ds-td3 e=200", "ds-td3 e=500", "static-td3"]
    inks = inks_for(labels)
    assert all(inks[method] == INKS[method] for method in ("td3", "ds-td3", "static-td3"))
    assert len({(ink.light, ink.dash) for ink in inks.values()}) == len(labels)
    many = inks_for([f"ds-td3 e={e}" for e in range(20)])
    assert len({(ink.light, ink.dash) for ink in many.values()}) == 20


def test_a_method_of_ones_own_has_a_colour_too() -> None:
    inks = inks_for(["td3", "mine-td3", "mine-td3 80%"])
    assert len(set(inks.values())) == 3


@pytest.mark.parametrize("method", INKS)
def test_colours_can_be_read_on_both_pages(method: str) -> None:
    """At least 3 : 1, what WCAG asks of graphics."""
    assert contrast(INKS[method].light, "#f7f8fa") > 3
    assert contrast(INKS[method].dark, "#1b1f25") > 3


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "@x", "-2+3", "\tx", " =1", "\n=1", "＝1", "<script>alert(1)</script>", "[a](javascript:b)"]
)
def test_what_a_file_says_is_text_in_every_table(text):
    made = Table("t", text, [text, "R"], [[text, "1"]], [{"task": text, "R": -1.5}])
    (record,) = csv.DictReader(io.StringIO(made.csv()))
    assert not record["task"].strip().startswith(("=", "+", "-", "@", "＝"))
    assert not record["task"].startswith(("\t", "\n"))
    assert record["R"] == "-1.5"
    assert "<script" not in made.markdown()
    assert "[a](" not in made.markdown()


def test_a_link_in_a_reports_folder_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_text("dear")
    for name in writer.ENTRIES:
        out = tmp_path / name
        out.mkdir()
        if name != writer.MARK:
            (out / writer.MARK).write_text("{}")
        (out / name).symlink_to(tmp_path / "precious")
        with pytest.raises(Refused, match=r"symbolic link|is not a report"):
            writer.check(out)
    assert (tmp_path / "precious" / "letter").read_text() == "dear"
