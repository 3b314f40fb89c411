"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def available_cores() -> int:
    """Cores that this process may use, by its affinity and the CPU quota of its cgroup."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota()
    return affinity if math.isinf(quota) else max(1, min(affinity, math.ceil(quota)))


def cgroup_quota(root: Path = Path("/")) -> float:
    """CPU quota of the cgroups (version 1 or 2) of this process, in cores; infinite without a limit."""
    return min((_quota(folder) for folder in _folders(root)), default=math.inf)


def _folders(root: Path) -> Iterator[Path]:
    """Folders that may hold a quota of this process: its cgroup and all parents."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        # In a container the path may be that of the host; the container's own cgroup is then the mount itself.
        group = PurePosixPath(path)
        for folder in (group, *group.parents):
            yield mount / folder.relative_to("/")


def _quota(folder: Path) -> float:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return math.inf if quota == "max" or int(quota) < 0 else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
