"""Initial samples: a learned policy that acts in the first steps, so that the replay begins with what it sees and does.

A config names the policy by a path when a run is asked for, and by the SHA-256 of its file from then on: the run keeps
a copy, and what becomes of the original changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from rewirl.agents import TD3Options
from rewirl.deploy.files import write_aside
from rewirl.deploy.policy import LOG_STD, Policy
from rewirl.errors import Failed, Refused
from rewirl.training.config import RunConfig
from rewirl.training.environments import Environment, Floats
from rewirl.training.files import sha256
from rewirl.training.folder import RunFolder, inspect_run, policy_file

BY_CONTENT = "sha256:"
"""Begins the name of a policy that is given by its content."""


class InitialPolicy:
    """A policy as it acts in training: TD3's with exploration noise, SAC's by its own distribution."""

    def __init__(self, file: Path, noise: float, given: str = "") -> None:
        self.given = given
        """How it was named: a run folder or policy file."""
        self.content = file.read_bytes()
        self._policy = Policy.load(file)
        self._noise = np.float32(noise)
        self._layers = [(layer.dense(), layer.bias) for layer in self._policy.layers]

    def __call__(self, obs: Floats, rng: np.random.Generator) -> Floats:
        """The action, in units of the policy."""
        x: Floats = obs
        for number, (weights, bias) in enumerate(self._layers):
            # Not by BLAS, whose bits may depend on its number of threads.
            x = np.einsum("oi,i->o", weights, np.maximum(x, 0) if number else x) + bias
        n_act = self._policy.n_act
        noise = rng.standard_normal(n_act, dtype=np.float32)
        if self._policy.algorithm == "sac":
            std: Floats = np.exp(np.clip(x[n_act:], *LOG_STD))
            action: Floats = np.tanh(x[:n_act] + std * noise)
        else:
            action = np.minimum(np.maximum(np.tanh(x) + self._noise * noise, np.float32(-1)), np.float32(1))
        return action

    def check(self, env: Environment) -> None:
        """Refused when it is not for such observations and actions."""
        policy = self._policy
        if (policy.n_obs, policy.n_act) != (env.n_obs, env.box.size):
            raise Refused(
                f"the policy of initial_samples takes {policy.n_obs} observations and gives {policy.n_act} actions, "
                f"{env.task} has {env.n_obs} and {env.box.size}: take one that was trained for {env.task}"
            )
        if not (np.array_equal(policy.low, env.box.low) and np.array_equal(policy.high, env.box.high)):
            raise Refused(
                f"the policy of initial_samples acts from {policy.low} to {policy.high}, {env.task} takes actions from "
                f"{env.box.low} to {env.box.high}: take one that was trained for {env.task}"
            )


def pinned(config: RunConfig) -> tuple[RunConfig, InitialPolicy | None]:
    """The config with its initial policy named by content, and that policy when it was named by a path."""
    given = config.initial_samples
    if given is None or given.startswith(BY_CONTENT):
        return config, None
    policy = InitialPolicy(policy_file(Path(given)), _noise(config), given)
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


def keep(place: RunFolder, policy: InitialPolicy) -> None:
    """Copies it into a run folder, with the path that it came from."""
    write_aside(place.initial_policy, policy.content)
    write_aside(place.initial_source, str(Path(policy.given).absolute()).encode("utf-8", "surrogateescape"))


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
    return InitialPolicy(file, _noise(config))


def _noise(config: RunConfig) -> float:
    """What the run itself adds to TD3's actions later; SAC has no such number, so there it is TD3's."""
    options = config.options if isinstance(config.options, TD3Options) else TD3Options()
    return options.exploration_noise
