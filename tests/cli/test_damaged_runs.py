"""Any file of a run folder with any content, under every command: a sentence, never a traceback."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import commands
import pytest
import tiny
from in_memory import new_folder
from unprivileged import as_normal_user

from rewirl.cli import main
from rewirl.experiments.analysis.comparison import compare
from rewirl.experiments.analysis.trained_runs import load
from rewirl.experiments.analysis.wiring.study import studies
from rewirl.storage import inspect_run, list_runs, resume, start, verify
from rewirl.training.measurements import EvaluationRow

DIGITS = b"1" * 5000
OPTIONAL = [f.name for f in fields(EvaluationRow) if f.default is None]
CONTENTS = {
    "empty": b"",
    "zeros": bytes(100),
    "infinite JSON": b'{"pid": 1e999, "started": 1e999, "host": "h", "step": 1e999, "state": "done"}',
    "digits in JSON": b'{"pid": ' + DIGITS + b', "started": 1, "host": "h", "step": ' + DIGITS + b"}",
    "other types in JSON": b'{"pid": [], "started": {}, "host": 3, "step": "many", "state": 7, "message": []}',
    "list of numbers": b'[1, {"step": 1e999, "command": 1, "versions": [], "machine": 3}]',
    "deep JSON": b"[" * 100_000,
    "deep TOML": b"steps = " + b"[" * 100_000,
    "deep key in TOML": b".".join([b"a"] * 50_000) + b" = 1",
    "control characters in TOML": b'method = "ds-td3"\ntask = "\\u001b[2J"\nsteps = 100',
    "digits in TOML": b"seeds = [" + DIGITS + b"]\nsteps = " + DIGITS,
    "infinite TOML": b'method = "ds-td3"\ntask = "Pendulum-v1"\nlr = inf\nsteps = nan',
    "text": "[bold]λ[/] $x$ \x1b[2J".encode(),
    "not UTF-8": b"\xff\xfe\xff",
    "CSV of nothing": b",,,,,,\n" * 3,
    "head of a log": b'{"actor": [1e999, -3], "critic1": "no"}\n' + bytes(50),
    "huge log": b'{"actor": [99999999999999, 99999999999999]}\n' + bytes(50),
    "empty log": b"{}\n" + bytes(50),
}


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """A run in the middle, as it is left by SIGTERM, beside one that is finished."""
    parent = new_folder() / "runs"
    config = {"hidden": (4, 4), "steps": 260, "random_steps": 50, "eval_every": 100, "eval_episodes": 1}
    for name in ("one", "two"):
        chosen = tiny.config(task="Pendulum-v1", **config, seed=("one", "two").index(name))
        with start(chosen, parent / name) as run:
            run.train(250 if name == "one" else 260)
    (parent / "one" / "grid.toml").write_text(
        'tasks = ["Pendulum-v1"]\nmethods = ["ds-td3"]\nseeds = [1]\nsteps = 100\nhidden = [4, 4]'
    )
    yield parent
    shutil.rmtree(parent.parent)


FILES = (
    *("config.toml", "evaluations.csv", "progress.csv", "status.json", "about.json", "lock", "wiring.bin"),
    *("diagnostics.csv", "policy.safetensors", "best_policy.safetensors", "replay.bin", "grid.toml"),
)


def test_these_are_all_files(stopped: Path) -> None:
    assert {path.name for path in (stopped / "one").iterdir() if path.is_file()} == set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_no_content_of_any_file_is_a_traceback(
    file: str, stopped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for kind, content in CONTENTS.items():
        shutil.copytree(stopped, tmp_path / "runs")
        run = tmp_path / "runs" / "one"
        (run / file).write_bytes(content)
        for name, words in commands.on_run(run, tmp_path / "out").items():
            if name in ("play", "demo", "tune", "report", "sweep", "train --config") and kind not in READ.get(file, ()):
                continue  # slow, and does not read this file
            code = main(words)
            said = capfd.readouterr()
            assert code in (0, 1, 2), (name, kind)
            assert "Traceback" not in said.err, (name, kind)
            assert "\x1b[2J" not in said.out + said.err, (name, kind)
            assert len([line for line in said.err.splitlines() if line.startswith("rewirl:")]) == (code != 0)
            if name == "list":
                assert "two" in said.out, kind
        shutil.rmtree(tmp_path / "runs")


READ = {
    "config.toml": ("deep TOML", "digits in TOML", "infinite TOML", "not UTF-8"),
    "grid.toml": ("deep TOML", "digits in TOML", "infinite TOML", "not UTF-8"),
    "evaluations.csv": ("CSV of nothing", "not UTF-8"),
    "about.json": ("infinite JSON", "list of numbers", "deep JSON"),
    "wiring.bin": ("head of a log", "huge log", "empty log", "empty"),
}
"""Contents with which slow commands are tried too."""


@pytest.mark.parametrize("column", [f.name for f in fields(EvaluationRow)])
@pytest.mark.parametrize("cell", ["", "1e999", "1" * 5000])
def test_a_bad_cell_never_hides_the_other_runs_and_is_repaired_by_a_resume(
    column: str, cell: str, stopped: Path, tmp_path: Path
) -> None:
    shutil.copytree(stopped, tmp_path / "runs")
    run = tmp_path / "runs" / "one"
    table = run / "evaluations.csv"
    lines = table.read_text().splitlines()
    cells = lines[-1].split(",")
    place = lines[0].split(",").index(column)
    before, cells[place] = cells[place], cell
    table.write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    states = {info.folder.name: info.state for info in list_runs(tmp_path / "runs")}
    assert states["two"] == "done"
    bare = column.endswith("_links") or (not cell and before == "") or (not cell and column in OPTIONAL)
    assert states["one"] == ("stopped" if bare else "damaged")
    assert main(["list", str(run.parent)]) == 0
    if cell != before:
        assert verify(run), "what was changed is found"
    with resume(run) as resumed:
        resumed.train()
    assert verify(run) == []
    assert inspect_run(run).state == "done"


def test_about_json_never_blocks_a_resume(stopped: Path, tmp_path: Path) -> None:
    for content in (
        *CONTENTS.values(),
        b'[{"step": 0, "command": "", "versions": {}, "machine": {}, "environment": "X"}]',
    ):
        shutil.copytree(stopped / "one", tmp_path / "run")
        (tmp_path / "run" / "about.json").write_bytes(content)
        resume(tmp_path / "run").close()
        shutil.rmtree(tmp_path / "run")
    shutil.copytree(stopped / "one", tmp_path / "run")
    (tmp_path / "run" / "about.json").unlink()
    (tmp_path / "run" / "about.json").mkdir()
    with resume(tmp_path / "run") as run:
        assert any("about.json could not be written" in notice for notice in run.notices)


def pipe(path: Path) -> None:
    removed(path)
    os.mkfifo(path)


def folder(path: Path) -> None:
    removed(path)
    path.mkdir()


def removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def unreadable(path: Path) -> None:
    path.chmod(0)


def listable_only(path: Path) -> None:
    path.chmod(0o644)


@contextmanager
def not_waiting() -> Iterator[None]:
    """Fails after a minute, for instance of waiting for the other end of a pipe."""

    def fail(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("spoil", [pipe, folder, unreadable, listable_only])
def test_whatever_is_in_place_of_any_entry(
    spoil: Callable[[Path], None], stopped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every file and folder of a run: no command waits, or fails with more than a sentence, and `list` shows the other
    run."""
    for entry in sorted(path.relative_to(stopped) for path in (stopped / "one").rglob("*")):
        shutil.copytree(stopped, tmp_path / "runs")
        spoil(tmp_path / "runs" / entry)
        for name in ("list", "verify", "inspect", "train --resume"):
            words = commands.on_run(tmp_path / "runs" / "one", tmp_path / "out")[name]
            with as_normal_user(), not_waiting():
                code = main([*words[:2], "--episodes", "0"] if name == "inspect" else words)
            said = capfd.readouterr()
            assert code in (0, 1, 2, 4), (entry, name)
            assert "Traceback" not in said.err, (entry, name)
            assert "Errno" not in said.out + said.err, (entry, name)
            assert len([line for line in said.err.splitlines() if line.startswith("rewirl:")]) == (code != 0)
            assert "two" in said.out or name != "list", entry
        for path in (tmp_path / "runs" / "one", *(tmp_path / "runs" / "one").glob("checkpoint/**")):
            path.chmod(0o755)
        shutil.rmtree(tmp_path / "runs")


