"""The examples run, and say what they should."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "steps", "says"),
    [
        ("sb3_ppo_cartpole.py", 512, "actor: 2112 links in the hidden layers"),
        ("sb3_dqn_cartpole.py", 800, "12902 links in the hidden layers"),
        ("torch_ddpg.py", 800, "actor: hidden layers 71% sparse"),
    ],
)
def test_example(
    name: str, steps: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, str(steps)])
    runpy.run_path(str(EXAMPLES / name))
    assert says in capsys.readouterr().out
