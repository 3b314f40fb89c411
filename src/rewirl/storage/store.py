"""The folder of a run during training: lock, checkpoints, policies, status."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from rewirl.agents.methods import method
from rewirl.envs.creation import wrappers_of
from rewirl.envs.task_names import import_flags
from rewirl.errors import Failed, Stopped
from rewirl.nn import Network
from rewirl.policies.policy import Policy
from rewirl.storage import checkpoint
from rewirl.storage.disk_errors import complaining, in_use, room_for, what_is_left
from rewirl.storage.folder import RunFolder
from rewirl.storage.lock import Lock
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.storage.logs.tables import Table, parse
from rewirl.storage.logs.wiring_log import WiringLog
from rewirl.training.config import RunConfig
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow
from rewirl.training.run import Run
from rewirl.untrusted import MOST_POLICY, read_bytes

SMALL_REPLAY = 16 * 2**20
"""Bytes of a replay that stays in the folder of a finished run, so that the run can be extended bit-identically."""


class FolderStore:
    """Keeps a run in its folder. Holds the lock from creation to `close`."""

    def __init__(self, place: RunFolder) -> None:
        self.place = place
        place.refuse_links()
        self._lock = Lock(place.path)
        self._evaluations = Table(EvaluationRow, place.evaluations)
        self._diagnostics = Table(DiagnosticsRow, place.diagnostics)
        self._progress = Table(Episode, place.progress)
        self._wiring = WiringLog(None)
        self.last_step = 0
        """Step of the last checkpoint; 0 before the first."""
        self.last_pending = False
        """Whether evaluations were pending when it was written."""
        self.best: bytes | None = None
        """Content of the best policy's file, which may have been deleted since."""
        self.finished = False
        """Whether everything that follows the last step is written."""
        self.limit = 0
        """Steps from one checkpoint to the next, at most."""

    @property
    def folder(self) -> Path:
        return self.place.path

    def open_tables(
        self,
        run: Run,
        evaluations: bytes | None = None,
        progress: bytes | None = None,
        diagnostics: bytes | None = None,
    ) -> bool:
        """Restores the files to their content at a checkpoint, or to nothing; False if the wiring log has gaps.
        ValueError if the content is invalid."""
        run.log.rows = [] if evaluations is None else parse(EvaluationRow, evaluations)
        run.log.diagnostics = [] if diagnostics is None else parse(DiagnosticsRow, diagnostics)
        if progress is not None:
            parse(Episode, progress)
        self._evaluations.begin(evaluations or b"")
        self._diagnostics.begin(diagnostics or b"")
        self._progress.begin(progress or b"")
        self._wiring = WiringLog(self.place.wiring if run.costs.sparsity else None)
        return self._wiring.begin(run.agent.networks, len(run.log.rows) + len(run.log.pending))

    def add_evaluation(self, row: EvaluationRow) -> None:
        self._evaluations.add(row)

    def add_diagnostics(self, row: DiagnosticsRow) -> None:
        self._diagnostics.add(row)

    def add_episode(self, episode: Episode) -> None:
        self._progress.add(episode)

    def add_wiring(self, networks: Mapping[str, Network]) -> None:
        self._wiring.add(networks)

    def flush(self) -> None:
        self._evaluations.flush()
        self._diagnostics.flush()
        self._progress.flush()

    def close_tables(self) -> None:
        self._evaluations.close()
        self._diagnostics.close()
        self._progress.close()
        self._wiring.close()

    def set_limit(self, config: RunConfig, replay: ReplayFile) -> None:
        """The config's value, unless the replay would overwrite records that the older checkpoint needs."""
        overwrites = config.steps > replay.slots
        self.limit = min(config.checkpoint_every, replay.slack // 2) if overwrites else config.checkpoint_every

    def grown(self, config: RunConfig, replay: ReplayFile) -> ReplayFile:
        """The replay with room for all steps of the config."""
        replay = replay.grown(ReplayFile.slots_for(config.replay_size, config.steps, config.checkpoint_every))
        self.set_limit(config, replay)
        return replay

    def checkpoint(self, run: Run) -> Path:
        """Saves everything that the next step depends on. Only the new part of the replay is synced and hashed."""
        replay = run.loop.replay
        assert isinstance(replay, ReplayFile)
        with in_use(self.place.path):
            state = run.state()
            state.add(replay.state())
            files = {
                "config.toml": run.config_file,
                "evaluations.csv": self._evaluations.content(),
                "diagnostics.csv": self._diagnostics.content(),
                "progress.csv": self._progress.content(),
            }
            if self.best is not None:
                files[checkpoint.BEST] = self.best
            self._wiring.sync()
            path = checkpoint.save(self.place.checkpoints, run.step, state, files, wrappers_of(run.loop.env.env))
        self.last_step, self.last_pending = run.step, bool(run.log.pending)
        return path

    def is_current(self, step: int) -> bool:
        """A finished run may lack its replay: its rows are restored whenever it is opened."""
        return self.last_step == step and not (self.last_pending and self.place.replay.exists())

    def how_to_resume(self, run: Run) -> str:
        if isinstance(run.source.env, str):
            return shlex.join(["rewirl", "train", "--resume", str(self.place.path), *import_flags(run.source.env)])
        return self.place.in_python(method(run.config.method).title)

    def save_policies(self, policy: Policy, is_best: bool) -> None:
        """Writes the latest policy, and the best one if it is that."""
        with room_for("a policy", [12 * sum(policy.links)], self.place.path, what_is_left(self.place.path)):
            policy.save(self.place.policy)
            if is_best:
                policy.save(self.place.best_policy)
                self.best = read_bytes(self.place.best_policy, MOST_POLICY)

    def finish(self, run: Run) -> None:
        """Ends the run: writes its latest policy, and deletes the replay unless it is small or kept on request."""
        row = run.evaluations[-1] if run.evaluations else None
        if row is None or row.step != run.step or not self.place.has_policy():
            self.save_policies(run.policy(), is_best=False)
        with complaining(self.place.status):
            self.place.set_status("done", run.step)
        with in_use(self.place.path):
            if not run.config.keep_replay and self.place.replay.stat().st_size > SMALL_REPLAY:
                for older in checkpoint.found(self.place.checkpoints)[1:]:
                    checkpoint.remove(older)  # useless without the replay
                self.place.replay.unlink(missing_ok=True)
        self.finished = True

    def running(self, step: int) -> None:
        with complaining(self.place.status):
            self.place.set_status("running", step)

    def ended(self, step: int, done: bool, error: BaseException | None) -> None:
        """Records how it ended, if the disk allows it."""
        state = "failed"
        if error is None:
            state = "done" if done else "stopped"
        elif isinstance(error, Stopped | KeyboardInterrupt):
            state = "stopped"
        try:
            self.place.set_status(state, step, "" if error is None else str(error) or type(error).__name__)
        except OSError as problem:
            if error is None:
                raise Failed(f"{self.place.status} could not be written: {problem.strerror}") from problem

    def close(self, *, remove: bool = False) -> None:
        self._lock.release(remove=remove)
