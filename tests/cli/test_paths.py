"""Paths that a user may give: shown literally, or refused in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import commands
import pytest
import tiny

from rewirl.cli import main
from rewirl.errors import Failed, Refused
from rewirl.files import to_json
from rewirl.storage import resume, start
from rewirl.untrusted import printable

NAMES = ["[red]x[/red]", "[/]", "$x$", "a b", "λ", "\\[x]"]
CONTROL = ["\x1b[31mx", "a\rb", "\x9b2J", "\u202ex"]


@pytest.mark.parametrize("name", [os.fsdecode(b"r\xff\xfe"), "\N{SNOWMAN}"])
def test_a_path_that_is_not_utf8(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As a run, and as a destination, of every command."""
    run = tmp_path / "runs" / name
    tiny.train(run, task="Pendulum-v1", steps=300, random_steps=60, eval_every=100, hidden=(4, 4))
    shutil.copytree(run, tmp_path / "again" / name)
    shutil.rmtree(tmp_path / "again" / name / "checkpoint")  # a run that fails
    for words in commands.on_run(run, tmp_path / name).values():
        if words[0] not in ("play", "demo", "tune", "sweep"):
            assert main(words) == 0, (words, capfd.readouterr().err)
    assert main(["train", "--resume", str(tmp_path / "again" / name), "--steps", "400"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("rewirl: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["verify", "list", "evaluate"])
def test_markup_in_a_path_is_text(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny.train(tmp_path / name, steps=120, random_steps=60, eval_every=60)
    assert main([command, name]) == 0
    if command != "evaluate":
        assert name in capsys.readouterr().out


@pytest.mark.parametrize("name", CONTROL)
def test_control_characters_never_reach_the_terminal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the name of a folder, of a file that is missing, and in what a failed run left in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    tiny.train(tmp_path / name, steps=120, random_steps=60, eval_every=60)
    (tmp_path / name / "status.json").write_bytes(to_json({"state": "failed", "step": 60, "message": f"no {name}"}))
    for words in commands.on_run(Path(name), tmp_path / "out").values():
        if words[0] not in ("play", "demo", "tune", "report", "sweep"):
            main(words)
    assert main(["list", "."]) == 0
    assert main(["list", f"missing {name}"]) == 2
    said = capsys.readouterr()
    assert name not in said.out + said.err
    assert printable(name) in said.out
    assert f"rewirl: there is no folder missing {printable(name)}: " in said.err


@pytest.mark.parametrize("name", [*CONTROL, "a\nb"])
def test_a_name_with_control_characters_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "td3", "Pendulum-v1", "--dry-run", "--name", name]) == 2
    assert "is not a valid run name" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "list", "evaluate", "inspect", "train --resume", "report --out x"])
def test_a_name_that_is_too_long(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "x" * 300]) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("rewirl: ")
    assert len(said.splitlines()) == 1


def test_a_run_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"dear")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused, match="is a file, and a run needs a folder"):
        start(tiny.config(), tmp_path / "file")
    for folder in (tmp_path / "link", tmp_path / "link" / "run"):
        with pytest.raises(Refused, match="link is a link to a folder that does not exist"):
            start(tiny.config(), folder)
    with pytest.raises(Refused, match="file is a file, and a run needs a folder"):
        start(tiny.config(), tmp_path / "file" / "run")
    assert not (tmp_path / "nowhere").exists()
    assert (tmp_path / "file").read_bytes() == b"dear"


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_folder_that_is_gone_at_any_system_call_of_a_checkpoint(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tiny.config(), tmp_path / "whole") as run:
        run.train(110)
    said: list[tuple[str, int]] = []
    for n in range(1, 99):
        place = tmp_path / f"run{n}"
        shutil.copytree(tmp_path / "whole", place)
        calls = 0

        def counted(real: Callable[..., Any], place: Path = place, n: int = n) -> Callable[..., Any]:
            def call(*given: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == n:
                    place.rename(place.with_name("gone")) if how == "moved" else remove(place)
                return real(*given, **more)

            return call

        with resume(place) as run:
            run.train(112)
            with monkeypatch.context() as patch:
                for name in ("open", "mkdir", "rename", "statvfs", "stat", "listdir", "scandir"):
                    patch.setattr(os, name, counted(getattr(os, name)))
                try:
                    run.checkpoint()
                except Failed as error:
                    said.append((str(error).partition(" was ")[2], error.exit_code))
            with suppress(Failed):
                run.close()
        shutil.rmtree(tmp_path / "gone", ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        if calls < n:
            break
    assert len(said) > 5
    assert set(said) == {("moved or deleted while it was in use: put it back and resume", 1)}, "never a full disk"


def remove(folder: Path) -> None:
    """As another process does, whose system calls are not counted."""
    subprocess.run(["rm", "-r", str(folder)], check=True)


def test_a_folder_that_is_moved_while_training(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(110)
        shutil.move(tmp_path / "run", tmp_path / "moved")
        with pytest.raises(Failed, match=r"run.* was moved or deleted while it was in use") as caught:
            run.train()
        assert caught.value.exit_code == 1, "and not that of a full disk"
        shutil.move(tmp_path / "moved", tmp_path / "run")
