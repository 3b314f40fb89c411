"""Plans: runs are known by their content, and two that differ never share a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tiny

from rewirl.experiments import Plan, parse_grid, plan
from rewirl.experiments.sweep.run_identity import content_of
from rewirl.storage import start
from rewirl.storage.lock import Lock

GRID = """
tasks = ["tiny/Walk-v0"]
methods = ["ds-td3"]
seeds = [7]
steps = 600
random_steps = 100
eval_every = 150
eval_episodes = 2
hidden = [8, 8]
batch = 8
adapt_every = 20
eta = 0.2
checkpoint_every = 100
"""


def planned(folder: Path, more: str = "", **narrowing: int) -> Plan:
    return plan(parse_grid(GRID + more, "mine").narrowed(**narrowing), folder)  # type: ignore[arg-type]


def states(made: Plan) -> list[tuple[str, str, int]]:
    return [(job.folder.name, job.state, job.step) for job in made.jobs]


def test_content_is_what_changes_the_bits() -> None:
    base = content_of(tiny.config())
    free = {"steps": 5, "threads": 2, "checkpoint_every": 7, "keep_replay": True, "eval_process": True}
    assert all(content_of(tiny.config(**{name: value})) == base for name, value in free.items())
    others = {"seed": 8, "eta": 0.3, "lr": 0.5, "eval_every": 100, "sparsity": 0.7, "method": "rigl-td3"}
    assert all(content_of(tiny.config(**{name: value})) != base for name, value in others.items())


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    made = planned(tmp_path / "none")
    assert states(made) == [("ds-td3-seed7", "new", 0)]
    assert made.jobs[0].folder == tmp_path / "none" / "tiny-Walk-v0" / "ds-td3-seed7"
    assert not (tmp_path / "none").exists()


def test_a_run_is_found_whatever_its_folder_is_called(tmp_path: Path) -> None:
    with start(tiny.config(threads=2), tmp_path / "somewhere" / "else") as run:
        run.train(200)
        assert states(planned(tmp_path)) == [("else", "elsewhere", 200)]
    assert states(planned(tmp_path)) == [("else", "cut", 200)]
    tiny.train(tmp_path / "whole")
    assert states(planned(tmp_path)) == [("whole", "done", 600)], "the one that went furthest"


def test_another_content_takes_another_folder(tmp_path: Path) -> None:
    tiny.train(tmp_path / "tiny-Walk-v0" / "ds-td3-seed7", eta=0.4, steps=150)
    [(name, state, _)] = states(planned(tmp_path))
    assert state == "new"
    assert name.startswith("ds-td3-seed7-")
    assert states(planned(tmp_path)) == [(name, "new", 0)], "the same every time"


@pytest.mark.parametrize(("keep", "expected"), [(True, "cut"), (False, "new")])
def test_a_shorter_run_is_gone_on_with_if_its_replay_was_kept(keep: bool, expected: str, tmp_path: Path) -> None:
    tiny.train(tmp_path / "short", steps=300, keep_replay=keep)
    if not keep:
        (tmp_path / "short" / "replay.bin").unlink()  # as a large one is
    [job] = planned(tmp_path).jobs
    assert job.state == expected
    assert (job.folder == tmp_path / "short") == keep


def test_a_longer_run_has_the_shorter_one_in_it(tmp_path: Path) -> None:
    tiny.train(tmp_path / "long")
    assert states(planned(tmp_path, steps=300)) == [("long", "done", 600)]


def test_a_longer_run_that_was_cut_short_keeps_what_it_needs_to_go_on(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "long") as run:
        run.train(200)
    [job] = planned(tmp_path, steps=300).jobs
    assert (job.state, job.config.steps, job.config.keep_replay) == ("cut", 300, True)


SOURCES = """
[[variant]]
label = "short"
steps = 300
[[variant]]
label = "long"
[[variant]]
label = "learner"
initial_samples = { of = "short" }
"""


def test_runs_that_differ_in_length_alone_have_folders_of_their_own(tmp_path: Path) -> None:
    first = planned(tmp_path, SOURCES)
    assert states(first) == [(f"ds-td3-seed7-{label}", "new", 0) for label in ("short", "long", "learner")]
    tiny.train(first.jobs[0].folder, steps=300, keep_replay=True)
    again = planned(tmp_path, SOURCES)
    assert [state for _, state, _ in states(again)] == ["done", "new", "new"]
    assert len({job.folder for job in again.jobs}) == 3
    tiny.train(again.jobs[1].folder)
    assert [state for _, state, _ in states(planned(tmp_path, SOURCES))] == ["done", "done", "new"]


def test_a_source_must_be_just_as_long(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    assert [state for _, state, _ in states(planned(tmp_path, SOURCES))] == ["new", "done", "new"]


def test_what_begins_with_a_policy_is_known_by_it(tmp_path: Path) -> None:
    made = planned(tmp_path, SOURCES)
    source, _, learner = made.jobs
    assert not learner.placed
    tiny.train(source.folder, steps=300)
    source.state = "done"
    made.place(learner)
    assert learner.placed
    assert learner.config.initial_samples is not None
    assert learner.config.initial_samples.startswith("sha256:")
    assert learner.given.initial_samples == str(source.folder)
    with start(learner.given, tmp_path / "other-name") as run:
        run.train()
    again = planned(tmp_path, SOURCES).jobs[2]
    assert (again.folder.name, again.state) == ("other-name", "done")


def test_a_run_that_another_process_has(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(200)
    lock = Lock(tmp_path / "run")
    [job] = planned(tmp_path).jobs
    assert job.state == "elsewhere"
    assert "by process" in job.message
    lock.release()


def test_a_folder_that_is_gone_when_it_is_looked_into_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.train(tmp_path / "run", steps=150)
    (tmp_path / "leaving").mkdir()
    scandir = os.scandir

    def vanishing(path: str | Path) -> object:
        if Path(path).name == "leaving" and Path(path).exists():
            Path(path).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert states(planned(tmp_path, steps=150)) == [("run", "done", 150)]
    assert not (tmp_path / "leaving").exists(), "it was looked into"
