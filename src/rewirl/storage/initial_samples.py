"""Initial samples: a learned policy that acts in the first steps, so that the replay begins with what it sees and does.

A config names the policy by a path when a run is asked for, and by the SHA-256 of its file from then on: the run keeps
a copy, and what becomes of the original changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rewirl.agents import TD3Options
from rewirl.errors import Failed
from rewirl.files import sha256, write_aside
from rewirl.policies.policy import Policy
from rewirl.storage.folder import RunFolder, inspect_run, policy_file
from rewirl.training.config import RunConfig
from rewirl.training.initial_policy import InitialPolicy

BY_CONTENT = "sha256:"
"""Begins the name of a policy that is given by its content."""


@dataclass(frozen=True)
class GivenPolicy:
    """An initial policy that was named by a path."""

    path: str
    """A run folder or policy file."""
    content: bytes
    """Of the policy file."""
    acting: InitialPolicy


def pinned(config: RunConfig) -> tuple[RunConfig, GivenPolicy | None]:
    """The config with its initial policy named by content, and that policy when it was named by a path."""
    given = config.initial_samples
    if given is None or given.startswith(BY_CONTENT):
        return config, None
    file = policy_file(Path(given))
    policy = GivenPolicy(given, file.read_bytes(), InitialPolicy(Policy.load(file), _noise(config)))
    return replace(config, initial_samples=BY_CONTENT + sha256(policy.content)), policy


def as_begun(place: RunFolder, config: RunConfig) -> RunConfig:
    """`pinned`, for a run that goes on. The path that it began with means the policy that was there then, of which the
    run has a copy: what has become of the original since changes nothing."""
    given = config.initial_samples
    if given is None or given.startswith(BY_CONTENT) or (known := inspect_run(place.path).config) is None:
        return pinned(config)[0]
    try:
        same = place.initial_source.read_text("utf-8") == str(Path(given).absolute())
    except (OSError, ValueError):
        same = not Path(given).exists()
    return replace(config, initial_samples=known.initial_samples) if same else pinned(config)[0]


def keep(place: RunFolder, policy: GivenPolicy) -> None:
    """Copies it into a run folder, with the path that it came from."""
    write_aside(place.initial_policy, policy.content)
    write_aside(place.initial_source, str(Path(policy.path).absolute()).encode("utf-8", "surrogateescape"))


def kept(place: RunFolder, config: RunConfig) -> InitialPolicy | None:
    """The copy in a run folder, if the run has one; it must be what was copied."""
    if config.initial_samples is None:
        return None
    file = place.initial_policy
    try:
        found = BY_CONTENT + sha256(file.read_bytes())
    except OSError as error:
        raise Failed(f"{file} cannot be read ({error.strerror}): put the policy of initial_samples there") from None
    if found != config.initial_samples:
        raise Failed(
            f"{file} is not the policy that the run began with: "
            f"put the one there whose SHA-256 is {config.initial_samples.removeprefix(BY_CONTENT)}"
        )
    return InitialPolicy(Policy.load(file), _noise(config))


def _noise(config: RunConfig) -> float:
    """What the run itself adds to actions later; an algorithm without such a number takes TD3's."""
    return float(getattr(config.options, "exploration_noise", TD3Options.exploration_noise))
