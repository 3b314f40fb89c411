"""Run folders with curves that are made up, so that their metrics are known: for tests of what reads run folders.

As a program: `python synthetic.py FOLDER` writes runs as the paper has them, to look at a report of them.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rewirl.agents import costs
from rewirl.storage.logs.tables import content
from rewirl.training.config import RunConfig
from rewirl.training.measurements import DiagnosticsRow, EvaluationRow

SIZES = {"HalfCheetah-v5": (17, 6), "Hopper-v5": (11, 3), "Walker2d-v5": (17, 6), "Ant-v5": (105, 8)}
SIZES["Humanoid-v5"] = (348, 17)


def write_run(
    folder: Path,
    returns: Sequence[float] | Callable[[np.ndarray], np.ndarray],
    *,
    wiring: bool = False,
    diagnostics: bool = False,
    columns: Sequence[str] | None = None,
    upto: int | None = None,
    speed: float = 300.0,
    **given: Any,
) -> Path:
    """A run folder with nothing but config.toml, evaluations.csv and (if asked for) wiring.bin and diagnostics.csv.

    `returns` is the return at each evaluation, or a function from steps to returns; `columns` are those of the CSV, all
    unless given; `upto` is where a run that is not done stopped.
    """
    config = RunConfig.resolve(**{"method": "td3", "task": "HalfCheetah-v5", **given})
    n_obs, n_act = SIZES.get(config.task, (3, 1))
    cost = costs(n_obs, n_act, config.options, config.wiring())
    steps = np.arange(0, (config.steps if upto is None else upto) + 1, config.eval_every)
    values = returns(steps) if callable(returns) else np.asarray(returns, dtype=float)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config.to_toml())
    names = [f.name for f in fields(EvaluationRow)] if columns is None else columns
    with (folder / "evaluations.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for step, value in zip(steps.tolist(), values.tolist(), strict=False):
            updates = max(step - config.random_steps, 0)
            row = EvaluationRow(
                step=step,
                return_mean=value,
                return_std=1.0,
                return_min=value - 1,
                return_max=value + 1,
                length_mean=1000.0,
                seconds=round(updates / speed, 3),
                steps_per_second=speed,
                memory_mb=40 + cost.links / 1e4,
                episodes=step // 1000,
                updates=updates,
                links=cost.links,
                actor_links=str(cost.actor),
                critic1_links=str(cost.critic),
                critic2_links=str(cost.critic),
                paper_flops=cost.paper_flops(updates),
                full_flops=cost.full_flops(updates, updates),
                links_replaced=0.0,
            )
            table.writerow(asdict(row))
    if wiring:
        _write_wiring(folder / "wiring.bin", config, n_obs, n_act, steps)
    if diagnostics:
        rows = [
            DiagnosticsRow(
                step=step,
                network=network,
                layer=layer,
                neurons=10,
                dormant=min(step // config.eval_every, 10) if layer < 3 and step else None,
                effective_rank=7 if layer == 2 and step else None,
                q_bias=100.0 + step if layer == 3 and network != "actor" else None,
            )
            for step in steps.tolist()
            for network in ("actor", "critic1", "critic2")
            for layer in (1, 2, 3)
        ]
        (folder / "diagnostics.csv").write_bytes(content(DiagnosticsRow, rows))
    return folder


def _write_wiring(path: Path, config: RunConfig, n_obs: int, n_act: int, steps: np.ndarray) -> None:
    """A wiring that moves towards the first inputs, as fast as the config says."""
    rng = np.random.default_rng(config.seed)
    hidden = config.options.hidden
    sizes = {"actor": (n_obs, *hidden, n_act)}
    sizes |= dict.fromkeys(("critic1", "critic2"), (n_obs + n_act, *hidden, 1))
    layers = [(n_in, n_out, count) for widths in sizes.values() for n_in, n_out, count in _layers(config, widths)]
    bits = []
    for n_in, n_out, count in layers:
        chosen = np.zeros(n_in * n_out, dtype=np.bool_)
        chosen[rng.choice(n_in * n_out, count, replace=False)] = True
        bits.append(chosen)
    moves = "static" not in config.method
    with path.open("wb") as file:
        file.write(json.dumps(sizes).encode() + b"\n")
        for step in steps:
            file.write(b"".join(np.packbits(chosen).tobytes() for chosen in bits))
            if not moves or step < config.random_steps:
                continue
            for (n_in, n_out, count), chosen in zip(layers, bits, strict=True):
                moved = min(round(4 * config.eta * count), n_in * n_out - count)
                if moved:
                    liking = np.repeat(np.linspace(2.0, 0.5, n_in), n_out)
                    old, new = np.flatnonzero(chosen), np.flatnonzero(~chosen)
                    going = rng.choice(old, moved, replace=False, p=(1 / liking[old]) / (1 / liking[old]).sum())
                    coming = rng.choice(new, moved, replace=False, p=liking[new] / liking[new].sum())
                    chosen[going], chosen[coming] = False, True


def _layers(config: RunConfig, widths: Sequence[int]) -> list[tuple[int, int, int]]:
    counts = config.wiring().counts(widths)
    return [(n_in, n_out, count) for (n_in, n_out), count in zip(pairwise(widths), counts, strict=True)]


def learning(final: float, half: float, noise: float = 0.0, seed: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    """A curve that has half of its final return at some step, with noise."""
    rng = np.random.default_rng(seed)

    def returns(steps: np.ndarray) -> np.ndarray:
        rising = final * steps / (steps + half) * 1.2
        out: np.ndarray = np.minimum(rising, final) + noise * final * rng.standard_normal(len(steps))
        return out

    return returns


def write_study(folder: Path, tasks: Sequence[str], seeds: int, steps: int, **given: Any) -> None:
    """TD3 dense, static and dynamic, and SAC, much as the paper has them."""
    finals = {"td3": (0.8, 0.3), "static-td3": (0.78, 0.32), "ds-td3": (0.95, 0.2), "sac": (0.9, 0.25)}
    for place, task in enumerate(tasks):
        for number, (method, (final, half)) in enumerate(finals.items()):
            for seed in range(1, seeds + 1):
                chance = 1000 * place + 10 * number + seed
                level = 5000 * (1 + place) * final * (1 + 0.06 * np.random.default_rng(chance).standard_normal())
                write_run(
                    folder / task / f"{method}-seed{seed}",
                    learning(level, half * steps, 0.03, chance),
                    wiring=method in ("static-td3", "ds-td3"),
                    diagnostics=method != "sac",
                    method=method,
                    task=task,
                    seed=seed,
                    steps=steps,
                    speed=300.0 if method.endswith("sac") or method == "td3" else 380.0,
                    **given,
                )


if __name__ == "__main__":
    write_study(Path(sys.argv[1]), ["HalfCheetah-v5", "Hopper-v5", "Ant-v5"], seeds=4, steps=500_000)
