"""What the commands that look at a run share."""

from __future__ import annotations

from pathlib import Path

from rewirl.errors import Refused
from rewirl.policies import Policy
from rewirl.storage.folder import RunFolder, policy_file


def policy_at(path: Path, best: bool) -> Policy:
    """The policy in a file, or the last or best one of a run folder."""
    return Policy.load(file_at(path, best))


def file_at(path: Path, best: bool) -> Path:
    """Where that policy is."""
    place = RunFolder(path)
    if best and place.config.exists() and place.policy.exists() and not place.best_policy.exists():
        raise Refused(f"{path} has no best policy, because it was never evaluated: leave out --best for its last one")
    return policy_file(path, best=best)


def without_wrappers(policy: Policy) -> str | None:
    """What to say when a task is made by its name, and the policy was trained in more than that."""
    if not policy.around:
        return None
    return (
        f"note: it was trained with {policy.around} around the task, which only Python knows: here the task is without"
    )
