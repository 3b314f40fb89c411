"""A task that breaks in the middle of a run, as long as there is a file `broken` where the run was started."""

from __future__ import annotations

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


if "faulty/Walk-v0" not in gymnasium.registry:
    gymnasium.register("faulty/Walk-v0", entry_point=Faulty)