@pytest.mark.parametrize("spoil", [pipe, folder, unreadable, listable_only])
def test_whatever_is_in_place_of_any_entry_a_report_has_the_other_run(
    spoil: Callable[[Path], None], stopped: Path, tmp_path: Path
) -> None:
    for entry in sorted(path.relative_to(stopped) for path in (stopped / "one").rglob("*")):
        shutil.copytree(stopped, tmp_path / "runs")
        spoil(tmp_path / "runs" / entry)
        with as_normal_user(), not_waiting():
            comparison = compare(load([tmp_path / "runs"]))
            notes = [*comparison.notes, *(note for group in comparison.groups for note in studies(group)[1])]
        assert any(run.folder.name == "two" for run in comparison.runs), entry
        wanted = ("wiring.bin", "evaluations.csv", "config.toml")  # files as listable_only are files as usual
        if entry.name in wanted and entry.parent.name == "one" and spoil is not listable_only:
            assert any("one" in note or "seed 0" in note for note in notes), (entry, notes)
        for path in (tmp_path / "runs" / "one", *(tmp_path / "runs" / "one").glob("checkpoint/**")):
            path.chmod(0o755)
        shutil.rmtree(tmp_path / "runs")


def test_a_folder_that_may_not_be_read_hides_no_run(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "runs")
    for mode in (0, 0o644):
        (tmp_path / "runs" / "one").chmod(mode)
        with as_normal_user():
            infos = {info.folder.name: info for info in list_runs(tmp_path / "runs")}
        assert (infos["one"].state, infos["two"].state) == ("damaged", "done")
        assert "Permission denied" in infos["one"].message
    (tmp_path / "runs").chmod(0o311)
    with as_normal_user(), pytest.raises(PermissionError):
        list_runs(tmp_path / "runs")
    (tmp_path / "runs").chmod(0o755)


@pytest.mark.parametrize("name", ["config.toml", "evaluations.csv", "status.json", "about.json", "lock", "wiring.bin"])
def test_a_folder_in_place_of_a_file_hides_no_run(name: str, stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "runs")
    (tmp_path / "runs" / "one" / name).unlink(missing_ok=True)
    (tmp_path / "runs" / "one" / name).mkdir()
    states = {info.folder.name: info.state for info in list_runs(tmp_path / "runs")}
    assert states["two"] == "done"
    assert states["one"] == ("damaged" if name in ("config.toml", "evaluations.csv") else "stopped")
    assert main(["list", str(tmp_path / "runs")]) == 0
