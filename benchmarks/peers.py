"""Other libraries as contenders of the benchmarks: each in a process of its own, asked for one round at a time.

A process of its own, because thread pools, JIT compilers and two copies of MKL disturb each other, and because a peer
may live in another environment. One round at a time, because on a shared machine only ratios within one run count: the
benchmark interleaves short rounds of all contenders, and a peer that is not asked sleeps.

    with Peer("update", "stable-baselines3", "td3", python="/opt/peers/bin/python", core=1) as peer:
        print(peer.absent or peer.round(100))

Or by hand: `python benchmarks/peers.py update rltools td3 --core 1 --rounds 5`. Without `--rounds` it is the server that
`Peer` talks to: it reads `round 50` or `quit`, a line each, and answers each round with a line of JSON.

Three modes: `update` (one gradient update, batch sampling included), `loop` (act, environment step, store, update),
`act` (one deterministic action). Seconds are per update, step or action.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TextIO

Mode = Literal["update", "loop", "act"]
Algorithm = Literal["td3", "sac"]
MODES: tuple[Mode, ...] = ("update", "loop", "act")
ALGORITHMS: tuple[Algorithm, ...] = ("td3", "sac")
PEERS = {
    "dense-matmuls": "torch",
    "rltools": "rltools",
    "sbx": "sbx-rl",
    "torch-eager": "torch",
    "stable-baselines3": "stable-baselines3",
}
"""Every peer, with the distribution whose version stands for it."""

DELAY: dict[Algorithm, int] = {"td3": 2, "sac": 1}
"""Updates per actor update. An update with the actor costs far more than one without, so a median over single TD3
updates would be neither: a sample is the mean over one such cycle. Time the contenders of one table alike."""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


class PeerError(RuntimeError):
    """A peer that had started gave no answer."""


class Peer:
    """A peer in its process. If it cannot start, `absent` says why; otherwise it is warm when the constructor returns."""

    def __init__(
        self, mode: Mode, name: str, algorithm: Algorithm, python: str = sys.executable, core: int | None = None
    ) -> None:
        self.name, self.mode, self.algorithm = name, mode, algorithm
        self.absent: str | None = None
        self.version = ""
        self.memory_mb: float | None = None
        """Most memory that the process has held so far, libraries included."""
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")
        command = [python, __file__, mode, name, algorithm, *([] if core is None else ["--core", str(core)])]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, bufsize=1
            )
            ready = self._answer()
        except (OSError, PeerError) as error:
            self.absent = str(error)
        else:
            self.absent, self.version = ready.get("absent"), ready.get("version", "")
        if self.absent:
            self.close()

    def round(self, count: int) -> list[float]:
        """Do `count` updates, steps or actions. Gives seconds per one of them: a sample per action, per cycle of
        `DELAY` updates, or a single mean over all steps of the loop, where episodes end at uneven times."""
        if self._process is None or self._process.stdin is None:
            raise PeerError(f"{self.name} is not running: {self.absent or 'it was closed'}")
        try:
            self._process.stdin.write(f"round {count}\n")
            answer = self._answer()
        except BrokenPipeError as error:
            raise PeerError(f"{self.name} ended: {self._last_words()}") from error
        self.memory_mb = answer["memory_mb"]
        return [float(seconds) for seconds in answer["seconds"]]

    def close(self) -> None:
        """End the process. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.communicate()
        self._errors.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"{self.name} ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f"exit code {code}" + (f", {lines[-1]}" if lines else "")


def memory_mb() -> float | None:
    """Peak resident memory. Not from getrusage: through a fork, its peak begins at the parent's."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def serve(mode: Mode, name: str, algorithm: Algorithm, commands: Iterable[str], answers: TextIO) -> None:
    """Build the peer, warm it up, say so, then answer the commands."""

    def answer(**content: object) -> None:
        print(json.dumps(content), file=answers, flush=True)

    try:
        import peer_impls

        contender = peer_impls.build(name, algorithm, mode)
        samples = {"update": _time_updates, "loop": _time_loop, "act": _time_acts}[mode]
        samples(contender, algorithm, 20)
    except Exception as error:  # whatever keeps a peer from running makes it absent, and must not end the benchmark
        answer(peer=name, absent=f"{type(error).__name__}: {error}")
        return
    answer(peer=name, mode=mode, algorithm=algorithm, version=version(PEERS[name]))
    for command in commands:
        word, _, count = command.strip().partition(" ")
        if word != "round":
            return
        answer(seconds=samples(contender, algorithm, int(count)), memory_mb=memory_mb())


def _time_updates(contender: Any, algorithm: Algorithm, count: int) -> list[float]:
    delay, seconds = DELAY[algorithm], []
    for _ in range(max(1, count // delay)):
        start = perf_counter()
        for _ in range(delay):
            contender.update()
        seconds.append((perf_counter() - start) / delay)
    return seconds


def _time_loop(contender: Any, algorithm: Algorithm, count: int) -> list[float]:
    start = perf_counter()
    contender.run(count)
    return [(perf_counter() - start) / count]


def _time_acts(contender: Any, algorithm: Algorithm, count: int) -> list[float]:
    seconds = []
    for i in range(count):
        observation = contender.observations[i % len(contender.observations)]
        start = perf_counter()
        contender.act(observation)
        seconds.append(perf_counter() - start)
    return seconds


def main() -> None:
    """Serve one peer on standard input and output."""
    parser = argparse.ArgumentParser(description="Time one peer library.")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("--core", type=int, help="the one core to run on")
    parser.add_argument("--rounds", type=int, help="do this many rounds by itself instead of reading commands")
    parser.add_argument("--size", type=int, default=100, help="updates, steps or actions in each of those rounds")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)  # before anything heavy is imported: most libraries read these only once
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    # Libraries print to standard output, from C++ too: keep that for the answers alone, and send the rest to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    commands = sys.stdin if options.rounds is None else [f"round {options.size}"] * options.rounds
    serve(options.mode, options.peer, options.algorithm, commands, answers)


if __name__ == "__main__":
    main()
