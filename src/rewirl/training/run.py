"""One run: the loop, its evaluations, its store and its observers."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rewirl import nn
from rewirl.agents import Diverged
from rewirl.envs.creation import Source, close, statistics_hint, wrappers_of
from rewirl.envs.environment import Misbehaved
from rewirl.envs.flattened import NAMES, flattened_names
from rewirl.envs.opening import make_first, take_turns
from rewirl.envs.several import Environments
from rewirl.errors import Failed, Refused, Stopped
from rewirl.policies.policy import Policy
from rewirl.training.config import RunConfig
from rewirl.training.evaluation.episodes import Snapshot
from rewirl.training.evaluation.evaluator import Elsewhere, Evaluator, Here
from rewirl.training.first_steps import InitialPolicy
from rewirl.training.loop import Loop
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow
from rewirl.training.observers import Everyone, Observer
from rewirl.training.parallel_loop import ParallelLoop
from rewirl.training.replay import Replay, Shape
from rewirl.training.run_log import RunLog
from rewirl.training.signals import Signals
from rewirl.training.state import State, generator_state, set_generator
from rewirl.training.store import Store

CHUNK = 16
"""Steps between two checks of the clock and of signals."""
PROGRESS_SECONDS = 0.1
"""Minimum seconds between two calls of `on_progress`."""


class Run:
    """One agent learning one task. `start` and `resume` create it; `train` may be called repeatedly.

    >>> from rewirl.training import RunConfig
    >>> from rewirl.storage import start
    >>> config = RunConfig.resolve(method="ds-td3", task="Pendulum-v1", random_steps=100, eval_every=200)
    >>> with start(config) as run:
    ...     run.train(200)
    ...     [row.step for row in run.evaluations]
    [0, 200]
    """

    def __init__(
        self,
        config: RunConfig,
        source: Source,
        store: Store | None = None,
        observers: Sequence[Observer] = (),
        initial: InitialPolicy | None = None,
    ) -> None:
        self.config, self.source, self.store, self.observers = config, source, store, list(observers)
        self._everyone = Everyone(self.observers)
        self.notices: list[str] = []
        self._first = make_first(source, config.envs, config.options.n_step)
        self._env = self._first[0]
        self._several: Environments | None = None
        try:
            self.costs = config.costs(self._env.n_obs, self._env.actions)
        except ValueError as error:  # a wiring that is impossible for the sizes of the task
            raise Refused(f"{source.task}: {error}") from None
        self._initial = initial
        if initial:
            initial.check(self._env)
        self.shape = Shape(self._env.n_obs, self._env.actions.size)
        self.log = RunLog(self.costs, store)
        self._evaluator: Evaluator | None = None
        self.seconds_before = 0.0
        """Seconds of earlier sessions."""
        self._clock: float | None = None
        self._told = 0.0
        self._longest = 0
        self._stop = False
        self._told_notices = False
        self.closed = False
        """Whether its environment and folder were released: it cannot continue then."""
        nn.set_threads(config.threads, self.tell)
        if hint := statistics_hint(self._env.env):
            self.tell(hint)

    def begin(self, replay: Replay) -> None:
        """A fresh agent at step 0."""
        # All randomness comes from the seed: the agent's, the loop's, the environment's, and (key 3) each evaluation's.
        agent, loop, env = np.random.SeedSequence(self.config.seed).spawn(3)
        self.agent = self.config.build_agent(self._env.n_obs, self._env.actions, np.random.default_rng(agent))
        seeds = env.generate_state(self.config.envs).tolist()
        common: dict[str, Any] = {
            "random_steps": self.config.random_steps,
            "updates_per_step": self.config.updates_per_step,
            "rng": np.random.default_rng(loop),
            "initial": self._initial,
        }
        if self.config.envs == 1:
            self.loop = Loop(self._env, self.agent, replay, env_seed=seeds[0], **common)
            return
        self._several = take_turns(self.source, self._first, self.config.envs, self.config.workers, self.tell)
        self.loop = ParallelLoop(self._several, self._env, self.agent, replay, env_seeds=seeds, **common)

    # ------------------------------------------------------------------ state

    def state(self) -> State:
        """Everything that the next step depends on, except the replay."""
        state = State(
            {
                "n_obs": self.shape.n_obs,
                "n_act": self.shape.n_act,
                "seconds": self.seconds,
                "agent_generator": generator_state(self.agent.rng),
            }
        )
        state.add_arrays("agent.", self.agent.state())
        state.add(self.loop.state())
        state.add(self.log.state())
        return state

    def check_shape(self, state: State) -> None:
        """Refuses a state whose task has other sizes."""
        before = Shape(state.whole("n_obs"), state.whole("n_act"))
        if self.shape != before:
            raise Refused(
                f"{self.config.task} now has {self.shape.n_obs} observations and {self.shape.n_act} actions, and had "
                f"{before.n_obs} and {before.n_act} when the run in {self.folder} was begun"
            )

    def load_state(self, state: State) -> None:
        """Restores what `state` returned, after `begin` with its replay."""
        self.seconds_before = state.number("seconds")
        self.agent.load_state(state.part("agent."))
        set_generator(self.agent.rng, state.table("agent_generator"))
        self.log.load_state(state, self.agent)
        try:
            if not self.loop.load_state(state):
                self.tell(
                    f"{self.config.task} did not repeat its episode: a new one starts at step {self.step}, so the run "
                    "continues, but the result will not be bit-identical"
                )
        except Misbehaved as error:
            raise Failed(f"{error}, while restoring the run to step {self.step}") from error

    # ------------------------------------------------------------------ properties

    @property
    def folder(self) -> Path | None:
        """Its folder, if it has one."""
        return self.store.folder if self.store else None

    @property
    def config_file(self) -> bytes:
        """The content of its config.toml."""
        return self.config.to_toml().encode()

    @property
    def step(self) -> int:
        """Environment steps so far."""
        return self.loop.step

    @property
    def episodes(self) -> int:
        """Training episodes that have ended."""
        return self.loop.episodes

    @property
    def done(self) -> bool:
        """Whether all steps are done and, in a folder, everything is written."""
        return self.loop.step >= self.config.steps and (self.store is None or self.store.finished)

    @property
    def seconds(self) -> float:
        """Seconds of training, over all sessions."""
        return self.seconds_before + (0.0 if self._clock is None else time.perf_counter() - self._clock)

    @property
    def evaluations(self) -> list[EvaluationRow]:
        """All evaluations so far, including those before a resume."""
        return self.log.rows

    @property
    def diagnostics(self) -> list[DiagnosticsRow]:
        """A row for each layer at each complete evaluation, including those before a resume."""
        return self.log.diagnostics

    def diagnostics_at(self, step: int) -> list[DiagnosticsRow]:
        """Diagnostics of one evaluation."""
        return [row for row in self.log.diagnostics if row.step == step]

    @property
    def best(self) -> EvaluationRow | None:
        """The evaluation with the best return; the first among equals."""
        return max(self.log.rows, key=lambda row: row.return_mean, default=None)

    def policy(self) -> Policy:
        """The current policy."""
        row = self.evaluations[-1] if self.evaluations and self.evaluations[-1].step == self.step else None
        return self._policy(Snapshot.of(self.agent, self.step), row)

    # -------------------------------------------------------------------- training

    def train(self, until_step: int | None = None) -> None:
        """Trains until a step (default: all steps of the config); in memory it may exceed those."""
        if self.closed:
            raise Refused("the run was closed: resume it, or train before close()")
        until = self.config.steps if until_step is None else until_step
        if self.store:
            until = min(until, self.config.steps)
        error: BaseException | None = None
        self._clock = time.perf_counter()
        self._stop = False
        try:
            with Signals(hard=self.store is not None) as signals:
                self._train(until, signals)
        except (Misbehaved, Diverged) as problem:
            error = self._failed(problem)
            raise error from problem
        except BaseException as problem:
            error = problem
            raise
        finally:
            self.seconds_before, self._clock = self.seconds, None
            if self.store:
                self.store.ended(self.step, self.done, error)
            self._everyone.on_end(self, error)

    def stop(self) -> None:
        """Makes `train` return soon, after a checkpoint if there is a folder: for observers."""
        self._stop = True

    def checkpoint(self) -> Path:
        """Writes a checkpoint now."""
        assert self.store, "a run in memory has no checkpoints"
        for name, network in self.agent.networks.items():
            if not np.isfinite(network.parameters).all():
                raise Diverged(f"the {name} has weights that are not finite at step {self.step}")
        path = self.store.checkpoint(self)
        self._everyone.on_checkpoint(self, path)
        return path

    def tell(self, text: str) -> None:
        """A notice for the user."""
        self.notices.append(text)
        if self._told_notices:
            self._everyone.on_notice(self, text)

    def close(self) -> None:
        """Closes everything and releases the folder."""
        self.closed = True
        self.abandon()
        if self.store:
            self.store.close()

    def abandon(self) -> None:
        """Closes everything but the folder."""
        if self._evaluator:
            self._evaluator.close()
            self._evaluator = None
        problems = self._several.close() if self._several else []
        if not self.source.is_given and (problem := close(self._env.env)):
            problems.append(problem)
        for problem in problems:
            step = f"step {self.step}, " if hasattr(self, "loop") else ""
            self.tell(f"{self.source.task} {problem} ({step}seed {self.config.seed}): nothing is lost by it")
        if self.store:
            with suppress(Failed):  # the checkpoint contains everything
                self.store.close_tables()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------- internals

    def _train(self, until: int, signals: Signals) -> None:
        self._start()
        loop, every = self.loop, self.config.eval_every
        watched = self._everyone.watches_steps
        chunk = 1 if watched else CHUNK
        if loop.step == 0 and every and not self.log.begun:
            self._evaluate()
        while loop.step < until and not self._stop and not signals.stop:
            target = min(until, loop.step + chunk)
            if every:
                target = min(target, (loop.step // every + 1) * every)
            if self.store:
                target = min(target, max(self.store.last_step + self.store.limit, loop.step + 1))
            episode = loop.advance(target)
            if watched:
                self._everyone.on_step(self)
            if episode:
                self._episode_ended(episode)
            if every and loop.step % every == 0:
                self._evaluate()
            self._collect(wait=False)
            if self.store and loop.step < until and (signals.save or self._checkpoint_due(episode is not None)):
                signals.save = False
                self.checkpoint()
            self._tick()
        if signals.stop:
            self._stopped(signals.stop)
        if every and loop.step >= self.config.steps and self.log.last_step != loop.step:
            self._evaluate()
        self._collect(wait=True)
        if self.store:
            if not self.store.is_current(self.step):
                self.checkpoint()
            if self.step >= self.config.steps:
                self.store.finish(self)

    def _start(self) -> None:
        self._everyone.on_start(self)
        if not self._told_notices:
            self._told_notices = True
            for text in self.notices:
                self._everyone.on_notice(self, text)
        if self.store:
            self.store.running(self.step)
        if self.config.eval_every and not self._evaluator:
            kind = Elsewhere if self.config.eval_process else Here
            self._evaluator = kind(self.source, self.config.seed, self.config.eval_episodes)
            for pending in self.log.pending:
                self._evaluator.submit(pending.snapshot)

    def _evaluate(self) -> None:
        assert self._evaluator
        pending = self.log.open_row(self)
        self._evaluator.submit(pending.snapshot)
        self._collect(wait=False)

    def _collect(self, wait: bool) -> None:
        while self._evaluator and (evaluation := self._evaluator.next(wait)):
            pending = self.log.pending[0]
            row, is_best = self.log.close_row(evaluation)
            if self.store:
                policy = self._policy(pending.snapshot, row)
                self.store.save_policies(policy, is_best)
            self._everyone.on_evaluation(self, row)

    def _episode_ended(self, episode: Episode) -> None:
        self._longest = max(self._longest, episode.length)
        if self.store:
            self.store.add_episode(episode)
        self._everyone.on_episode(self, episode)

    def _checkpoint_due(self, at_episode_end: bool) -> bool:
        """At the last expected end of an episode within the limit; at the limit in any case."""
        assert self.store
        since = self.step - self.store.last_step
        return since >= self.store.limit or (at_episode_end and since + self._longest > self.store.limit)

    def _tick(self) -> None:
        now = time.perf_counter()
        if now - self._told >= PROGRESS_SECONDS:
            self._told = now
            if self.store:
                self.store.flush()
            self._everyone.on_progress(self)

    def _stopped(self, number: signal.Signals) -> None:
        if not self.store:
            raise KeyboardInterrupt
        self.checkpoint()
        raise Stopped(f"stopped by {number.name} at step {self.step}; resume with: {self.store.how_to_resume(self)}")

    def _failed(self, problem: Exception) -> Failed:
        """Writes a checkpoint of this step if the environment failed; keeps the last one if the agent did."""
        where = f"{problem}, at step {self.step}, seed {self.config.seed} ({self.loop.whose_seed})"
        if not self.store:
            return Failed(where)
        if isinstance(problem, Misbehaved):
            try:
                self.checkpoint()
            except (Failed, Diverged) as worse:
                where = f"{where}; {worse}"
        last = self.store.last_step
        kept = f"the checkpoint of step {last} is kept" if last or self.step == 0 else "there was no checkpoint yet"
        return Failed(f"{where}; {kept}")

    def _policy(self, snapshot: Snapshot, row: EvaluationRow | None = None) -> Policy:
        metadata = {"method": self.config.method, "seed": str(self.config.seed), "step": str(snapshot.step)}
        if row:
            metadata["return"] = repr(row.return_mean)
        if wrappers := wrappers_of(self._env.env):
            metadata["wrappers"] = wrappers
        if names := flattened_names(self._env.env):
            metadata[NAMES] = names
        return snapshot.policy(self._env.actions, self.config.task, metadata)
