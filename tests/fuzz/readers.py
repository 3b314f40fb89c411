"""Every reader of bytes that anyone may have written, as a function of one file's content.

A reader returns or raises one of its errors. Anything else, a crash, a hang or much memory is a fault. As a program,
`python tests/fuzz/readers.py SECONDS` (`make fuzz`) tries new inputs for that long and stores those that fail.
Readers that end with "resealed" get each input with a correct hash: whoever can write a file can also write its hash.
"""

from __future__ import annotations

import hashlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from rewirl.errors import Refused
from rewirl.experiments import parse_grid
from rewirl.experiments.analysis.trained_runs import read_evaluations
from rewirl.experiments.tune.search_space import Space
from rewirl.experiments.tune.tuning import Tuning
from rewirl.learners.agent_file import read_agent
from rewirl.policies import Policy, sealed_file
from rewirl.storage import checkpoint, wiring_log
from rewirl.storage.checkpoint import Damaged
from rewirl.storage.folder import RunFolder, inspect_run
from rewirl.storage.lock import holder_of
from rewirl.storage.logs.tables import parse, returns
from rewirl.storage.provenance import read as read_about
from rewirl.training import RunConfig
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow
from rewirl.untrusted import decoded, from_json, from_toml

CORPUS = Path(__file__).parent / "corpus"
SEARCHED = {"method": "ds-td3", "task": "Pendulum-v1", "steps": 500, "eval_every": 100, "random_steps": 100}
SPACE = Space(((0.5, 2.0), (1.0, 3.0)), (0.05, 0.3), (20, 50))
"""A search, for its journal."""
ATTACKS = Path(__file__).parents[1] / "attacks"
ALLOWED = (ValueError, Refused, Damaged)
SECONDS, MEMORY = 20, 1 << 30
"""What reading one small input may take, at most."""
WORDS = (
    b"a." * 99,
    b"1e999",
    b"-1",
    b"NaN",
    b"9" * 400,
    b"[[[[",
    b"{",
    b'"',
    b",",
    b"\n",
    b"\0",
    b"\xff",
    b"null",
    b"true",
    b"=",
)


def _of_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """A reader of a path, as one of bytes."""

    def reader(content: bytes) -> object:
        (FOLDER / name).write_bytes(content)
        return read(FOLDER / name)

    return reader


def _run_folder(content: bytes) -> object:
    """Files that are never a reason to refuse a run: whatever is in them, there is an answer."""
    for name in ("status.json", "lock", "about.json", "evaluations.csv"):
        (FOLDER / name).write_bytes(content)
    (FOLDER / "config.toml").write_text('method = "td3"\ntask = "Pendulum-v1"\n')
    return inspect_run(FOLDER), holder_of(FOLDER), read_about(FOLDER / "about.json"), RunFolder(FOLDER).read_status()


class _Fits:
    """A hash that no hash differs from."""

    def __ne__(self, other: object) -> bool:
        return False


def _resealed(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """A reader of sealed files that finds every seal correct."""

    def reader(content: bytes) -> object:
        with mock.patch.object(sealed_file, "_sha256", return_value=_Fits()):
            return read(content)

    return reader


def _manifest_resealed(content: bytes) -> object:
    text = content.rpartition(b"# ")[0]
    return checkpoint._entries(Path("MANIFEST"), text + f"# {checkpoint.sha256(text)}\n".encode())


def _journal(content: bytes) -> object:
    """The journal of a search, opened by the same search."""
    folder = FOLDER / "search"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "study.journal").write_bytes(content)
    tuning = Tuning(SEARCHED, SPACE, folder, mock.Mock(), trials=1)
    tuning._lock.release()
    return tuning


# In memory, where there is such a place. Removed at the end.
_made = tempfile.TemporaryDirectory(prefix="rewirl-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
FOLDER = Path(_made.name)
READERS: dict[str, Callable[[bytes], object]] = {
    "policy": _of_file(Policy.load, "policy.safetensors"),
    "agent": _of_file(read_agent, "agent.safetensors"),
    "policy-resealed": _resealed(_of_file(Policy.load, "policy.safetensors")),
    "agent-resealed": _resealed(_of_file(read_agent, "agent.safetensors")),
    "manifest-resealed": _manifest_resealed,
    "journal": _journal,
    "manifest": lambda content: checkpoint._entries(Path("MANIFEST"), content),
    "values": lambda content: checkpoint.parse_values("run.json", content),
    "arrays": lambda content: checkpoint.parse_arrays("state.safetensors", content),
    "wiring": _of_file(wiring_log.read, "wiring.bin"),
    "evaluations": lambda content: (parse(EvaluationRow, content), returns(content), read_evaluations(content)),
    "diagnostics": lambda content: parse(DiagnosticsRow, content),
    "progress": lambda content: parse(Episode, content),
    "json": from_json,
    "folder": _run_folder,
    "config": lambda content: RunConfig.from_toml(decoded(content)),
    "grid": lambda content: parse_grid(decoded(content), "grid").runs(),
    "toml": lambda content: from_toml(decoded(content)),
}


NEVER_REFUSES = ("folder",)


def seeds(reader: str) -> list[bytes]:
    """The stored inputs of a reader: a valid one first."""
    name = reader.removesuffix("-resealed")
    folders = [CORPUS / name, *(folder for folder in [ATTACKS / name] if folder.is_dir())]
    return [path.read_bytes() for folder in folders for path in sorted(folder.iterdir())]


def mutations(stored: list[bytes], rng: random.Random) -> Iterator[bytes]:
    """Inputs that are nearly right: parts cut, repeated, replaced, or joined from two of them."""
    while True:
        content = bytearray(rng.choice(stored))
        for _ in range(rng.choice((1, 1, 2, 5))):
            begin = rng.randrange(len(content) + 1)
            end = min(len(content), begin + rng.choice((0, 1, 4, 40)))
            new = rng.choice((b"", rng.randbytes(rng.choice((1, 4))), rng.choice(WORDS), bytes(content[begin:end]) * 2))
            content[begin:end] = new
        if rng.random() < 0.1:
            other = rng.choice(stored)
            content = content[: len(content) // 2] + other[len(other) // 2 :]
        yield bytes(content)


def fault(reader: str, content: bytes) -> Exception | None:
    """What a reader raised that it must not."""
    try:
        with _in_time():
            READERS[reader](content)
    except Exception as error:
        return None if isinstance(error, ALLOWED) and reader not in NEVER_REFUSES else error
    return None


class Hung(Exception):
    """A reader took too long."""


@contextmanager
def _in_time() -> Iterator[None]:
    def hung(*_: object) -> None:
        raise Hung(f"it takes more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def little_memory() -> Iterator[None]:
    """A MemoryError for a reader that allocates what an input claims."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main(seconds: float) -> int:
    found = 0
    for reader in READERS:
        stored, rng, tried = seeds(reader), random.Random(time.time_ns()), 0
        until = time.monotonic() + seconds / len(READERS)
        for content in mutations(stored, rng):
            if time.monotonic() > until:
                break
            tried += 1
            if error := fault(reader, content):
                found += 1
                path = CORPUS / reader.removesuffix("-resealed") / f"fault-{hashlib.sha256(content).hexdigest()[:12]}"
                path.write_bytes(content)
                print(f"{path}: {type(error).__name__}: {error}")
        print(f"{reader}: {tried} inputs")
    return 1 if found else 0


if __name__ == "__main__":
    with little_memory():
        sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0))
