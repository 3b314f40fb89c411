"""Tasks that break or slow down in the middle of a run, as long as there is a file `broken` or `slow` where the run
was started. The variable SLOW names the second file where runs start in other folders."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import tiny


class Faulty(tiny.Walk):
    """Breaks at its 200th step."""

    total = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.total += 1
        if self.total > 200 and Path("broken").exists():
            raise RuntimeError("the joint is stuck")
        return super().step(action)


class Slow(tiny.Walk):
    """Takes 20 steps per second after its 300th: time to stop a run, which on a fast machine would be at its end."""

    total = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.total += 1
        if self.total > 300 and Path(os.environ.get("SLOW", "slow")).exists():
            time.sleep(0.05)
        return super().step(action)


if "faulty/Walk-v0" not in gymnasium.registry:
    gymnasium.register("faulty/Walk-v0", entry_point=Faulty)
    gymnasium.register("faulty/Slow-v0", entry_point=Slow)
