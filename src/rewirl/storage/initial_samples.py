"""Initial samples: a trained policy acts in the first steps, so that the replay starts with its samples.

A new config names the policy by a path, a stored one by the SHA-256 of its file. The run keeps a copy, so later changes
of the original have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rewirl.agents import DQNOptions, TD3Options
from rewirl.errors import Failed
from rewirl.files import sha256, write_aside
from rewirl.policies.policy import Policy
from rewirl.storage.folder import RunFolder, inspect_run, policy_file
from rewirl.training.config import RunConfig
from rewirl.training.first_steps import InitialPolicy
from rewirl.untrusted import MOST_POLICY, read_bytes, read_text, reason

BY_CONTENT = "sha256:"
"""Prefix of a policy that is identified by its content."""


@dataclass(frozen=True)
class GivenPolicy:
    """An initial policy that was named by a path."""

    path: str
    """A run folder or policy file."""
    content: bytes
    """SHA-256 of the policy file."""
    acting: InitialPolicy


def pinned(config: RunConfig) -> tuple[RunConfig, GivenPolicy | None]:
    """The config with its initial policy identified by content, and the policy itself if it was given by a path."""
    given = config.initial_samples
    if given is None or given.startswith(BY_CONTENT):
        return config, None
    file = policy_file(Path(given))
    acting = InitialPolicy(Policy.load(file), _noise(config))  # first: it refuses pipes and folders
    policy = GivenPolicy(given, read_bytes(file, MOST_POLICY), acting)
    return replace(config, initial_samples=BY_CONTENT + sha256(policy.content)), policy


def as_begun(place: RunFolder, config: RunConfig) -> RunConfig:
    """`pinned`, for a run that is resumed. The original path means the policy at the start of the run, of
    which the run has a copy; later changes of the original have no effect."""
    given = config.initial_samples
    if given is None or given.startswith(BY_CONTENT) or (known := inspect_run(place.path).config) is None:
        return pinned(config)[0]
    try:
        same = read_text(place.initial_source) == str(Path(given).absolute())
    except (OSError, ValueError):
        same = not Path(given).exists()
    return replace(config, initial_samples=known.initial_samples) if same else pinned(config)[0]


def keep(place: RunFolder, policy: GivenPolicy) -> None:
    """Copies it into a run folder and records its origin."""
    write_aside(place.initial_policy, policy.content)
    write_aside(place.initial_source, str(Path(policy.path).absolute()).encode("utf-8", "surrogateescape"))


def kept(place: RunFolder, config: RunConfig) -> InitialPolicy | None:
    """The copy in a run folder, if there is one; it must be unchanged."""
    if config.initial_samples is None:
        return None
    file = place.initial_policy
    try:
        found = BY_CONTENT + sha256(read_bytes(file, MOST_POLICY))
    except (OSError, ValueError) as error:
        raise Failed(f"{file} cannot be read ({reason(error)}): put the policy of initial_samples there") from None
    if found != config.initial_samples:
        raise Failed(
            f"{file} is not the policy that the run started with: "
            f"restore the one with the SHA-256 {config.initial_samples.removeprefix(BY_CONTENT)}"
        )
    return InitialPolicy(Policy.load(file), _noise(config))


def _noise(config: RunConfig) -> float:
    """The exploration noise of the run, or its final ε; TD3's default for algorithms without either."""
    if isinstance(config.options, DQNOptions):
        return config.options.epsilon_end
    return float(getattr(config.options, "exploration_noise", TD3Options.exploration_noise))
