"""What the arithmetic allows: how near to this core's peak an update would have to run to be as fast as was wanted.

    python benchmarks/update.py --peers-python /opt/peers/bin/python --json update.json
    python benchmarks/bounds.py update.json              # on the same machine

For every ratio that was aimed at: what an update may take (the peer's time divided by the ratio), what it takes, and
how much of the core's peak the products with weights need in either. Adam, the targets' averages and pruning, and
Python are measured and counted as they are (`rest`); everything else (activations, losses, batches, copies of weights)
counts as free, so that the shares are less than what is truly needed. Beside them stands the share at which MKL makes
the dense products alone, as update.py measures it. A share above 100% cannot be reached by any program. The peak is
measured by peak.cpp, which needs a compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from peers import DELAY
from rewirl.agents import ActorCritic, SACOptions, TD3Options, Transitions, WiringOptions
from rewirl.nn import Network, update_each
from rewirl.topology import SET, Dense
from update import N_ACT, N_OBS, PAPER, make_agent, timed

GOALS: dict[str, list[tuple[str, str, float]]] = {
    "td3": [
        ("rewirl dense", "torch-eager", 2.5),
        ("rewirl λ=(7, 64)", "stable-baselines3", 4),
        ("rewirl λ=(7, 64)", "published-ds-td3", 10),
        ("rewirl λ=(7, 64)", "sbx", 2),
        ("rewirl λ=(7, 64)", "rltools", 1.5),
        ("rewirl λ=(7, 64), blocks of 4", "rltools", 2.5),
        ("rewirl λ=(7, 64), blocks of 4", "dense-matmuls", 1),
        ("rewirl 90%", "rltools", 5),
    ],
    "sac": [
        ("rewirl λ=(12, 80)", "stable-baselines3", 4),
        ("rewirl λ=(12, 80)", "rltools", 1.5),
    ],
}
"""Who was to be how many times as fast as whom."""


@dataclass
class Work:
    """One update of an agent."""

    products: float
    """Floating-point operations of products with weights that some gradient or target needs."""
    rest: float
    """Seconds of Adam and of the targets' averages and pruning."""


def wiring_of(name: str, algorithm: str) -> WiringOptions:
    """The wiring of a contender of update.py, by its name."""
    rule = SET(eta=0.05, every=1000)
    block = 4 if "blocks" in name else 1
    if "dense" in name:
        return WiringOptions(rule=Dense())
    if "λ" in name:
        return WiringOptions(rule=rule, lambdas=PAPER[algorithm], block=block)
    sparsity = float(name.split()[1].rstrip("%,")) / 100
    return WiringOptions(rule=rule, sparsity=sparsity, block=block)


def work_of(algorithm: str, wiring: WiringOptions) -> Work:
    agent = make_agent(algorithm, wiring)
    for net in agent.networks.values():
        net.adapt(wiring.rule, agent.rng)  # targets have links of their own from then on, and prune
    batch = Transitions(N_OBS, N_ACT, agent.options.batch)
    width = Transitions.width(N_OBS, N_ACT)
    records = np.random.default_rng(2).standard_normal((agent.options.batch, width), dtype=np.float32)
    batch.fill(records, np.arange(len(records)))
    for _ in range(4):
        agent.update(batch)
    return Work(products(agent), rest(agent))


def products(agent: ActorCritic) -> float:
    """2·N operations for each link and pass; gradients at a network's own inputs only where actions are."""
    actor, critic = agent.actor, agent.critics[0]
    back, back_critic = behind_first(actor), behind_first(critic)
    action_links = int(np.count_nonzero(critic.links(0).inputs >= N_OBS)) * critic.links(0).block
    targets = actor.count + 2 * critic.count
    critics = 2 * (2 * critic.count + back_critic)
    through = (1 if agent.algorithm == "td3" else 2) * (critic.count + back_critic + action_links)
    per_actor_update = 2 * actor.count + back + through
    return 2.0 * agent.options.batch * (targets + critics + per_actor_update / DELAY[agent.algorithm])


def behind_first(net: Network) -> int:
    """Links of all layers whose inputs need gradients of their own."""
    return net.count - net.links(0).count


def rest(agent: ActorCritic) -> float:
    assert isinstance(agent.options, TD3Options | SACOptions)
    adam, tau = agent.options.adam, agent.options.tau
    steps = {name: low(partial(net.step, adam)) for name, net in agent.networks.items()}
    actor = steps.pop("actor")
    targets = low(lambda: update_each(list(agent.targets.values()), tau))
    return sum(steps.values()) + (actor + targets) / DELAY[agent.algorithm]


def low(call: Callable[[], object]) -> float:
    """The low decile of its seconds."""
    return float(np.quantile(timed(call, 200), 0.1))


def peak() -> float:
    """GFLOP/s of this core at most."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "peak"
        compiler = os.environ.get("CXX", "c++")
        source = Path(__file__).with_name("peak.cpp")
        flags = ["-O2", "-std=c++17", "-march=native", "-ffp-contract=fast"]
        subprocess.run([compiler, *flags, source, "-o", program], check=True)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="what update.py wrote with --json, on this machine")
    parser.add_argument("--core", type=int, default=1, help="core that everything is pinned to")
    args = parser.parse_args()

    os.sched_setaffinity(0, [args.core])
    report: dict[str, Any] = json.loads(args.report.read_text())
    most = peak()
    print(f"{report['date']}, {report['machine']}, {report['isa']} kernels; peak of a core {most:.1f} GFLOP/s")
    print(f"{'':30} {'against':>18} {'goal':>5} {'reached':>7} {'may take':>8} {'takes':>7} {'rest':>6} ", end="")
    print(f"{'needed':>7} {'reached':>8} {'MKL':>5}   (ms; shares of the peak)")
    for algorithm, goals in GOALS.items():
        found = {}
        for contender in report.get(algorithm, []):  # peers have their versions in their names
            name = contender["name"]
            found[name if name.startswith("rewirl") else name.partition(" ")[0]] = contender
        dense = products(make_agent(algorithm, WiringOptions()))
        for name, peer, goal in goals:
            if peer in found:
                print(row(name, peer, goal, found, work_of(algorithm, wiring_of(name, algorithm)), dense, most * 1e9))


def row(name: str, peer: str, goal: float, found: dict[str, Any], work: Work, dense: float, most: float) -> str:
    takes, theirs = found[name]["low"], found[peer]["low"]
    may, rest = theirs / goal, work.rest + found[name]["outside kernels"] * takes
    needed, reached = (
        f"{work.products / (seconds - rest) / most:.0%}" if seconds > rest else "never" for seconds in (may, takes)
    )
    mkl = f"{dense / found['dense-matmuls']['low'] / most:.0%}" if "dense-matmuls" in found else ""
    times = f"{may * 1e3:8.2f} {takes * 1e3:7.2f} {rest * 1e3:6.2f}"
    return f"{name[7:]:30} {peer:>18} {goal:5.1f} {theirs / takes:7.2f} {times} {needed:>7} {reached:>8} {mkl:>5}"


if __name__ == "__main__":
    main()
