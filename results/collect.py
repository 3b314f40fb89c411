"""Copies what is small of each run below a folder: python results/collect.py RUNS results/paper-td3

Config, evaluations, diagnostics, and versions and machine where they are known, are text files of some kilobytes;
checkpoints, replays and policies stay where they are. A run that goes on later is copied over what was there of it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rewirl.storage import list_runs

SMALL = ("config.toml", "evaluations.csv", "diagnostics.csv", "status.json", "about.json")


def collect(runs: Path, out: Path) -> int:
    """How many runs were copied."""
    found = list_runs(runs)
    for info in found:
        to = out / info.folder.relative_to(runs)
        to.mkdir(parents=True, exist_ok=True)
        for name in SMALL:
            if (info.folder / name).exists():
                shutil.copyfile(info.folder / name, to / name)
    return len(found)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"{collect(Path(sys.argv[1]), Path(sys.argv[2]))} runs copied to {sys.argv[2]}")
