"""What the commands that look at a run share."""

from __future__ import annotations

from pathlib import Path

from rewirl.deploy import Policy
from rewirl.training.folder import policy_file


def policy_at(path: Path, best: bool) -> Policy:
    """The policy in a file, or the last or best one of a run folder."""
    return Policy.load(policy_file(path, best=best))


def without_wrappers(policy: Policy) -> str | None:
    """What to say when a task is made by its name, and the policy was trained in more than that."""
    wrappers = policy.metadata.get("wrappers")
    if not wrappers:
        return None
    return f"note: it was trained with the wrappers {wrappers}, which only Python knows: here the task is without them"
