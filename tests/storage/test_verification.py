"""`verify` names every fault of a run folder, and none that is not there; what can be mended is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
import safetensors.numpy
import tiny
from in_memory import new_folder

from rewirl.cli import main
from rewirl.errors import Failed, Refused
from rewirl.storage import checkpoint, inspect_run, resume, start, verify
from rewirl.training import RunConfig
from rewirl.training.state import State


def test_a_run_without_evaluations_has_no_best_policy(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run", eval_every=0)
    assert not (tmp_path / "run" / "best_policy.safetensors").exists()
    assert verify(tmp_path / "run") == []
    tiny.train(tmp_path / "other")
    (tmp_path / "other" / "best_policy.safetensors").unlink()
    assert len(verify(tmp_path / "other")) == 1


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_broken_config_hides_no_other_fault(checkpoints: bool, tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320 if checkpoints else 0)
    (tmp_path / "run" / "config.toml").write_text("nonsense")
    (tmp_path / "run" / "policy.safetensors").write_bytes(b"")
    found = verify(tmp_path / "run")
    assert len(found) == 2
    assert "config.toml is not a config" in found[0]
    assert "policy.safetensors" in found[1]


def test_a_bad_row_blames_its_own_file_alone(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    rows = tmp_path / "run" / "evaluations.csv"
    rows.write_bytes(rows.read_bytes().replace(b"\n150,", b"\n1x0,"))
    found = verify(tmp_path / "run")
    assert found
    assert all("evaluations.csv" in problem and "wiring.bin" not in problem for problem in found)


def test_diagnostics_that_lack_or_repeat_a_row(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    path = tmp_path / "run" / "diagnostics.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    for wrong in (lines[:-1], [*lines, lines[-1]], [*lines[:10], *lines[19:]]):
        path.write_bytes(b"".join(wrong))
        assert any("diagnostics.csv has a duplicate or missing row" in problem for problem in verify(tmp_path / "run"))
    with resume(tmp_path / "run"):
        pass
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("lost", [1, 4, 9])
def test_a_kill_between_the_rows_of_an_evaluation(lost: int, tmp_path: Path) -> None:
    """Evaluations are written before their diagnostics; a resume writes both again."""
    tiny.train(tmp_path / "whole")
    with start(tiny.config(checkpoint_every=1000), tmp_path / "run") as run:
        run.train(320)
        run.train(460)
    rows = (tmp_path / "run" / "diagnostics.csv").read_bytes()
    assert rows.count(b"\n450,") == 9, "three networks of three layers"
    for path in checkpoint.found(tmp_path / "run" / "checkpoint"):
        if checkpoint.step_of(path) >= 450:
            shutil.rmtree(path)
    cut = b"".join(rows.splitlines(keepends=True)[:-lost])
    (tmp_path / "run" / "diagnostics.csv").write_bytes(cut)
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_runs_of_older_versions_have_no_diagnostics_until_they_are_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = checkpoint.save

    def as_before(folder: Path, step: int, state: State, files: dict[str, bytes], *more: Any) -> Path:
        del files["diagnostics.csv"]
        return save(folder, step, state, files, *more)

    monkeypatch.setattr(checkpoint, "save", as_before)
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    monkeypatch.undo()
    (tmp_path / "run" / "diagnostics.csv").unlink()
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        run.train()
        assert {row.step for row in run.diagnostics} == {450, 600}
    assert verify(tmp_path / "run") == []


@pytest.mark.parametrize("eval_every", [0, 150, 250])
@pytest.mark.parametrize("lost", [False, True])
def test_the_policy_of_a_run_that_is_done_is_restored(eval_every: int, lost: bool, tmp_path: Path) -> None:
    """At step 600 there was an evaluation, or not: its return is in the policy, or not."""
    tiny.train(tmp_path / "run", eval_every=eval_every)
    before = tiny.content(tmp_path / "run")
    policy = tmp_path / "run" / "policy.safetensors"
    policy.unlink() if lost else policy.write_bytes(policy.read_bytes()[:100])
    with resume(tmp_path / "run") as run:
        assert "policy.safetensors is missing or damaged: it is restored" in run.notices[0]
        assert not run.done
        run.train()
        assert run.done
    assert verify(tmp_path / "run") == []
    assert tiny.content(tmp_path / "run") == before


def test_killed_between_the_last_checkpoint_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are made, and still it is not done: the last policy is not written, nor the replay deleted."""
    tiny.train(tmp_path / "whole", eval_every=250)
    with monkeypatch.context() as patch, start(tiny.config(eval_every=250), tmp_path / "run") as run:
        patch.setattr("rewirl.storage.store.FolderStore.finish", lambda *_: None)
        run.train()
    with resume(tmp_path / "run") as run:
        assert run.step == 600
        assert not run.done
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    assert inspect_run(tmp_path / "run").state == "done"
    assert (tmp_path / "run" / "replay.bin").exists() == (tmp_path / "whole" / "replay.bin").exists()


