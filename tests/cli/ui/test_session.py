"""The summary at the end of a run from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rewirl.cli import main

TINY = "train ds-td3 Pendulum-v1 --hidden 16 16 --random-steps 50 --eval-episodes 1 --run-dir run"


def said(capsys: pytest.CaptureFixture[str], words: str, code: int = 0) -> str:
    assert main(words.split()) == code
    out, err = capsys.readouterr()
    return err if code else out


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("every", [1000, 200, 150])
def test_the_summary_ends_with_the_return_of_the_last_step(capsys: pytest.CaptureFixture[str], every: int) -> None:
    out = said(capsys, f"{TINY} --steps 300 --eval-every {every}")
    last = re.search(r"step 300/300  return (\S+)", out)
    assert last is not None
    assert f" → {last[1]}   " in out


def test_without_evaluations_there_is_no_best_policy(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{TINY} --steps 60 --eval-every 0")
    assert "Results  run/ (evaluations.csv, policy.safetensors)\n" in out
    assert not Path("run/best_policy.safetensors").exists()
    for command in ("evaluate", "inspect"):
        sentence = (
            "rewirl: run has no best policy, because it was never evaluated: leave out --best to use its latest one\n"
        )
        assert said(capsys, f"{command} run --best", code=2) == sentence
