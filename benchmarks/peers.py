"""Other libraries as contenders of the benchmarks: each in a process of its own, asked for a round at a time.

A process of its own, because thread pools, JIT compilers and two copies of MKL disturb each other, and
because a peer may live in another environment. A round at a time, because on a shared machine only ratios
within one run count: the benchmark interleaves short rounds of all, and a peer that is not asked sleeps.

    with Peer("update", "stable-baselines3", "td3", python="/opt/peers/bin/python", core=1) as peer:
        print(peer.absent or peer.round(100))

Or by hand: `python benchmarks/peers.py update rltools td3 --core 1 --rounds 5`. Without `--rounds` it is the
server that `Peer` talks to: it reads `round 50` or `quit`, and answers each round with a line of JSON.

Modes: `update` (one gradient update, batch sampling included), `loop` (act, environment step, store, update),
`act` (one deterministic action). Seconds are per update, step or action.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TextIO

Mode = Literal["update", "loop", "act"]
Algorithm = Literal["td3", "sac"]

PEERS = {
    "dense-matmuls": "torch",
    "rltools": "rltools",
    "sbx": "sbx-rl",
    "torch-eager": "torch",
    "stable-baselines3": "stable-baselines3",
    "published-ds-td3": "torch",
}
"""Every peer, with the distribution whose version stands for it."""

DELAY: Mapping[str, int] = {"td3": 2, "sac": 1}
"""Updates per actor update. An update with the actor costs far more than one without, so that a median over
single TD3 updates would be neither: a sample is the mean over one such cycle. Time all of a table alike."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """What every benchmark that has peers must be told."""
    parser.add_argument("--core", type=int, default=1, help="core that everything is pinned to")
    parser.add_argument("--peers-python", default=sys.executable, help="interpreter that has the other libraries")
    parser.add_argument("--published", type=Path, help="a clone of the repository of the paper's own DS-TD3")


class PeerError(RuntimeError):
    """A peer gave no answer."""


class Peer:
    """A peer in its process: warm once constructed, or, if it cannot start, `absent` says why."""

    def __init__(
        self,
        mode: Mode,
        name: str,
        algorithm: Algorithm,
        python: str = sys.executable,
        core: int | None = None,
        published: Path | None = None,
    ) -> None:
        self.name, self.mode, self.algorithm = name, mode, algorithm
        self.version = ""
        self.absent: str | None = None
        self.memory_mb: float | None = None
        """Most memory that the process has held by the end of the last round, libraries included."""
        self._process: subprocess.Popen[str] | None = None
        self._command = [python, str(Path(__file__).resolve()), mode, name, algorithm]
        self._command += [] if core is None else ["--core", str(core)]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        env = {**os.environ, **({"PUBLISHED_DS_TD3": str(published.resolve())} if published else {})}
        try:
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=null, text=True, env=env)
            ready = self._ask("")
        except (OSError, PeerError) as error:
            self.absent = str(error)
        else:
            self.absent, self.version = ready.get("absent"), ready.get("version", "")
        if self.absent:
            self.close()

    def round(self, count: int) -> list[float]:
        """Do `count` updates, steps or actions; give seconds per one of them: a sample per action, one per
        cycle of `DELAY` updates, or for the loop a single mean, since its episodes end at uneven times."""
        answer = self._ask(f"round {count}\n")
        self.memory_mb = answer["memory_mb"]
        return [float(seconds) for seconds in answer["seconds"]]

    def close(self) -> None:
        """End the process. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.communicate()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str) -> dict[str, Any]:
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise PeerError(f"{self.name} is not running: {self.absent or 'it was closed'}")
        try:
            self._process.stdin.write(command)
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError) as error:  # it ended, and an empty line came back
            code, by_hand = self._process.wait(), shlex.join(self._command)
            raise PeerError(f"{self.name} ended with exit code {code}; to see why: {by_hand}") from error
        return answer


def serve(mode: Mode, name: str, algorithm: Algorithm, commands: Iterable[str], answers: TextIO) -> None:
    """Build the peer, warm it up, say so, then answer the commands."""

    def answer(**content: object) -> None:
        print(json.dumps(content), file=answers, flush=True)

    try:
        import peer_impls

        contender = peer_impls.build(name, algorithm, mode)
        _samples(contender, mode, algorithm, 20)
    except Exception as error:  # whatever keeps one peer from running must not end the benchmark
        answer(peer=name, absent=f"{type(error).__name__}: {error}")
        return
    answer(peer=name, mode=mode, algorithm=algorithm, version=version(PEERS[name]))
    for command in commands:
        word, _, count = command.strip().partition(" ")
        if word != "round":
            return
        answer(seconds=_samples(contender, mode, algorithm, int(count)), memory_mb=_memory_mb())


def _samples(contender: Any, mode: Mode, algorithm: Algorithm, count: int) -> list[float]:
    per_sample = {"update": DELAY[algorithm], "loop": count, "act": 1}[mode]
    seconds = []
    for i in range(max(1, count // per_sample)):
        observation = contender.observations[i % len(contender.observations)] if mode == "act" else None
        start = perf_counter()
        if mode == "update":
            for _ in range(per_sample):
                contender.update()
        elif mode == "loop":
            contender.run(count)
        else:
            contender.act(observation)
        seconds.append((perf_counter() - start) / per_sample)
    return seconds


def _memory_mb() -> float | None:
    """Peak resident memory. Not from getrusage: across fork and exec, its peak begins at the parent's."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def main() -> None:
    """Serve one peer on standard input and output."""
    parser = argparse.ArgumentParser(description="Time one peer library.")
    parser.add_argument("mode", choices=["update", "loop", "act"])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("algorithm", choices=DELAY)
    parser.add_argument("--core", type=int, help="the one core to run on")
    parser.add_argument("--rounds", type=int, help="do so many rounds instead of reading commands")
    parser.add_argument("--size", type=int, default=100, help="updates, steps or actions in each of them")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)  # before anything heavy is imported: most libraries read these only once
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    # Libraries print, from C++ too: keep standard output for the answers alone and send the rest to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.chdir(tempfile.gettempdir())  # MuJoCo leaves a log of its warnings where it runs
    commands = sys.stdin if options.rounds is None else [f"round {options.size}"] * options.rounds
    serve(options.mode, options.peer, options.algorithm, commands, answers)


if __name__ == "__main__":
    main()
