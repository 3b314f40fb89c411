"""A symbolic link in place of anything that rewirl writes or deletes: refused and named, its target untouched."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
import tiny
from in_memory import new_folder

from rewirl import TD3, files
from rewirl.cli import main
from rewirl.cli.ui.film import check_place
from rewirl.errors import Failed, Refused
from rewirl.experiments.sweep.workers import LOG, Processes
from rewirl.storage import resume, start
from rewirl.storage.directory import Directory
from rewirl.storage.folder import OTHERS, RunFolder

LEFTOVERS = (".policy.safetensors.0", "checkpoint/.writing", "checkpoint/.removing")


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """A run in the middle, with every file that a run can have."""
    folder = new_folder() / "run"
    source = tiny.train(folder.parent / "source", steps=200)
    with start(tiny.config(initial_samples=str(source.folder)), folder) as run:
        run.train(330)
    yield folder
    shutil.rmtree(folder.parent)


def entries(folder: Path) -> set[str]:
    """Whatever a run leaves in its folder, by whatever name: new files are tested by themselves."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} | {*OTHERS, *LEFTOVERS}


def test_the_run_has_every_file_that_a_run_folder_knows(stopped: Path) -> None:
    known = {path.name for path in vars(RunFolder(Path("x"))).values()} - {"x"}
    assert known <= entries(stopped)


def test_no_link_is_followed_or_replaced(stopped: Path, tmp_path: Path) -> None:
    for name in sorted(entries(stopped)):
        for target in ("file", "folder", "nothing"):
            folder, precious = tmp_path / "run", tmp_path / "precious"
            shutil.copytree(stopped, folder)
            if target == "folder":
                precious.mkdir()
                (precious / "letters").write_bytes(b"dear")
            elif target == "file":
                precious.write_bytes(b"dear")
            link = folder / name
            if link.is_dir():
                shutil.rmtree(link)
            else:
                link.unlink(missing_ok=True)
            link.symlink_to(precious)
            with pytest.raises(Refused) as refused:
                resume(folder)
            # A dangling config.toml is as good as none: there is no run.
            assert str(link) in str(refused.value) or name == "config.toml", (name, target)
            assert link.is_symlink()
            if target == "folder":
                assert (precious / "letters").read_bytes() == b"dear"
                shutil.rmtree(precious)
            elif target == "file":
                assert precious.read_bytes() == b"dear"
                precious.unlink()
            else:
                assert not precious.exists()
            shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["lock", "evaluations.csv", "progress.csv", "wiring.bin", "replay.bin", "checkpoint"])
def test_a_new_run_follows_no_link(name: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"dear")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(precious)
    with pytest.raises(Refused, match=f"run/{name} is a symbolic link"):
        start(tiny.config(), tmp_path / "run")
    assert precious.read_bytes() == b"dear"


@pytest.mark.parametrize("name", ["evaluations.csv", "progress.csv", "wiring.bin", "replay.bin", "lock"])
def test_a_link_that_appears_after_the_check_is_not_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another process had made it in between."""
    monkeypatch.setattr(RunFolder, "refuse_links", lambda self: None)
    precious = tmp_path / "precious"
    precious.write_bytes(b"dear")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(130)
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(precious)
    with pytest.raises((Refused, Failed), match=name):
        resume(tmp_path / "run")
    assert precious.read_bytes() == b"dear"


def test_a_checkpoint_folder_that_becomes_a_link_is_not_left(tmp_path: Path) -> None:
    (tmp_path / "own" / "old").mkdir(parents=True)
    (tmp_path / "precious" / "old").mkdir(parents=True)
    with Directory(tmp_path / "own") as here:
        os.rename(tmp_path / "own", tmp_path / "moved")
        (tmp_path / "own").symlink_to(tmp_path / "precious")
        here.remove("old")
        here.write("new", b"")
    assert os.listdir(tmp_path / "precious") == ["old"]
    assert os.listdir(tmp_path / "moved") == ["new"]


def test_pipes_and_devices_are_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "evaluations.csv")
    with pytest.raises(Refused, match=r"evaluations\.csv is not a regular file"):
        start(tiny.config(), tmp_path / "run")


def test_a_run_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "elsewhere")
    tiny.train(tmp_path / "runs" / "one", steps=150)
    assert (tmp_path / "elsewhere" / "one" / "policy.safetensors").is_file()


def test_the_log_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_bytes(b"dear")
    (tmp_path / "run" / LOG).symlink_to(tmp_path / "precious")
    workers = Processes(1)
    with pytest.raises(Refused, match="symbolic link"):
        workers.start(0, tiny.config(), tmp_path / "run")
    workers.close()
    assert (tmp_path / "precious").read_bytes() == b"dear"


@pytest.mark.parametrize("name", ["export c", "export onnx", "inspect"])
def test_what_a_command_writes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link in place of each file that the command wrote a moment ago."""
    run, out = tiny.train(tmp_path / "run", task="Pendulum-v1", steps=300, hidden=(4, 4)).folder, tmp_path / "out"
    assert run
    words = commands.on_run(run, out)[name]
    out.mkdir()
    assert main(words) == 0, capsys.readouterr().err
    written = sorted(path for path in out.rglob("*") if path.is_file())
    assert written
    for path in written:
        aside = tmp_path / "aside"
        path.rename(aside)
        path.symlink_to(aside)
        before = aside.stat().st_mtime_ns
        assert main(words) == 2
        assert f"{path} is a symbolic link" in capsys.readouterr().err
        assert (path.is_symlink(), aside.stat().st_mtime_ns) == (True, before)
        path.unlink()
        aside.rename(path)


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_what_is_filmed(suffix: str, tmp_path: Path) -> None:
    link = tmp_path / f"agent.{suffix}"
    link.symlink_to(tmp_path / "precious")
    with pytest.raises(Refused, match="is a symbolic link"):
        check_place(link, f".{suffix}", "--flag")


@pytest.mark.parametrize("name", ["export c", "export onnx", "inspect"])
@pytest.mark.parametrize("there_before", [False, True])
def test_a_command_that_fails_writes_all_or_nothing(
    name: str, there_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a disk that is full at the n-th file, for every n."""
    run, out = (
        tiny.train(tmp_path / "run", task="Pendulum-v1", steps=300, hidden=(4, 4)).folder,
        tmp_path / "new" / "out",
    )
    assert run
    if there_before:
        out.mkdir(parents=True)
    real, left = files.write_new, 0

    def write_new(path: Path, content: bytes) -> None:
        nonlocal left
        left -= 1
        real(path, content if left >= 0 else content[:10])
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_new", write_new)
    for limit in range(10):
        left = limit
        code = main(commands.on_run(run, out)[name])
        said = capsys.readouterr().err
        if code == 0:
            break
        assert code == 1
        assert "No space left on device" in said
        assert not [path for path in out.rglob("*") if path.is_file()]
        assert out.exists() == there_before
    assert (code, limit) == (0, 3 if name == "export c" else 1)


def test_what_an_agent_is_saved_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"dear")
    (tmp_path / "agent.safetensors").symlink_to(tmp_path / "precious")
    with TD3("Pendulum-v1", hidden=(4, 4)) as agent, pytest.raises(Refused, match="is a symbolic link"):
        agent.save(tmp_path / "agent.safetensors")
    assert (tmp_path / "precious").read_bytes() == b"dear"
