"""The plan of a run: config, links, operations and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from rewirl.agents.actions import Actions
from rewirl.agents.methods import costs
from rewirl.agents.transitions import Transitions
from rewirl.cli.ui.loading import loading
from rewirl.cli.ui.tables import count, size, table
from rewirl.envs.creation import close
from rewirl.envs.environment import Environment
from rewirl.errors import Refused
from rewirl.experiments.sweep.calibration import evaluations, longest_episode
from rewirl.training.config import RunConfig
from rewirl.training.first_steps import few_updates, no_rate_left

BYTES = np.dtype(np.float32).itemsize


def sizes(config: RunConfig) -> tuple[int, Actions]:
    """Observations and actions of the task; refuses a wiring that does not fit its networks."""
    env = _environment(config)
    try:
        config.costs(env.n_obs, env.actions)
    except ValueError as error:
        raise Refused(f"{config.task}: {error}") from None
    return env.n_obs, env.actions


def unwirable(words: Mapping[str, Any]) -> str | None:
    """Explains why the task's networks cannot have the requested links; None if the problem is another one.

    This depends on the sizes of the task, which a config does not have.
    """
    asked = {name: words[name] for name in ("sparsity", "lambdas", "block") if words.get(name) is not None}
    if ("sparsity" in asked) == ("lambdas" in asked):
        return None
    try:
        config = RunConfig.resolve(**{**words, "sparsity": 0.0, "lambdas": None, "block": None})
        env = _environment(config)
        costs(env.n_obs, env.actions.size, config.options, replace(config.wiring(), **{"sparsity": None, **asked}))
    except ValueError as error:
        return str(error)
    except TypeError:
        return None
    return None


def plan(config: RunConfig, n_obs: int, actions: Actions) -> RenderableType:
    """The output of `--dry-run`."""
    # The networks are built, so that their memory is counted, not estimated.
    agent = config.build_agent(n_obs, actions, np.random.default_rng(config.seed))
    cost = config.costs(n_obs, actions)
    updates = config.updates
    watched = evaluations(config)

    networks = table("network", "widths", "links per layer", "links", "of dense", right=("links", "of dense"))
    for name, network in agent.networks.items():
        widths, layers = (" → ".join(map(str, network.sizes)), " + ".join(f"{n:,}" for n in network.counts))
        networks.add_row(name, widths, layers, f"{network.count:,}", f"{network.count / network.dense_count:.1%}")
    networks.add_row("together", "", "", f"{cost.links:,}", f"{cost.links / cost.dense_links:.1%}", style="bold")

    dense = cost.dense()
    held = [part.bytes() for part in agent.networks.values()] + [part.bytes() for part in agent.targets.values()]
    memory = sum(sum(part.values()) for part in held)
    replay = min(config.replay_size, config.steps) * Transitions.width(n_obs, actions.size) * BYTES
    # What evaluations.csv will contain at the end, if all evaluation episodes have full length.
    acted = max(config.steps - config.random_steps, 0) + watched * config.eval_episodes * longest_episode(config)
    full, full_dense = (c.full_flops(updates, acted) for c in (cost, dense))
    paper, paper_dense = (c.paper_flops(updates) for c in (cost, dense))
    facts = table("", "")
    facts.show_header = False
    for name, value in (
        ("sparsity", f"{cost.sparsity:.1%} of {cost.dense_links:,} weights are absent"),
        ("FLOPs, the paper's count", _times(f"{paper:.4e} for {updates:,} updates", paper, paper_dense)),
        (
            "  as in the paper's tables",
            f"{cost.paper_flops(config.steps):.4e}, counting an update in the random steps too",
        ),
        ("FLOPs, full count", _times(f"{full:.4e} for {updates:,} updates and {acted:,} actions", full, full_dense)),
        ("", "including evaluations of full length"),
        ("memory of the networks", f"{size(memory)} with targets, gradients and Adam's moments"),
        ("memory of the replay", f"{size(replay)} for {min(config.replay_size, config.steps):,} transitions"),
        ("environments", _environments(config)),
        ("evaluations", f"{watched:,}, each of {count(config.eval_episodes, 'episode')}"),
    ):
        facts.add_row(name, value)
    return Group(Text(config.to_toml().rstrip()), networks, facts, *map(Text, remarks(config)))


def remarks(config: RunConfig) -> Iterator[str]:
    """Warnings about settings that may not be intended."""
    if wrong := few_updates(config, config.steps):
        yield f"Note: {wrong}: lower --random-steps ({config.random_steps:,}) or raise --steps."
    if wrong := no_rate_left(config, config.steps):
        yield f"Note: {wrong}."


def _environments(config: RunConfig) -> str:
    if config.envs == 1:
        return "1"
    where = f"in {config.workers} worker process{'es' * (config.workers > 1)}" if config.workers else "in this process"
    return f"{config.envs}, {where}: {config.envs * config.updates_per_step:g} updates for a step of all"


def _environment(config: RunConfig) -> Environment:
    with loading():
        made = config.source().make()
    env = Environment(made, config.task)
    close(made)
    return env


def _times(text: str, flops: float, dense: float) -> str:
    return f"{text}, {flops / dense:.4f} × dense" if dense else text
