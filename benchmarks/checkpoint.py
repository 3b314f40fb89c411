"""What checkpoints cost, of a run's time: `python benchmarks/checkpoint.py [method] [task] [folder]`.

Checkpoints with 25 000 steps between two; most of these steps are made without learning, and the time that they would
have taken is worked out from that of some hundred updates.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rewirl.storage import start
from rewirl.training import RunConfig

EVERY, CHECKPOINTS, UPDATES = 25_000, 5, 500


def main(method: str = "ds-td3", task: str = "HalfCheetah-v5", folder: str | None = None) -> None:
    config = RunConfig.resolve(
        method=method,
        task=task,
        steps=200_000,
        random_steps=10**6,
        eval_every=10**6,
        checkpoint_every=10**6,
        eval_episodes=1,
    )
    place = Path(tempfile.mkdtemp(dir=folder))
    with start(config, place / "run") as run:
        seconds = []
        for number in range(CHECKPOINTS):
            run.loop.random_steps = 10**6
            advance(run.loop, run.step + EVERY - UPDATES)
            run.loop.random_steps = 0
            began = time.perf_counter()
            advance(run.loop, run.step + UPDATES)
            learning = (time.perf_counter() - began) / UPDATES
            if number == 0:
                run._start()
                run._evaluate()
            began = time.perf_counter()
            path = run.checkpoint()
            seconds.append(time.perf_counter() - began)
        size = sum(file.stat().st_size for file in path.iterdir())
    shutil.rmtree(place)
    between = EVERY * learning
    print(
        f"{method} {task}: {size / 1e6:.1f} MB in {1e3 * np.median(seconds):.0f} ms (median of {CHECKPOINTS}, longest "
        f"{1e3 * max(seconds):.0f}); {EVERY} steps take {between:.0f} s ({1e3 * learning:.2f} ms each); "
        f"share {100 * np.median(seconds) / between:.2f}%"
    )


def advance(loop, until: int) -> None:  # type: ignore[no-untyped-def]
    while loop.step < until:
        loop.advance(until)


if __name__ == "__main__":
    main(*sys.argv[1:])