@pytest.mark.parametrize("checkpoint_every", [100, 1000])
def test_a_run_is_not_made_shorter_than_it_is(checkpoint_every: int, tmp_path: Path) -> None:
    given = {"checkpoint_every": checkpoint_every}
    tiny.train(tmp_path / "whole", steps=700, **given)
    with start(tiny.config(**given), tmp_path / "run") as run:
        run.train(320)
        config = (tmp_path / "run" / "config.toml").read_text()
    if checkpoint_every == 1000:  # killed before the first one: it begins anew, but not to end before where it was
        for path in (tmp_path / "run" / "checkpoint").iterdir():
            path.rename(tmp_path / "gone")
    rows = (tmp_path / "run" / "evaluations.csv").read_bytes()
    with pytest.raises(Refused, match=r"has made 3\d\d steps already, and 100 were requested"):
        resume(tmp_path / "run", config=tiny.config(steps=100, **given))
    assert (tmp_path / "run" / "config.toml").read_text() == config
    assert (tmp_path / "run" / "evaluations.csv").read_bytes() == rows
    with resume(tmp_path / "run", config=tiny.config(steps=700, **given)) as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    assert RunConfig.from_toml((tmp_path / "run" / "config.toml").read_text()).steps == 700


def test_nothing_is_opened_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a read-only mount, for every command that only looks. (Root may write whatever the mode of a file says.)"""
    runs = tmp_path / "runs"
    with start(tiny.config(task="Pendulum-v1"), runs / "one") as run:
        run.train(330)
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    opened: list[str] = []
    real = os.open

    def watched(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            opened.append(str(path))
        return real(path, flags, *more, **named)

    def plain(path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if set(mode) & set("wax+"):
            opened.append(str(path))
        return real_open(path, mode, *more, **named)

    real_open = open
    monkeypatch.setattr(os, "open", watched)
    monkeypatch.setattr("builtins.open", plain)
    monkeypatch.setattr("io.open", plain)
    for words in commands.on_run(runs / "one", tmp_path / "out").values():
        if words[0] in ("verify", "list", "inspect", "evaluate", "export", "report"):
            assert main(words) == 0, words
    assert not [path for path in opened if path.startswith(str(runs))]
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


def test_an_intact_run_has_no_faults_while_it_is_training(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(tiny.__file__)), str(tmp_path / "run")]
    quick = [
        "checkpoint_every=400",
        "eval_every=800",
        "steps=1000000",
        "replay_size=200",
        "eval_episodes=1",
        "slow=0.0002",
    ]
    process = subprocess.Popen([*program, *quick], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        process.stdout.readline()
        looked, seen = 0, set()
        until = time.monotonic() + 6
        while time.monotonic() < until or len(seen) < 5 or looked < 5:
            assert verify(tmp_path / "run") == []
            looked += 1
            seen |= {path.name for path in (tmp_path / "run" / "checkpoint").glob("step-*")}
            assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    folder = new_folder()
    with start(tiny.config(), folder / "run") as run:
        run.train(330)
    yield folder / "run"
    shutil.rmtree(folder)


def resealed(run: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Changes the files of all checkpoints, with correct hashes, as anyone can."""
    for path in checkpoint.found(run / "checkpoint"):
        files = dict(checkpoint.read(path))
        change(files)
        shutil.rmtree(path)
        checkpoint.write(path.parent, checkpoint.step_of(path), files)


