"""Expected time and disk space of runs, from a few seconds of each kind in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewirl.envs.creation import close
from rewirl.policies.policy import Policy
from rewirl.storage import start
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.storage.store import SMALL_REPLAY
from rewirl.training import RunConfig, evaluate_policy

SHAPES = (
    *("method", "task", "env_kwargs", "envs", "env_processes", "threads"),
    *("hidden", "critic_hidden", "batch", "policy_delay", "updates_per_step", "n_step", "layer_norm"),
    *("sparsity", "lambdas", "actor_sparsity", "critic_sparsity", "block"),
)
"""Settings that affect the time of a step."""
SECONDS = 1.5
"""Of updates, per kind."""
EPISODE = 1000
"""Assumed length of episodes without a time limit."""
ROW = 300
"""Approximate bytes of a row of evaluations.csv."""


@dataclass(frozen=True)
class Calibration:
    """Measured costs of one kind of run."""

    random_step: float
    """Seconds of a step without learning."""
    step: float
    """Seconds of a step with an update."""
    evaluation_step: float
    episode: int
    """Steps of an episode, at most."""
    state: int
    """Bytes of a checkpoint."""
    policy: int
    record: int
    """Bytes of a transition in the replay."""
    links: int
    """Weights of dense networks of these widths."""

    def seconds(self, config: RunConfig, done: int = 0) -> float:
        """Remaining seconds of a run after this many steps, with evaluation episodes of maximum length."""
        random = max(min(config.random_steps, config.steps) - done, 0)
        learning = max(config.steps - max(done, config.random_steps), 0)
        evaluated = evaluations(config) * max(config.steps - done, 0) / config.steps
        evaluating = evaluated * config.eval_episodes * self.episode * self.evaluation_step
        return random * self.random_step + learning * self.step + evaluating

    def replay_bytes(self, config: RunConfig) -> int:
        """Bytes of the replay during training."""
        return ReplayFile.slots_for(config.replay_size, config.steps, config.checkpoint_every) * self.record

    def kept_bytes(self, config: RunConfig) -> int:
        """Bytes of a finished run."""
        rows = evaluations(config)
        wiring = 0 if config.wiring().rule.name == "dense" else rows * self.links // 8
        replay = self.replay_bytes(config)
        kept = replay if config.keep_replay or replay <= SMALL_REPLAY else 0
        return self.state + 3 * self.policy + 2 * rows * ROW + wiring + kept


def kind_of(config: RunConfig) -> RunConfig:
    """The kind of a run: a config in memory that stands for all runs with the same cost per step.

    >>> one, two = (RunConfig.resolve(method="ds-td3", task="Ant-v5", seed=n, steps=10**n) for n in (5, 6))
    >>> kind_of(one) == kind_of(two)
    True
    """
    shape = {name: value for name, value in config.items().items() if name in SHAPES}
    small: dict[str, Any] = {"seed": 0, "eval_every": 0, "replay_size": 20_000, "random_steps": 300, "steps": 20_000}
    return RunConfig.resolve(**shape, **small)


def calibrate(kind: RunConfig, seconds: float = SECONDS) -> Calibration:
    """Trains a kind of run for some seconds. Refused if it cannot be trained."""
    with start(kind) as run:
        run.train(50)  # warm-up: some things are slow only the first time
        random_step = _seconds_per_step(run.train, 50, kind.random_steps)
        run.train(kind.random_steps + 20)
        until = time.perf_counter() + seconds
        step = [_seconds_per_step(run.train, run.step, run.step + 50)]
        while time.perf_counter() < until and run.step + 50 <= kind.steps:
            step.append(_seconds_per_step(run.train, run.step, run.step + 50))
        policy = run.policy()
        state = sum(array.nbytes for array in run.agent.state().values())
        width, links = run.shape.width * 4, run.costs.dense_links
    began = time.perf_counter()
    evaluation = evaluate_policy(policy, kind.source().make, episodes=1)
    return Calibration(
        random_step=random_step,
        step=sorted(step)[len(step) // 2],
        evaluation_step=(time.perf_counter() - began) / evaluation.steps,
        episode=longest_episode(kind),
        state=state,
        policy=_bytes(policy),
        record=width,
        links=links,
    )


def _seconds_per_step(train: Callable[[int], None], first: int, until: int) -> float:
    began = time.perf_counter()
    train(until)
    return (time.perf_counter() - began) / (until - first)


def evaluations(config: RunConfig) -> int:
    """Number of evaluations of a run, including those at the start and the end."""
    return -(-config.steps // config.eval_every) + 1 if config.eval_every else 0


def longest_episode(config: RunConfig) -> int:
    """Steps of an episode, at most."""
    env = config.source().make()
    close(env)
    return (env.spec.max_episode_steps if env.spec else None) or EPISODE


def _bytes(policy: Policy) -> int:
    return sum(8 * layer.links + 8 * layer.n_out for layer in policy.layers)
