"""Run folders as data: intact parts are read, damaged ones are reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
from synthetic import write_run

from rewirl.errors import Refused
from rewirl.experiments.analysis.comparison import compare
from rewirl.experiments.analysis.groups import counterpart, grouped, static_counterpart
from rewirl.experiments.analysis.trained_runs import load, load_run
from rewirl.storage import provenance as about

SHORT = {"steps": 50_000}
RISING = np.arange(11.0)


def labels(*folders: Path) -> list[str]:
    return [group.label for group in grouped(load(folders).runs)[0]]


def test_two_small_files_are_enough(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", RISING, **SHORT)
    run = load_run(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["config.toml", "evaluations.csv"]
    assert (run.config.method, run.config.seed, run.last, run.whole) == ("td3", 0, 50_000, True)
    assert run.returns.tolist() == RISING.tolist()
    assert run.about == ()


def test_a_real_run_is_read_with_all_it_has(tmp_path: Path) -> None:
    trained = tiny.train(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.state == "done"
    assert run.returns.tolist() == [row.return_mean for row in trained.evaluations]
    assert run.columns["full_flops"].tolist() == [row.full_flops for row in trained.evaluations]
    assert run.about == tuple(about.read(tmp_path / "run" / "about.json"))
    (tmp_path / "run" / "about.json").unlink()
    (session,) = load_run(tmp_path / "run").about
    assert session.versions["rewirl"], "of the checkpoint"


def test_a_last_line_on_its_way_is_not_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", RISING, **SHORT)
    with (folder / "evaluations.csv").open("a") as file:
        file.write("55000,12")
    assert load_run(folder).last == 50_000


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"step,return_mean\n", "it has no evaluations yet"),
        (b"step,reward\n0,1\n", "it has no column return_mean"),
        (b"step,return_mean\n0,1\n0,2\n", "do not increase"),
        (b"step,return_mean\n0,nan\n", "nan is not a finite number"),
        (b"step,return_mean\n0,many\n", "column return_mean: 'many' is not a number"),
        (b"step,return_mean\nfirst,1\n", "column step: 'first' is not a whole number"),
        (b"step,return_mean\n0.5,1\n", "column step: '0.5' is not a whole number"),
        (b"\xff\xfe\n", "cannot be read"),
        (None, "evaluations.csv cannot be read"),
    ],
)
def test_a_run_that_cannot_be_read_is_named_and_the_others_are_used(
    content: bytes | None, says: str, tmp_path: Path
) -> None:
    write_run(tmp_path / "good", RISING, seed=1, **SHORT)
    bad = write_run(tmp_path / "bad", RISING, seed=2, **SHORT)
    (bad / "evaluations.csv").unlink()
    if content is not None:
        (bad / "evaluations.csv").write_bytes(content)
    loaded = load([tmp_path])
    assert [run.config.seed for run in loaded.runs] == [1]
    (note,) = loaded.notes
    assert str(bad) in note
    assert says in note


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no folder"):
        load([tmp_path / "nowhere"])
    with pytest.raises(Refused, match="there is no run in"):
        load([tmp_path])
    folder = write_run(tmp_path / "run", RISING, **SHORT)
    (folder / "config.toml").write_text("method = 3")
    with pytest.raises(Refused, match=r"no run in .* can be reported: .*config.toml cannot be read"):
        load([tmp_path])


def test_a_seed_counts_once(tmp_path: Path) -> None:
    short = write_run(tmp_path / "a", RISING[:5], seed=3, upto=20_000, **SHORT)
    long = write_run(tmp_path / "b", RISING, seed=3, **SHORT)
    groups, notes = grouped(load([tmp_path, tmp_path / "b"]).runs)
    assert [run.folder for group in groups for run in group.runs] == [long]
    assert str(short) in notes[0]


def test_mixed_versions_and_machines_are_said(tmp_path: Path) -> None:
    for seed, numpy in ((1, "2.0"), (2, "2.4"), (3, "2.4")):
        folder = write_run(tmp_path / str(seed), RISING, seed=seed, **SHORT)
        session = {"step": 0, "command": "", "versions": {"numpy": numpy}, "machine": {"processor": f"cpu {seed % 2}"}}
        (folder / "about.json").write_text(json.dumps([session]))
    folder = write_run(tmp_path / "4", RISING, seed=4, **SHORT)
    (folder / "about.json").write_text(json.dumps([{**session, "versions": {"rewirl": "0.0"}}]))
    write_run(tmp_path / "5", RISING, seed=5, **SHORT)  # nothing is known of it
    loaded = load([tmp_path])
    notes = compare(loaded).notes
    assert any("numpy 2.0 (1 run), 2.4 (2 runs), not recorded (1 run)" in note for note in notes)
    assert not any("processor" in note for note in notes)
    notes = compare(loaded, wall_clock=True).notes
    assert any("Wall-clock times of different machines are mixed: processor cpu 0 (1 run)" in note for note in notes)


def test_a_version_without_memory_is_said(tmp_path: Path) -> None:
    write_run(tmp_path / "new", RISING, seed=1, **SHORT)
    write_run(tmp_path / "old", RISING, seed=2, columns=["step", "return_mean", "seconds"], **SHORT)
    assert any("1 of 2 runs have no record of their memory" in note for note in load([tmp_path]).notes)


def test_labels_say_no_more_than_what_differs(tmp_path: Path) -> None:
    variants = {
        "a": {"method": "ds-td3"},
        "b": {"method": "ds-td3", "adapt_every": 200},
        "c": {"method": "ds-td3", "sparsity": 0.8},
        "d": {"method": "ds-td3", "block": 4},
        "e": {"method": "sac", "tau": 1.0, "target_interval": 1000},
        "f": {"method": "td3", "lr": 3e-4},
        "g": {"method": "ds-td3", "lambdas": (12, 80), "hidden": (256, 256)},
        "h": {"method": "td3", "recycle": 0.1},
        "i": {"method": "ds-td3", "recycle": 0.0, "min_links": 4},
    }
    for name, given in variants.items():
        write_run(tmp_path / name, RISING, **given, **SHORT)
    assert labels(tmp_path) == [
        "td3 lr=0.0003",
        "td3 recycle=0.1",
        "sac hard",  # the paper has figures with and without
        "ds-td3",
        "ds-td3 e=200",
        "ds-td3 block 4",
        "ds-td3 λ=12/80",
        "ds-td3 80%",
        "ds-td3 min_links=4 recycle=0",
    ]


def test_seeds_and_what_changes_no_number_make_no_variant(tmp_path: Path) -> None:
    write_run(tmp_path / "a", RISING, seed=1, **SHORT)
    write_run(tmp_path / "b", RISING, seed=2, threads=2, checkpoint_every=999, **SHORT)
    write_run(tmp_path / "c", RISING[:6], seed=3, eval_every=10_000, **SHORT)
    assert labels(tmp_path) == ["td3"]


def test_runs_from_learned_samples_are_told_apart_by_whose(tmp_path: Path) -> None:
    source = tiny.train(tmp_path / "source", method="td3", seed=1, eta=None, adapt_every=None).folder
    assert source
    for seed in (1, 2):
        tiny.train(tmp_path / f"run{seed}", seed=seed, initial_samples=str(source))
    tiny.train(tmp_path / "plain", seed=1)
    shutil.rmtree(source)
    assert labels(tmp_path) == ["ds-td3", "ds-td3 from td3 at 600"]


def test_a_run_that_is_there_for_its_policy_is_no_seed_of_its_method(tmp_path: Path) -> None:
    dense = {"method": "td3", "eta": None, "adapt_every": None}
    sources = {
        "ds-td3": tiny.train(tmp_path / "source", seed=0, steps=300).folder,
        "td3": tiny.train(tmp_path / "dense-source", seed=0, steps=300, **dense).folder,
    }
    for method, given in {"ds-td3": {}, "td3": dense}.items():
        tiny.train(tmp_path / f"plain-{method}", seed=1, **given)
        tiny.train(tmp_path / f"from-{method}", seed=1, initial_samples=str(sources[method]), **given)
    groups, notes = grouped(load([tmp_path]).runs)
    assert {group.label: group.seeds for group in groups} == {
        "td3": (1,),
        "td3 from td3 at 300": (1,),
        "ds-td3": (1,),
        "ds-td3 from ds-td3 at 300": (1,),
    }
    assert [note.partition(" is left out")[0] for note in notes] == [str(sources["td3"]), str(sources["ds-td3"])]
    found = {group.label: match.label for group in groups if (match := counterpart(group, groups))}
    assert found["ds-td3"] == "td3"
    assert found["ds-td3 from ds-td3 at 300"] == "td3 from td3 at 300", "the same age, each of its own method"


def test_what_rewires_is_held_against_as_many_links_that_stay(tmp_path: Path) -> None:
    hard = {"tau": 1.0, "target_interval": 1000}
    variants = {
        "a": {"method": "static-sac", **hard},
        "b": {"method": "static-sac", "sparsity": 0.8},
        "c": {"method": "ds-sac", **hard},
        "d": {"method": "ds-sac", "sparsity": 0.8, "adapt_every": 200},
        "e": {"method": "ds-sac", "sparsity": 0.9},
    }
    for name, given in variants.items():
        write_run(tmp_path / name, RISING, **given, **SHORT)
    groups, _ = grouped(load([tmp_path]).runs)
    found = {group.label: match.label for group in groups if (match := static_counterpart(group, groups))}
    assert found["ds-sac hard"] == "static-sac hard"
    assert found["ds-sac 80% e=200"] == "static-sac 80%"
    assert "ds-sac 90%" not in found


def test_the_dense_counterpart_is_the_most_alike(tmp_path: Path) -> None:
    hard = {"tau": 1.0, "target_interval": 1000}
    write_run(tmp_path / "soft", RISING, method="sac", **SHORT)
    write_run(tmp_path / "hard", RISING, method="sac", **hard, **SHORT)
    write_run(tmp_path / "ds", RISING, method="ds-sac", **hard, **SHORT)
    write_run(tmp_path / "ds80", RISING, method="ds-sac", sparsity=0.8, **SHORT)
    write_run(tmp_path / "other", RISING, method="td3", **SHORT)
    groups, _ = grouped(load([tmp_path]).runs)
    found = {group.label: match.label for group in groups if (match := counterpart(group, groups))}
    assert found["ds-sac hard"] == "sac hard"
    assert found["ds-sac 80%"] == "sac"
    assert found["td3"] == "td3"


def test_n_says_which_runs_are_not_whole(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        upto = 30_000 if seed == 3 else None
        write_run(tmp_path / str(seed), RISING[: 7 if upto else 11], seed=seed, upto=upto, **SHORT)
    ((group,), _) = grouped(load([tmp_path]).runs)
    assert group.n_text == "n = 3 (1 at 30k of 50k)"
    curve = group.curve()
    assert curve.n.tolist() == [3] * 7 + [2] * 4
    assert np.isfinite(group.along("paper_flops")).all()
    assert np.isfinite(group.along("seconds")).tolist() == [True] * 7 + [False] * 4


def test_a_mean_curve_ends_where_most_runs_do(tmp_path: Path) -> None:
    for seed, evaluations in ((1, 7), (2, 7), (3, 21)):
        write_run(tmp_path / str(seed), np.arange(float(evaluations)), seed=seed, eval_every=5000, steps=100_000)
    ((group,), _) = grouped(load([tmp_path]).runs)
    assert group.curve().steps[-1] == 30_000


def test_a_mean_curve_uses_the_steps_that_its_runs_share(tmp_path: Path) -> None:
    write_run(tmp_path / "a", np.arange(13.0), seed=1, eval_every=5000, steps=60_000)
    write_run(tmp_path / "b", 10 * np.arange(11.0), seed=2, eval_every=3000, steps=30_000)
    ((group,), _) = grouped(load([tmp_path]).runs)
    curve = group.curve()
    assert curve.steps.tolist() == [0, 15_000, 30_000, 35_000, 40_000, 45_000, 50_000, 55_000, 60_000]
    assert curve.mean.tolist() == [0, (3 + 50) / 2, (6 + 100) / 2, 7, 8, 9, 10, 11, 12]
    assert curve.std[1] == (50 - 3) / 2
    assert curve.n.tolist() == [2, 2, 2, 1, 1, 1, 1, 1, 1]
