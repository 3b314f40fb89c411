"""Every command as it is used on a run folder that someone else may have made."""

from __future__ import annotations

from pathlib import Path

from rewirl.cli.main import COMMANDS

WRITES = ("train", "demo", "sweep", "tune")
"""Commands that train."""


def on_run(run: Path, out: Path) -> dict[str, list[str]]:
    """Command lines by a name that begins with the command; each reads files of `run` and writes below `out`."""
    config = str(run / "config.toml")
    words = {
        "train --resume": ["--resume", str(run)],
        "train --config": ["--config", config, "--run-dir", str(out / "trained"), "--steps", "100"],
        "demo": ["--config", config, "--run-dir", str(out / "demo"), "--dry-run"],
        "sweep": [str(run / "grid.toml"), "--dir", str(run.parent), "--dry-run"],
        "tune": ["ds-td3", "Pendulum-v1", "--config", config, "--trials", "0"],
        "evaluate": [str(run), "--episodes", "1"],
        "inspect": [str(run), "--episodes", "1", "--html", str(out / "agent.html")],
        "play": [str(run), "--gif", str(out / "agent.gif")],
        "list": [str(run.parent)],
        "list one": [str(run)],
        "verify": [str(run)],
        "export c": [str(run), "--to", "c", "--dtype", "int8", "--out", str(out / "c")],
        "export onnx": [str(run), "--to", "onnx", "--out", str(out / "policy.onnx")],
        "report": [str(run.parent), "--out", str(out / "report")],
        "methods": [],
        "tasks": [],
    }
    assert {name.split()[0] for name in words} == set(COMMANDS), "a command is not tested on strangers' files"
    return {name: [name.split()[0], *rest] for name, rest in words.items()}


NAMES = tuple(on_run(Path("run"), Path("out")))
