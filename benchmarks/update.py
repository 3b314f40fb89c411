"""Times one update of TD3 and SAC at HalfCheetah sizes: ours, dense and sparse, beside other libraries in the same run.

    python benchmarks/update.py                              # ours only, and whichever peers this Python has
    python benchmarks/update.py --peers-python /opt/peers/bin/python --json update.json
    python benchmarks/update.py --algorithms td3 crossq --hidden 2048 2048 --sparsity 0.97 0.99

With --hidden these are the widths of the networks, of CrossQ's critics only, beside our dense networks and no peers.

Every contender runs a few updates in turn, round after round, pinned to one core and one thread, so that a busy moment
of the machine hits all of them alike. Only ratios within one run mean anything. Peers come from requirements-peers.txt,
and may live in another environment.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np

from peers import DELAY, PEERS, Peer, add_options
from rewirl import nn
from rewirl.agents import (
    ActionBox,
    ActorCritic,
    CrossQAgent,
    CrossQOptions,
    SACAgent,
    SACOptions,
    TD3Agent,
    TD3Options,
    Transitions,
    WiringOptions,
    costs,
)
from rewirl.storage.provenance import processor
from rewirl.topology import SET, Dense

N_OBS, N_ACT = 17, 6
OPTIONS: dict[str, TD3Options | SACOptions | CrossQOptions] = {
    "td3": TD3Options(),
    "sac": SACOptions(),
    "crossq": CrossQOptions(),
}
CYCLES = {**DELAY, "crossq": CrossQOptions().policy_delay}
"""Updates of the critics for each of the actor."""
PAPER = {"td3": (7, 64), "sac": (12, 80)}
"""λ of the paper for HalfCheetah: about half of the links."""


@dataclass
class Contender:
    """Something that makes updates, and what was measured of it."""

    name: str
    run: Callable[[int], list[float]]
    seconds: list[float] = field(default_factory=list)
    notes: dict[str, float] = field(default_factory=dict)
    besides: dict[str, Callable[[], list[float]]] = field(default_factory=dict)
    """What else is timed in every round: it becomes a note, by its low decile."""

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def low(self) -> float:
        return float(np.quantile(self.seconds, 0.1))


def make_agent(algorithm: str, wiring: WiringOptions) -> ActorCritic:
    box, rng = ActionBox([-1.0] * N_ACT, [1.0] * N_ACT), np.random.default_rng(1)
    options = OPTIONS[algorithm]
    if isinstance(options, TD3Options):
        return TD3Agent(N_OBS, box, options, wiring, rng)
    if isinstance(options, CrossQOptions):
        return CrossQAgent(N_OBS, box, options, wiring, rng)
    return SACAgent(N_OBS, box, options, wiring, rng)


def ours(name: str, algorithm: str, wiring: WiringOptions) -> Contender:
    """One of our agents, already past its first adaptation so that its targets have links of their own."""
    agent = make_agent(algorithm, wiring)
    size = OPTIONS[algorithm].batch
    rng = np.random.default_rng(2)
    records = rng.standard_normal((10_000, Transitions.width(N_OBS, N_ACT))).astype(np.float32)
    records[:, N_OBS : N_OBS + N_ACT] = np.tanh(records[:, N_OBS : N_OBS + N_ACT])
    records[:, N_OBS + N_ACT + 1] = 0
    batch, delay = Transitions(N_OBS, N_ACT, size), CYCLES[algorithm]
    stream, chosen = nn.RandomStream(rng), np.empty(size, dtype=np.int64)

    def run(updates: int) -> list[float]:
        out = []
        for _ in range(updates // delay):
            start = time.perf_counter()
            for _ in range(delay):  # the mean of a whole cycle: with and without the actor's update
                stream.integers(len(records), chosen)
                batch.fill(records, chosen)
                agent.update(batch)
            out.append((time.perf_counter() - start) / delay)
        return out

    run(getattr(wiring.rule, "every", 0) + 2)
    contender = Contender(name, run)
    contender.notes["links"] = sum(net.count for net in agent.networks.values())
    contender.notes["flops"] = costs(N_OBS, N_ACT, OPTIONS[algorithm], wiring).full_flops(updates=1, actions=0)
    parts: list[nn.Network | nn.Target] = [*agent.networks.values(), *agent.targets.values()]
    contender.notes["bytes"] = sum(sum(part.bytes().values()) for part in parts)

    start, before = time.perf_counter(), nn.kernel_seconds()
    run(100)
    contender.notes["outside kernels"] = 1 - (nn.kernel_seconds() - before) / (time.perf_counter() - start)
    obs = np.zeros(N_OBS, dtype=np.float32)

    def adapt() -> None:
        for net in agent.networks.values():
            net.adapt(wiring.rule, agent.rng)

    contender.besides["act µs"] = lambda: [1e6 * s for s in timed(lambda: agent.act(obs), 100)]
    if not isinstance(wiring.rule, Dense):
        contender.besides["adapt ms"] = lambda: [1e3 * s for s in timed(adapt, 2)]
    return contender


def timed(call: Callable[[], object], times: int) -> list[float]:
    out = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        out.append(time.perf_counter() - start)
    return out


def our_contenders(algorithm: str) -> list[Contender]:
    def sparse(**how: object) -> WiringOptions:
        return WiringOptions(rule=SET(eta=0.05, every=1000), **how)  # type: ignore[arg-type]

    out = [ours("rewirl dense", algorithm, WiringOptions())]
    for block in (1, 4):
        kind = "" if block == 1 else ", blocks of 4"
        out.append(ours(f"rewirl λ={PAPER[algorithm]}{kind}", algorithm, sparse(lambdas=PAPER[algorithm], block=block)))
        for sparsity in (0.5, 0.8, 0.9, 0.95) if algorithm == "td3" else ():
            out.append(ours(f"rewirl {sparsity:.0%}{kind}", algorithm, sparse(sparsity=sparsity, block=block)))
    return out


def wide_wirings(algorithm: str, sparsities: list[float]) -> dict[str, WiringOptions]:
    """CrossQ's actor is narrow, and 90% sparse at most."""
    most = 0.9 if algorithm == "crossq" else 1.0
    rule = SET(eta=0.05, every=1000)
    return {f"{s:.0%}": WiringOptions(rule=rule, sparsity=s, actor_sparsity=min(s, most)) for s in sparsities}


