"""What the commands that look at a run share."""

from __future__ import annotations

from pathlib import Path

from rewirl.deploy import Policy
from rewirl.errors import Refused

LAST, BEST = "policy.safetensors", "best_policy.safetensors"


def policy_at(path: Path, best: bool) -> Policy:
    """The policy in a file, or the last or best one of a run folder."""
    file = path / (BEST if best else LAST) if path.is_dir() else path
    if path.is_dir() and not (path / "config.toml").exists():
        raise Refused(f"{path} is no run folder: it has no config.toml (rewirl list shows where runs are)")
    if not file.exists():
        what = f"{path} has no policy yet" if path.is_dir() else f"there is no {path}"
        raise Refused(f"{what}: give a run folder with a trained policy, or a policy.safetensors")
    return Policy.load(file)
