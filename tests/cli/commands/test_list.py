"""`rewirl list`: shortened on a narrow terminal, complete in a file or pipe."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from rewirl.cli import main
from rewirl.cli.commands.list import listed
from rewirl.storage import RunInfo
from rewirl.training import RunConfig

NAME = "runs/HalfCheetah-v5/ds-td3-seed1"
MESSAGE = "the disk is full, and a good deal more is said about it than there is room for in a column of a table"
CONFIG = RunConfig.resolve(method="ds-td3", task="HalfCheetah-v5", seed=7, steps=300_000)
DONE = RunInfo(Path(NAME), CONFIG, "done", 300_000, 10_123.4, 9_876.5, "")
FAILED = replace(DONE, folder=Path("runs/HalfCheetah-v5/ds-td3-seed2"), state="failed", step=25_000, message=MESSAGE)


def shown(found: list[RunInfo], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(listed(found, width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("width", "says"),
    [
        (80, ("300,000", "100%", "8%", "done", "failed", "9,876.5", "7", NAME)),
        (70, ("100%", "8%", "done", "failed", "9,876.5", NAME)),
        (200, ("300,000", "100%", "HalfCheetah-v5  ", "ds-td3  ", "10,123.4", NAME)),
    ],
)
def test_what_matters_is_there_at_any_width(width: int, says: tuple[str, ...]) -> None:
    text = shown([DONE, FAILED], width)
    for told in says:
        assert told in text
    assert "…" not in text
    assert MESSAGE[:20] not in text


def test_names_are_never_cut_in_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / ("a" * 120) / ("b" * 120)
    run.mkdir(parents=True)
    (run / "config.toml").write_text(CONFIG.to_toml())
    (run / "status.json").write_text(json.dumps({"state": "failed", "step": 10, "message": MESSAGE}))
    for folder in (tmp_path, run):  # a run is listed, too, when it is the folder itself
        assert main(["list", str(folder)]) == 0
        out = capsys.readouterr().out
        assert f"{run} " in out
        assert f"\n{run}: {MESSAGE}\n" in out
