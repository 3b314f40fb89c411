"""A race: wall-clock time of training to a given return, ours beside other libraries, one core for each contender.

    python benchmarks/race.py --dir race                        # train what is missing, then show it
    python benchmarks/race.py --dir race --show                 # table and figure of what there is
    python benchmarks/race.py --dir race --tasks HalfCheetah-v5 --racers "rewirl td3" stable-baselines3 --steps 300000

A contender that was stopped starts again from its first step: a clock cannot be resumed. Evaluations are not
timed. Run it on a machine that does nothing else: contenders then share caches and memory only with each other.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from racers import OURS, PEERS
from rewirl import nn
from rewirl.storage.provenance import processor

GOALS = {"HalfCheetah-v5": (5_000, 9_000), "Walker2d-v5": (3_500,)}
SMOOTH = 3
"""A goal is reached at the evaluation at which the mean of so many in a row first is that high."""


@dataclass(frozen=True)
class Entry:
    """One contender with one seed on one task, and its file."""

    name: str
    task: str
    seed: int
    folder: Path

    @property
    def file(self) -> Path:
        name = re.sub(r"[^a-z0-9]+", "-", self.name)
        return self.folder / self.task / f"{name}-seed{self.seed}.csv"

    def rows(self) -> list[tuple[int, float, float]]:
        """Step, seconds of training and return of each evaluation."""
        if not self.file.exists():
            return []
        with self.file.open(newline="") as file:
            return [(int(r["step"]), float(r["seconds"]), float(r["return_mean"])) for r in csv.DictReader(file)]

    def minutes_to(self, goal: float) -> float:
        """Minutes of training until a return is reached; infinite if it is not."""
        rows = self.rows()
        for end in range(SMOOTH, len(rows) + 1):
            if np.mean([r for *_, r in rows[end - SMOOTH : end]]) >= goal:
                return rows[end - 1][1] / 60
        return float("inf")


def race(entries: list[Entry], steps: int, cores: list[int], python: str, published: Path | None) -> None:
    """Trains what is not there yet, a contender at a time on each core."""
    free: SimpleQueue[int] = SimpleQueue()
    for core in cores:
        free.put(core)
    env = {**os.environ, **({"PUBLISHED_DS_TD3": str(published.resolve())} if published else {})}

    def train(entry: Entry) -> None:
        rows = entry.rows()
        if rows and rows[-1][0] >= steps:
            return
        core = free.get()
        entry.file.parent.mkdir(parents=True, exist_ok=True)
        who = sys.executable if entry.name in OURS else python
        script = str(Path(__file__).with_name("racers.py").resolve())
        options = {"--seed": entry.seed, "--steps": steps, "--core": core, "--out": entry.file.resolve()}
        command = [who, script, entry.name, entry.task, *(str(word) for pair in options.items() for word in pair)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        free.put(core)
        outcome = "done" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
        print(f"{entry.name}, {entry.task}, seed {entry.seed}: {outcome}", flush=True)

    with ThreadPoolExecutor(len(cores)) as pool:
        list(pool.map(train, entries))


def table(entries: list[Entry]) -> str:
    """Median minutes over seeds to each goal, as Markdown; how many seeds reached it where not all did."""
    lines = []
    for task, goals in GOALS.items():
        here = [entry for entry in entries if entry.task == task and entry.rows()]
        if not here:
            continue
        lines += [f"| {task} | steps | minutes | " + " | ".join(f"minutes to {goal:,}" for goal in goals) + " |"]
        lines += ["|---" * (3 + len(goals)) + "|"]
        for name in dict.fromkeys(entry.name for entry in here):
            mine = [entry for entry in here if entry.name == name]
            steps = min(entry.rows()[-1][0] for entry in mine)
            whole = np.median([entry.rows()[-1][1] / 60 for entry in mine])
            cells = []
            for goal in goals:
                taken = [entry.minutes_to(goal) for entry in mine]
                reached = int(np.isfinite(taken).sum())
                median = float(np.median(taken))
                text = f"{median:.1f}" if np.isfinite(median) else "–"
                cells.append(text if reached == len(mine) else f"{text} ({reached} of {len(mine)})")
            lines.append(f"| {name} (n = {len(mine)}) | {steps:,} | {whole:.1f} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def figure(entries: list[Entry], out: Path) -> None:
    """Return against minutes of training, the mean over seeds at each evaluation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tasks = [task for task in GOALS if any(entry.task == task and entry.rows() for entry in entries)]
    fig, axes = pyplot.subplots(1, len(tasks), figsize=(5.5 * len(tasks), 4), squeeze=False, layout="constrained")
    for axis, task in zip(axes[0], tasks, strict=True):
        for name in dict.fromkeys(entry.name for entry in entries):
            rows = [entry.rows() for entry in entries if (entry.name, entry.task) == (name, task) and entry.rows()]
            if not rows:
                continue
            length = min(map(len, rows))
            block = np.array([each[:length] for each in rows])
            width, dashes = (2, "-") if name in OURS else (1.2, "--")
            minutes, returns = block[:, :, 1].mean(0) / 60, block[:, :, 2].mean(0)
            axis.plot(minutes, returns, label=name, lw=width, ls=dashes)
        axis.set(title=task, xlabel="minutes of training on one core", ylabel="return", xscale="log")
        axis.grid(alpha=0.3)
    axes[0][0].legend(frameon=False, fontsize=8)
    fig.savefig(out, dpi=150)


def main() -> None:
    """Trains, then prints the table and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path("race"), help="folder for evaluations and figure")
    parser.add_argument("--tasks", nargs="+", default=list(GOALS), choices=list(GOALS))
    parser.add_argument("--racers", nargs="+", default=[*OURS, *PEERS], choices=[*OURS, *PEERS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--cores", nargs="+", type=int, default=sorted(os.sched_getaffinity(0)))
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has the other libraries")
    parser.add_argument("--published", type=Path, help="a clone of the repository of the paper's own DS-TD3")
    parser.add_argument("--show", action="store_true", help="train nothing")
    args = parser.parse_args()
    entries = [Entry(n, t, s, args.dir) for s in args.seeds for t in args.tasks for n in args.racers]
    print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one core for each contender")
    if not args.show:
        race(entries, args.steps, args.cores, args.peers_python, args.published)
    print(table(entries))
    if any(entry.rows() for entry in entries):
        figure(entries, args.dir / "race.png")
        print(f"{args.dir / 'race.png'}: return against minutes")


if __name__ == "__main__":
    main()
