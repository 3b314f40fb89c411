"""Available memory, and readable amounts of memory."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> int:
    """Bytes of memory that this process may still allocate."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_PHYS_PAGES") * page
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
        group = Path("/sys/fs/cgroup")  # a container's limit
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            free = min(free, int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return free


def shown_bytes(count: int) -> str:
    """
    >>> shown_bytes(168_000_000)
    '168 MB'
    """
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
