"""Resuming a run from its checkpoint, and extending it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import gymnasium

from rewirl.agents.methods import method
from rewirl.envs.creation import EnvLike, Source, wrappers_of
from rewirl.errors import Failed, Refused
from rewirl.files import write_aside
from rewirl.policies.policy import Policy
from rewirl.storage import checkpoint
from rewirl.storage import provenance as about
from rewirl.storage.checkpoint import UNFIT, Damaged
from rewirl.storage.disk_errors import complaining
from rewirl.storage.folder import RunFolder, inspect_run
from rewirl.storage.initial_samples import as_begun, kept
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.storage.new_run import begin, write_config
from rewirl.storage.store import FolderStore
from rewirl.training.config import RunConfig
from rewirl.training.observers import Observer
from rewirl.training.replay import Replay
from rewirl.training.run import Run
from rewirl.training.state import State
from rewirl.untrusted import read_text


def resume(
    folder: Path,
    *,
    config: RunConfig | None = None,
    env: EnvLike | None = None,
    observers: Sequence[Observer] = (),
) -> Run:
    """Resumes from the newest intact checkpoint, as if the run had never stopped. `config` may differ from the folder's
    in options that do not affect results, such as steps and threads."""
    inspect_run(folder)
    place = RunFolder(folder)
    place.make()
    store = FolderStore(place)
    try:
        return _resume(store, config and as_begun(place, config), env, observers)
    except BaseException:
        store.close()
        raise


def _resume(store: FolderStore, given: RunConfig | None, env: EnvLike | None, observers: Sequence[Observer]) -> Run:
    place = store.place
    notices: list[str] = []
    problems: list[str] = []
    place.clean()
    checkpoint.recover(place.checkpoints)
    candidates = checkpoint.found(place.checkpoints)
    for path in candidates:
        try:
            files = checkpoint.read_run(path)
            config = _config(place, files["config.toml"].decode("utf-8"), given, notices)
            run = _load(path, files, config, store, env, observers)
        except UNFIT as error:
            problems.append(str(error) if isinstance(error, Damaged) else f"{path}: {error}")
            continue
        for newer in candidates[: candidates.index(path)]:
            checkpoint.remove(newer)
        checkpoint.clean(place.checkpoints)
        _write_session(run, place)
        for text in [*(f"{problem}; the previous checkpoint is used" for problem in problems), *notices]:
            run.tell(text)
        return run
    if candidates:
        raise Failed(f"no checkpoint of {place.path} can be used: {'; '.join(problems)}")
    config, known = _config(place, None, given, notices), inspect_run(place.path)
    if known.step > (known.config or config).checkpoint_every:
        raise Failed(f"the checkpoints of {place.path} are missing: start a new run in another folder")
    run = begin(config, _source(config, env, place), store, observers, kept(place, config))
    try:
        _check_wrappers(run, place)
        _write_session(run, place)
    except BaseException:
        run.abandon()
        raise
    return run


def _source(config: RunConfig, env: EnvLike | None, place: RunFolder) -> Source:
    """The environment of a resumed run; refused if only Python can provide it."""
    if env is None and ":" not in config.task and config.task not in gymnasium.registry:
        raise Refused(
            f"there is no task {config.task!r}: the run in {place.path} was started from Python, with its own "
            f"environment or a task registered there; resume it there with "
            f"{place.in_python(method(config.method).title)}"
        )
    return config.source(env)


def _config(place: RunFolder, saved: str | None, given: RunConfig | None, notices: list[str]) -> RunConfig:
    """The config to resume with; refused if it describes a different run."""
    known = RunConfig.from_toml(saved) if saved is not None else None
    try:
        config = RunConfig.from_toml(read_text(place.config))
    except (ValueError, OSError) as error:
        if known is None:
            raise Failed(f"{place.config} cannot be read: {error}") from None
        notices.append(f"{place.config} is damaged ({error}): the checkpoint's copy is used")
        config = known
    for before, now, what in ((known, config, f"{place.config} was changed"), (config, given, "the config differs")):
        if before and now and (differences := before.differences(now)):
            raise Refused(
                f"{what} since the run in {place.path} was started ({'; '.join(differences)}): resume it unchanged, or "
                "start another run"
            )
    made = max(inspect_run(place.path).step, *map(checkpoint.step_of, checkpoint.found(place.checkpoints)), 0)
    if given and given.steps < made:
        raise Refused(
            f"the run in {place.path} has made {made:,} steps already, and {given.steps:,} were requested: request as "
            "many or more"
        )
    return given or config


def _load(
    path: Path,
    files: dict[str, bytes],
    config: RunConfig,
    store: FolderStore,
    env: EnvLike | None,
    observers: Sequence[Observer],
) -> Run:
    state, place, step = checkpoint.load(path, files), store.place, checkpoint.step_of(path)
    initial = kept(place, config) if step < config.random_steps else None
    run = Run(config, _source(config, env, place), store, observers, initial)
    try:
        transitions = ReplayFile.read_state(state)[1]
        if not step == state.whole("step") >= transitions:
            raise Damaged(f"{path / 'run.json'} is of step {state.whole('step')} with {transitions} transitions")
        run.check_shape(state)
        run.begin(_replay(run, state, store))
        _check_wrappers(run, place, state)
        run.load_state(state)
        differing = checkpoint.differing_versions(state)
        checkpoint.check_all_read(state)
        # Checkpoints of older versions have no diagnostics: they begin here.
        tables = files["evaluations.csv"], files["progress.csv"], files.get("diagnostics.csv")
        if not store.open_tables(run, *tables):
            run.tell(f"{place.wiring} is damaged: the history of the wiring has gaps")
        if checkpoint.BEST in files:
            store.best = files[checkpoint.BEST]
            with complaining(place.best_policy):
                write_aside(place.best_policy, store.best)
    except BaseException:
        run.abandon()
        raise
    store.last_step, store.last_pending = step, bool(run.log.pending)
    if isinstance(run.loop.replay, ReplayFile) and run.loop.replay.count < transitions:
        _refill(run)
    if step >= config.steps:
        whole = place.has_policy()
        store.finished = whole and not run.log.pending and place.read_status().get("state") == "done"
        if not whole:
            run.tell(f"{place.policy} is missing or damaged: it is restored from the checkpoint of step {step}")
    if differing:
        run.tell(
            f"the checkpoint was written by other versions ({', '.join(differing)}): the run continues, but its result "
            "may not be bit-identical"
        )
    return run


def _check_wrappers(run: Run, place: RunFolder, state: State | None = None) -> None:
    """A config contains only the task's name: its wrappers are in the checkpoint, or in the policies of older runs.
    about.json has no checksum and is not used here: it must not block a resume."""
    before, now = None if state is None else state.values.get("environment"), wrappers_of(run.loop.env.env)
    for file in (place.policy, place.best_policy):
        if before is None:
            with suppress(OSError, Refused):
                before = Policy.load(file).around
    if before is not None and before != now:
        raise Refused(
            f"the run in {place.path} was started with {_around(str(before))} {run.config.task}, but this environment "
            f"has {_around(now)} it: resume it from Python with its original environment"
        )
    first = next(iter(about.read(place.about)), None)
    if before is None and first and first.environment is not None and first.environment != now:
        run.tell(
            f"according to {place.about} the run was started with {_around(first.environment)} {run.config.task}, but "
            f"this environment has {_around(now)} it"
        )


def _write_session(run: Run, place: RunFolder) -> None:
    write_config(run.config, place)
    try:
        about.write(place.about, run.step, wrappers_of(run.loop.env.env))
    except OSError as error:
        run.tell(f"{place.about} could not be written ({error.strerror}): this session is not recorded in it")


def _around(wrappers: str) -> str:
    return f"{wrappers} around" if wrappers else "nothing around"


def _replay(run: Run, state: State, store: FolderStore) -> Replay:
    config, path = run.config, store.place.replay
    step = state.whole("step")
    if step >= config.steps and not path.exists():
        return Replay.in_memory(1, run.shape)  # finished: nothing will be added or sampled
    try:
        return store.grown(config, ReplayFile.load(path, config.replay_size, run.shape, state))
    except ValueError:
        if step < config.steps and store.place.read_status().get("state") == "done":
            return _emptied(run, store)  # it was deleted, or a kill left a new one that no checkpoint knows
        raise


def _emptied(run: Run, store: FolderStore) -> ReplayFile:
    """An empty replay for a finished run that is extended without its own."""
    config = run.config
    slots = ReplayFile.slots_for(config.replay_size, config.steps, config.checkpoint_every)
    replay = ReplayFile.create(store.place.replay, config.replay_size, slots, run.shape)
    store.set_limit(config, replay)
    return replay


def lengthen(run: Run, config: RunConfig) -> None:
    """Changes the number of steps of a run to that of a config, also in its folder. Before the first step, what follows
    from the number of steps may change too; after it, no result depends on the number."""
    if config.steps < run.step:
        raise Refused(f"the run has made {run.step:,} steps already, and {config.steps:,} were requested: request more")
    store, replay = run.store, run.loop.replay
    run.config, run.loop.random_steps = config, config.random_steps
    if isinstance(store, FolderStore):
        store.finished = False
        write_config(config, store.place)
        if isinstance(replay, ReplayFile) and store.place.replay.exists():
            run.loop.replay = store.grown(config, replay)
        else:
            run.loop.replay = _emptied(run, store)
            _refill(run)


def _refill(run: Run) -> None:
    """Warns that the replay is refilled, and writes a checkpoint: the last one refers to the deleted replay."""
    run.tell(run.loop.refill_notice("the replay of the finished run was deleted"))
    run.checkpoint()
