"""What training diagnostics cost: python benchmarks/diagnostics.py [INTERVALS]

Trains ds-td3 on HalfCheetah-v5 at 90% sparsity, the fastest updates and so the largest share. Prints, for 5 000 steps
and one evaluation, medians of the seconds of training (evaluation episodes not counted) and of diagnostics: copies of
the critics, measuring all layers, critic bias.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from rewirl.storage import start
from rewirl.training import RunConfig, run_log
from rewirl.training.evaluation import evaluator

EVERY = 5000
spent: list[tuple[float, float]] = []


def clocks() -> tuple[float, float]:
    """Wall-clock and processor time."""
    return time.perf_counter(), time.process_time()


def since(before: tuple[float, float]) -> tuple[float, float]:
    wall, processor = clocks()
    return wall - before[0], processor - before[1]


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*given: Any) -> Any:
        before = clocks()
        out = function(*given)
        spent.append(since(before))
        return out

    return inner


def main(intervals: int) -> None:
    for module, name in ((run_log, "diagnose"), (run_log, "critics_of"), (evaluator, "biases")):
        setattr(module, name, timed(getattr(module, name)))
    config = RunConfig.resolve(
        method="ds-td3", task="HalfCheetah-v5", sparsity=0.9, steps=10**6, random_steps=1000, eval_every=EVERY
    )
    training, diagnostics = [], []
    with start(config) as run:
        run.train(EVERY)
        for number in range(1, intervals + 1):
            spent.clear()
            before = clocks()
            run.train(EVERY * (number + 1) - 1)  # the last step is evaluated
            training.append(since(before))
            run.train(EVERY * (number + 1))
            diagnostics.append(tuple(map(sum, zip(*spent, strict=True))))
    for clock, name in enumerate(("wall-clock", "processor")):
        steps, extra = median(pair[clock] for pair in training), median(pair[clock] for pair in diagnostics)
        print(f"{name}: {steps:.2f} s of training, {1e3 * extra:.1f} ms of diagnostics: {extra / steps:.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
