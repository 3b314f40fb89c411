"""How far a run is, read while another process writes it."""

from __future__ import annotations

import os
from pathlib import Path

import tiny

from rewirl.experiments.sweep.progress import Progress, ProgressReader
from rewirl.storage import start


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert ProgressReader(tmp_path / "none").read() == Progress()


def test_follows_a_run(tmp_path: Path) -> None:
    reader = ProgressReader(tmp_path / "run")
    with start(tiny.config(), tmp_path / "run") as run:
        seen = []
        for until in (200, 350, 600):
            run.train(until)
            progress = reader.read()
            assert progress.last_return == run.evaluations[-1].return_mean
            assert progress.best_return == max(row.return_mean for row in run.evaluations)
            assert progress.steps_per_second == run.evaluations[-1].steps_per_second
            seen.append(progress.step)
    assert seen == [200, 350, 600]


def test_between_evaluations_the_last_episode_tells(tmp_path: Path) -> None:
    with start(tiny.config(eval_every=0, steps=300), tmp_path / "run") as run:
        run.train()
    (tmp_path / "run" / "status.json").unlink()
    ends = [int(row["step"]) for row in tiny.rows(tmp_path / "run" / "progress.csv")]
    assert ProgressReader(tmp_path / "run").read() == Progress(step=ends[-1])


def test_a_line_that_is_on_its_way_is_left_out(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run", steps=300)
    whole = (tmp_path / "run" / "evaluations.csv").read_bytes()
    reader = ProgressReader(tmp_path / "run")
    complete = reader.read()
    for length in range(len(whole) - 30, len(whole)):
        (tmp_path / "run" / "evaluations.csv").write_bytes(whole[:length])
        os.utime(tmp_path / "run" / "evaluations.csv", ns=(0, length))
        assert len(reader.rows()) == 2
    (tmp_path / "run" / "evaluations.csv").write_bytes(b"step,return\nnonsense")
    assert reader.rows() == []
    (tmp_path / "run" / "evaluations.csv").write_bytes(whole)
    assert reader.read() == complete
