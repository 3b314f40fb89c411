"""about.json: versions, machine and command of a run.

A list, because a run may be resumed on another machine: the first entry describes the start, each other one a resume
that changed something. No result depends on it.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rewirl import nn
from rewirl.files import to_json, write_aside
from rewirl.untrusted import from_json, read_bytes

PACKAGES = ("rewirl", "numpy", "gymnasium", "mujoco")


@dataclass(frozen=True)
class About:
    """One session of a run."""

    step: int
    """Step at which it started."""
    command: str
    """Command, as typed."""
    versions: dict[str, str]
    machine: dict[str, str]
    environment: str | None = None
    """Wrappers of the task, from `wrappers_of`; None if not recorded."""

    @classmethod
    def here(cls, step: int, environment: str | None = None) -> About:
        """This process.

        >>> sorted(About.here(0).machine)
        ['cores', 'memory', 'processor', 'system']
        """
        return cls(step, shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), versions(), machine(), environment)


def versions() -> dict[str, str]:
    """Versions of everything that affects results."""
    packages = {name: found for name in PACKAGES if (found := _installed(name))}
    return {**packages, "python": platform.python_version(), "instruction set": nn.isa(), "core": nn.sources}


def machine() -> dict[str, str]:
    """Properties of the machine that affect wall-clock time."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.1f} GiB",
        "system": platform.platform(terse=True),
    }


def write(path: Path, step: int, environment: str) -> None:
    """Adds this session, unless it equals the previous one."""
    now, known = About.here(step, environment), read(path)
    if not known or replace(known[-1], step=step) != now:
        write_aside(path, to_json([asdict(session) for session in (*known, now)]))


def read(path: Path) -> list[About]:
    """All sessions; empty if the file is missing or invalid."""
    try:
        return [_session(given) for given in from_json(read_bytes(path))]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _session(given: dict[str, Any]) -> About:
    versions, machine = ({str(k): str(v) for k, v in dict(given[name]).items()} for name in ("versions", "machine"))
    around = given.get("environment")
    return About(int(given["step"]), str(given["command"]), versions, machine, None if around is None else str(around))


def processor() -> str:
    """Name of the processor, if the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
