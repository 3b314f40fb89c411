"""Steps per second of whole training on HalfCheetah-v5: act, environment, replay, update; ours beside other libraries.

    python benchmarks/loop.py
    python benchmarks/loop.py --peers-python /opt/peers/bin/python --json loop.json
    python benchmarks/loop.py --envs 1 2 4      # several environments, on Humanoid-v5 and an artificial simulator

All contenders take turns within one run, pinned to one core and one thread; only ratios within one run mean anything.
Evaluation is not in it: with `--eval-process` it runs on another core. With `--envs` nothing is pinned.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from parallel import measure
from peers import PEERS, Peer, add_options
from rewirl import nn
from rewirl.storage import start
from rewirl.storage.provenance import processor
from rewirl.training import RunConfig

TASK, RANDOM_STEPS = "HalfCheetah-v5", 1000
OURS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "td3": [("td3", {}), ("ds-td3", {}), ("ds-td3", {"block": 4}), ("ds-td3", {"sparsity": 0.9})],
    "sac": [("sac", {}), ("ds-sac", {}), ("ds-sac", {"block": 4})],
}

AGENTS = [name for name in PEERS if name not in ("dense-matmuls", "torch-eager")]
"""Peers that train; the others only make updates."""


def ours(method: str, how: dict[str, Any]) -> tuple[str, Callable[[int], list[float]]]:
    """A run in memory, past its random phase, that goes on a little at a time."""
    config = RunConfig.resolve(
        method=method, task=TASK, random_steps=RANDOM_STEPS, eval_every=0, replay_size=100_000, steps=10**9, **how
    )
    run = start(config)
    run.train(RANDOM_STEPS + 1100)  # the targets have links of their own by then

    def go_on(steps: int) -> list[float]:
        begin = time.perf_counter()
        run.train(run.step + steps)
        return [(time.perf_counter() - begin) / steps]

    extra = "".join(f", {name} {value}" for name, value in how.items())
    return f"rewirl {method}{extra}", go_on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", default=["td3", "sac"], choices=["td3", "sac"])
    parser.add_argument("--rounds", type=int, default=15, help="rounds over all contenders")
    parser.add_argument("--steps", type=int, default=200, help="steps of each contender per round")
    add_options(parser)
    parser.add_argument("--envs", type=int, nargs="+", help="instead: these numbers of environments")
    parser.add_argument("--milliseconds", type=float, default=5, help="a step of the artificial simulator")
    parser.add_argument("--method", default="ds-td3", help="with --envs")
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    args = parser.parse_args()

    if args.envs:
        print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one thread, {os.cpu_count()} cores")
        several = measure(args.envs, args.rounds, args.steps, args.milliseconds, args.method)
        if args.json:
            args.json.write_text(json.dumps(several, indent=1))
        return
    os.sched_setaffinity(0, [args.core])
    print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one thread, core {args.core}, {TASK}")
    report: dict[str, object] = {"date": str(date.today()), "machine": processor(), "isa": nn.isa()}
    for algorithm in args.algorithms:
        contenders = [ours(*how) for how in OURS[algorithm]]
        n_ours = len(contenders)
        peers = [Peer("loop", name, algorithm, args.peers_python, args.core, args.published) for name in AGENTS]
        contenders += [(f"{p.name} {p.version}", p.round) for p in peers if not p.absent]
        seconds: dict[str, list[float]] = {name: [] for name, _ in contenders}
        for _ in range(args.rounds):
            for name, go_on in contenders:
                seconds[name] += go_on(args.steps)
        low = {name: float(np.quantile(taken, 0.1)) for name, taken in seconds.items()}
        median = {name: float(np.median(taken)) for name, taken in seconds.items()}
        heading = f"{'':36} {'median steps/s':>14} {'best decile':>12}  times faster, best decile (median), than:"
        print(f"\n{algorithm.upper()}\n{heading}")
        others = [name for name, _ in contenders[n_ours:]]
        for i, (name, _) in enumerate(contenders):
            ratios = [f"{o} {low[o] / low[name]:.2f} ({median[o] / median[name]:.2f})" for o in others if i < n_ours]
            print(f"{name:36} {1 / median[name]:14.0f} {1 / low[name]:12.0f}  {'  '.join(ratios)}")
        for peer in peers:
            if peer.absent:
                print(f"absent: {peer.name} ({peer.absent})")
            peer.close()
        report[algorithm] = [{"name": name, "median": median[name], "low": low[name]} for name in seconds]
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
