"""Size of a deployed policy and time of one action, in all forms and against other libraries.

    python benchmarks/deploy.py
    python benchmarks/deploy.py --peers-python /opt/peers/bin/python --json deploy.json

HalfCheetah's sizes (17 → 256 → 256 → 6), deterministic actions, one observation at a time, one thread. Rounds of all
contenders are interleaved, because on a shared machine only ratios within one run count. Weights are random: neither
size nor time depends on what they are, but for the neurons that a ReLU holds at 0, about half of them here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from peers import ONE_THREAD, Peer

os.environ.update(ONE_THREAD)  # before NumPy reads them

import numpy as np
from numpy.typing import NDArray

from rewirl import nn
from rewirl.export import export_c, export_onnx
from rewirl.nn import Network
from rewirl.policies import Policy, PolicyLayer
from rewirl.storage.provenance import processor
from rewirl.topology import SET, Dense, wire

SIZES = (17, 256, 256, 6)
SPARSITIES = (0.0, 0.5, 0.9)
PEERS = ("stable-baselines3", "rltools", "torch-eager")
# without vector instructions the loops are those of a microcontroller
COMPILERS = {"C": ["gcc", "-O2"], "C, scalar": ["gcc", "-O2", "-fno-tree-vectorize"]}
DTYPES = ("f32", "f16", "int8")

TIMER = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "policy.h"

static policy_memory memory;

int main(int argc, char **argv)
{
    const int warm_up = 200, count = argc > 1 ? atoi(argv[1]) : 1000;
    float observation[POLICY_N_OBS], action[POLICY_N_ACT];
    struct timespec start, end;
    int i, k;
    for (k = -warm_up; k < count; ++k) {
        for (i = 0; i < POLICY_N_OBS; ++i)
            observation[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
        clock_gettime(CLOCK_MONOTONIC, &start);
        policy_act(observation, action, &memory);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (k >= 0)
            printf("%g\\n", (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    }
    return 0;
}
"""


@dataclass
class Contender:
    """One row of the table."""

    form: str
    sparsity: str
    bytes: int | None
    """Of constants (C), or of the file."""
    round: Callable[[int], list[float]]
    seconds: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        lower, *_ = statistics.quantiles(self.seconds, n=10)
        return {
            "form": self.form,
            "sparsity": self.sparsity,
            "bytes": self.bytes,
            "median_us": statistics.median(self.seconds) * 1e6,
            "low_decile_us": lower * 1e6,
        }


def network_of(sparsity: float) -> Network:
    rng = np.random.default_rng(0)
    links = wire(SIZES, rng, rule=SET(), sparsity=sparsity) if sparsity else wire(SIZES, rng, rule=Dense())
    return Network(links, rng)


def policy_of(network: Network) -> Policy:
    layers = [PolicyLayer.from_network(network, layer) for layer in range(network.layers)]
    ones = np.ones(SIZES[-1], dtype=np.float32)
    return Policy(layers=layers, low=-ones, high=ones, algorithm="td3", task="HalfCheetah-v5")


def timed(act: Callable[[NDArray[np.float32]], object]) -> Callable[[int], list[float]]:
    observations = np.random.default_rng(1).standard_normal((1000, SIZES[0]), dtype=np.float32)

    def round_(count: int) -> list[float]:
        seconds = []
        for i in range(count):
            observation = observations[i % len(observations)]
            start = perf_counter()
            act(observation)
            seconds.append(perf_counter() - start)
        return seconds

    round_(200)
    return round_


def compiled(policy: Policy, folder: Path, dtype: str, compiler: list[str]) -> tuple[int, Callable[[int], list[float]]]:
    done = export_c(policy, folder, dtype=dtype)
    (folder / "timer.c").write_text(TIMER)
    program = str(folder / "timer")
    subprocess.run([*compiler, "-std=c99", done.source, folder / "timer.c", "-lm", "-o", program], check=True)

    def round_(count: int) -> list[float]:
        printed = subprocess.run([program, str(count)], capture_output=True, text=True, check=True).stdout
        return [float(line) for line in printed.split()]

    return done.flash_bytes, round_


def onnx_session(policy: Policy, path: Path) -> tuple[int, Callable[[int], list[float]]]:
    runtime: Any = import_module("onnxruntime")
    done = export_onnx(policy, path)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return done.bytes, timed(lambda x: session.run(["action"], {"observation": x[None]}))


def contenders(folder: Path) -> list[Contender]:
    found = []
    for sparsity in SPARSITIES:
        name = f"{sparsity:.0%}"
        network = network_of(sparsity)
        policy = policy_of(network)
        for form, compiler in COMPILERS.items():
            for dtype in DTYPES:
                place = folder / f"{form}-{dtype}-{name}"
                found.append(Contender(f"{form}, {dtype}", name, *compiled(policy, place, dtype, compiler)))
        policy.save(path := folder / "policy.safetensors")
        found.append(Contender("Policy.predict (NumPy)", name, path.stat().st_size, timed(Policy.load(path).predict)))
        found.append(Contender("Network.act (engine)", name, None, timed(network.act)))
        try:
            found.append(Contender("onnxruntime", name, *onnx_session(policy, folder / "policy.onnx")))
        except ImportError as error:
            print(f"onnxruntime is left out: {error}", file=sys.stderr)
    return found


def main() -> None:
    """Measures everything, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="rounds over all contenders")
    parser.add_argument("--actions", type=int, default=500, help="actions of each contender per round")
    parser.add_argument("--core", type=int, default=1, help="core that everything is pinned to")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has the other libraries")
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.core})
    print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one thread, core {args.core}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as peers:
        everyone = contenders(Path(folder))
        for name in PEERS:
            peer = peers.enter_context(Peer("act", name, "td3", args.peers_python, args.core))
            if peer.absent:
                print(f"{name} is left out: {peer.absent}", file=sys.stderr)
            else:
                everyone.append(Contender(f"{name} {peer.version}", "0%", None, peer.round))
        for _ in range(args.rounds):
            for contender in everyone:
                contender.seconds += contender.round(args.actions)
    rows = [contender.row() for contender in everyone]
    print("| form | sparsity | bytes | one action: median µs (low decile) |\n|---|---|---|---|")
    for row in rows:
        size = "–" if row["bytes"] is None else f"{row['bytes']:,}"
        print(f"| {row['form']} | {row['sparsity']} | {size} | {row['median_us']:.1f} ({row['low_decile_us']:.1f}) |")
    if args.json:
        report = {"date": str(date.today()), "machine": processor(), "isa": nn.isa(), "rows": rows}
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
