"""What the commands that look at a run share."""

from __future__ import annotations

from pathlib import Path

from rewirl.deploy import Policy
from rewirl.training.folder import policy_file


def policy_at(path: Path, best: bool) -> Policy:
    """The policy in a file, or the last or best one of a run folder."""
    return Policy.load(policy_file(path, best=best))
