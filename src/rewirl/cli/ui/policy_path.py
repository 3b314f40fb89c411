"""Finding the policy that a command works on."""

from __future__ import annotations

from pathlib import Path

from rewirl.errors import Refused
from rewirl.policies import Policy
from rewirl.storage.folder import RunFolder, policy_file


def policy_at(path: Path, best: bool) -> Policy:
    """The policy in a file, or the latest or best one of a run folder."""
    return Policy.load(file_at(path, best))


def file_at(path: Path, best: bool) -> Path:
    """Path of that policy."""
    place = RunFolder(path)
    if best and place.config.exists() and place.policy.exists() and not place.best_policy.exists():
        raise Refused(
            f"{path} has no best policy, because it was never evaluated: leave out --best to use its latest one"
        )
    return policy_file(path, best=best)


def without_wrappers(policy: Policy) -> str | None:
    """A note if the policy was trained with wrappers that the named task does not have."""
    if not policy.around:
        return None
    return f"note: it was trained with the wrappers {policy.around}, which only Python knows: here the task has none"