def wide_contenders(algorithm: str, sparsities: list[float]) -> list[Contender]:
    out = [ours("rewirl dense", algorithm, WiringOptions())]
    for name, wiring in wide_wirings(algorithm, sparsities).items():
        out.append(ours(f"rewirl {name}", algorithm, wiring))
        out.append(ours(f"rewirl {name}, blocks of 4", algorithm, replace(wiring, block=4)))
    return out


def two_threads(algorithm: str, wirings: dict[str, WiringOptions]) -> dict[str, tuple[float, float]]:
    """How much faster two threads are, unpinned, alternating with one: by low deciles and by medians."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    out = {}
    for name, wiring in wirings.items():
        contender = ours(name, algorithm, wiring)
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(15):
            for threads in times:
                nn.set_threads(threads)
                contender.run(6)
                times[threads] += contender.run(18)
        low, median = (float(np.quantile(times[1], q) / np.quantile(times[2], q)) for q in (0.1, 0.5))
        out[name] = low, median
    nn.set_threads(1)
    return out


def measure(contenders: list[Contender], rounds: int, updates: int) -> None:
    besides: dict[tuple[int, str], list[float]] = {}
    for _ in range(rounds):
        for i, contender in enumerate(contenders):
            contender.run(3)  # its data back into the caches
            contender.seconds += contender.run(updates)
            for name, sample in contender.besides.items():
                besides.setdefault((i, name), []).extend(sample())
    for (i, name), samples in besides.items():
        contenders[i].notes[name] = float(np.quantile(samples, 0.1))


def table(contenders: list[Contender]) -> str:
    columns = {
        "links": "{:.0f}",
        "bytes": "{:.0f}",
        "outside kernels": "{:.1%}",
        "act µs": "{:.1f}",
        "adapt ms": "{:.1f}",
    }
    timings = f"{'':34} {'median ms':>9} {'low ms':>7} {'× dense':>8} {'GFLOP/s':>8}"
    lines = [timings + "".join(f" {name:>15}" for name in columns)]
    for c in contenders:
        cells = [form.format(c.notes[name]) if name in c.notes else "" for name, form in columns.items()]
        speed = f"{c.notes['flops'] / c.low / 1e9:8.1f}" if "flops" in c.notes else f"{'':8}"
        timings = f"{c.name:34} {c.median * 1e3:9.3f} {c.low * 1e3:7.3f} {contenders[0].low / c.low:8.2f} {speed}"
        lines.append(timings + "".join(f" {cell:>15}" for cell in cells))
    return "\n".join(lines)


def ratios(ours_: list[Contender], peers: list[Contender]) -> str:
    """Each of ours against each peer: how many times faster, by low deciles and by medians."""
    lines = [f"{'times faster, low (median), than':34} " + " ".join(f"{p.name:>24}" for p in peers)]
    for c in ours_:
        cells = [f"{p.low / c.low:.2f} ({p.median / c.median:.2f})" for p in peers]
        lines.append(f"{c.name:34} " + " ".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", nargs="+", default=["td3", "sac"], choices=list(OPTIONS))
    parser.add_argument("--hidden", type=int, nargs="+", help="widths of the hidden layers, ours only")
    parser.add_argument("--sparsity", type=float, nargs="+", default=[0.97, 0.99], help="with --hidden")
    parser.add_argument("--rounds", type=int, default=20, help="rounds over all contenders")
    parser.add_argument("--updates", type=int, default=20, help="updates of each contender per round")
    add_options(parser)
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    args = parser.parse_args()

    os.sched_setaffinity(0, [args.core])
    print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one thread, core {args.core}")
    report: dict[str, object] = {"date": str(date.today()), "machine": processor(), "isa": nn.isa()}
    if args.hidden:
        widths = tuple(args.hidden)
        for algorithm, o in OPTIONS.items():
            if isinstance(o, CrossQOptions):
                OPTIONS[algorithm] = replace(o, critic_hidden=widths)
            else:
                OPTIONS[algorithm] = replace(o, hidden=widths)
    elif "crossq" in args.algorithms:
        parser.error("crossq has --hidden, of its critics, e.g. --hidden 2048 2048")
    for algorithm in args.algorithms:
        mine = wide_contenders(algorithm, args.sparsity) if args.hidden else our_contenders(algorithm)
        names = [] if args.hidden else PEERS
        started = [Peer("update", name, algorithm, args.peers_python, args.core, args.published) for name in names]
        there = [Contender(f"{p.name} {p.version}", p.round) for p in started if not p.absent]
        measure([*mine, *there], args.rounds, args.updates)
        print(f"\n{algorithm.upper()} update, batch {OPTIONS[algorithm].batch}\n")
        print(table([*mine, *there]))
        if there:
            print("\n" + ratios(mine, there))
        for peer in started:
            if peer.absent:
                print(f"absent: {peer.name} ({peer.absent})")
            peer.close()
        plain_dense = 5 * 4 * mine[0].notes["links"]
        sparse = [c for c in mine if "rewirl dense" not in c.name]
        print("\nbytes held by all networks, against our dense / against five floats per dense weight:")
        print(
            "; ".join(
                f"{c.name[7:]} {c.notes['bytes'] / mine[0].notes['bytes']:.2f} / {c.notes['bytes'] / plain_dense:.2f}"
                for c in sparse
            )
        )
        report[algorithm] = [{"name": c.name, "median": c.median, "low": c.low, **c.notes} for c in (*mine, *there)]
    paper = {"dense": WiringOptions(), "λ": WiringOptions(rule=SET(), lambdas=PAPER["td3"])}
    for algorithm in args.algorithms if args.hidden else ["td3"]:
        scaling = two_threads(algorithm, wide_wirings(algorithm, args.sparsity) if args.hidden else paper)
        cells = [f"{name} {low:.2f} ({median:.2f})×" for name, (low, median) in scaling.items()]
        print(f"\ntwo threads against one ({algorithm.upper()}), low (median): " + ", ".join(cells))
        report["two threads" + (f" {algorithm}" if args.hidden else "")] = scaling
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
