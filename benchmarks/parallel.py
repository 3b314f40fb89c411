"""The part of loop.py about several environments: `python benchmarks/loop.py --envs 1 2 4`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import simulator
from rewirl.envs.environment import Environment
from rewirl.storage import start
from rewirl.training import Run, RunConfig

RANDOM_STEPS = 150


def measure(envs: Sequence[int], rounds: int, steps: int, milliseconds: float, method: str) -> list[dict[str, Any]]:
    """Steps per second for each number of environments, in this process and in workers, taking turns."""
    found = []
    artificial = {"task": simulator.TASK, "env_kwargs": {"milliseconds": milliseconds}}
    for given in ({"task": "Humanoid-v5"}, artificial):
        config = RunConfig.resolve(
            method=method, random_steps=RANDOM_STEPS, eval_every=0, replay_size=20_000, steps=10**9, **given
        )
        runs = [
            _ready(replace(config, envs=n, env_processes=p))
            for n in envs
            for p in ((True, False) if n > 1 else (False,))
        ]
        seconds: list[list[float]] = [[] for _ in runs]
        own: list[list[float]] = [[] for _ in runs]  # processor time of this process: the same on a busy machine
        for _ in range(rounds):
            for run, taken, worked in zip(runs, seconds, own, strict=True):
                began, busy = time.perf_counter(), time.process_time()
                run.train(run.step + steps)
                taken.append((time.perf_counter() - began) / steps)
                worked.append((time.process_time() - busy) / steps)
        update, step = _update_seconds(runs[0]), _step_seconds(config)
        print(
            f"\n{method}, {given['task']}: an update takes {update * 1e3:.2f} ms, a step {step * 1e3:.2f} ms (medians)"
        )
        print(f"{'environments':28} {'steps/s':>8} {'best decile':>12} {'times as fast':>14} {'own ms/step':>12}")
        medians = [float(np.median(taken)) for taken in seconds]
        for run, taken, worked, median in zip(runs, seconds, own, medians, strict=True):
            where = f"{run.config.workers} worker processes" if run.config.workers else "this process"
            busy = float(np.median(worked))
            low, name = float(np.quantile(taken, 0.1)), f"{run.config.envs} in {where}"
            print(f"{name:28} {1 / median:8.0f} {1 / low:12.0f} {medians[0] / median:14.2f} {busy * 1e3:12.2f}")
            found.append(
                {
                    "task": given["task"],
                    "name": name,
                    "own": busy,
                    "median": median,
                    "low": low,
                    "update": update,
                    "step": step,
                }
            )
            run.close()
    return found


def _ready(config: RunConfig) -> Run:
    run = start(config)
    run.train(RANDOM_STEPS + 10)
    return run


def _update_seconds(run: Run, times: int = 100) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run.agent.update(run.loop._draw())
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def _step_seconds(config: RunConfig, times: int = 100) -> float:
    env, rng, taken = Environment(config.source().make(), config.task), np.random.default_rng(0), []
    env.reset(0)
    for _ in range(times):
        action = env.actions.draw(rng)
        began = time.perf_counter()
        _, _, terminated, truncated = env.step(action)
        taken.append(time.perf_counter() - began)
        if terminated or truncated:
            env.reset()
    return float(np.median(taken))
