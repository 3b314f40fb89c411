"""about.json: every session of a run that differs from the one before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import tiny

from rewirl.storage import provenance as about
from rewirl.storage import resume, start


def test_a_run_says_what_it_was_trained_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/rewirl", "train", "ds-td3", "a task"])
    tiny.train(tmp_path / "run", steps=150)
    (session,) = about.read(tmp_path / "run" / "about.json")
    assert session.step == 0
    assert session.command == "rewirl train ds-td3 'a task'"
    assert {"rewirl", "numpy", "gymnasium", "python", "instruction set"} <= session.versions.keys()
    assert session.machine["processor"]
    assert float(session.machine["memory"].split()[0]) > 0


def test_a_resume_elsewhere_is_another_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    with start(tiny.config(), folder) as run:
        run.train(200)
    with resume(folder) as run:
        run.train(300)
    assert len(about.read(folder / "about.json")) == 1, "the same machine, versions and command"
    monkeypatch.setattr(about, "machine", lambda: {"processor": "another"})
    with resume(folder) as run:
        run.train()
    first, second = about.read(folder / "about.json")
    assert (first.step, second.step) == (0, 300)
    assert second.machine == {"processor": "another"}


@pytest.mark.parametrize("content", [b"", b"{}", b"[3]", b'[{"step": 0}]', b"\xff", b'{"step": 0, "command": ""}'])
def test_a_damaged_file_says_nothing_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "about.json"
    file.write_bytes(content)
    assert about.read(file) == []
    about.write(file, 5, "")
    assert json.loads(file.read_bytes())[0]["step"] == 5