CHECKPOINT = ("run.json", "state.safetensors", "config.toml", "evaluations.csv", "progress.csv", "diagnostics.csv")


def test_these_are_all_files_of_a_checkpoint(stopped: Path) -> None:
    for path in checkpoint.found(stopped / "checkpoint"):
        assert checkpoint.read(path).keys() == {*CHECKPOINT, "best_policy.safetensors"}


@pytest.mark.parametrize("name", [*CHECKPOINT, "best_policy.safetensors", "another.txt"])
@pytest.mark.parametrize("content", [None, b"", b"\x80\x04.", b"garbage\n", bytes(1000)])
def test_correct_hashes_do_not_make_a_file_intact(
    name: str, content: bytes | None, stopped: Path, tmp_path: Path
) -> None:
    """Every file of a checkpoint, missing or with other content, is found, and none reaches the run folder."""
    if content is None and name in ("diagnostics.csv", "best_policy.safetensors", "another.txt"):
        return  # not in every checkpoint
    shutil.copytree(stopped, tmp_path / "run")
    resealed(tmp_path / "run", lambda files: files.pop(name) if content is None else files.update({name: content}))
    found = verify(tmp_path / "run")
    assert len(found) == 2
    assert all("checkpoint/step-" in problem for problem in found)
    with pytest.raises((Failed, Refused)):
        resume(tmp_path / "run")
    for file in ("best_policy.safetensors", "evaluations.csv", "progress.csv", "diagnostics.csv", "config.toml"):
        assert (tmp_path / "run" / file).read_bytes() == (stopped / file).read_bytes(), file


@pytest.mark.parametrize("name", ["status.json", "about.json"])
@pytest.mark.parametrize("content", [b"", b"1e999", b"7", b"\xff"])
def test_files_that_nothing_depends_on_are_checked_as_well(
    name: str, content: bytes, stopped: Path, tmp_path: Path
) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    assert verify(tmp_path / "run") == []
    (tmp_path / "run" / name).write_bytes(content)
    assert [name in problem for problem in verify(tmp_path / "run")] == [True]


@pytest.mark.parametrize("method", ["ds-td3", "ds-sac", "ds-crossq"])
def test_numbers_that_are_not_finite_are_found(method: str, tmp_path: Path) -> None:
    """NaN in every array of every agent; an infinite number in every weight."""
    with start(tiny.config(method=method, eval_every=0), tmp_path / "run") as run:
        run.train(330)
    files = checkpoint.read(checkpoint.found(tmp_path / "run" / "checkpoint")[0])
    arrays = safetensors.numpy.load(files["state.safetensors"])
    floats = {name for name, array in arrays.items() if array.dtype.kind == "f" and array.size}
    weights = {name for name in floats if re.search(r"\.(parameters|weights|bias|mean|variance)(\.\d+)?$", name)}
    assert {name.split(".")[1] for name in weights} >= {"actor", "critic1", "critic2"}
    cases = [(name, np.nan) for name in floats] + [(name, -np.inf) for name in weights]
    for name, bad in cases:
        changed = {**arrays, name: arrays[name].copy()}
        changed[name].flat[-1] = bad
        content = safetensors.numpy.save(changed)
        resealed(tmp_path / "run", lambda files, content=content: files.update({"state.safetensors": content}))
        assert any("finite" in problem for problem in verify(tmp_path / "run")), (name, bad)
    with pytest.raises(Failed, match="finite"):
        resume(tmp_path / "run")
