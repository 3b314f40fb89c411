"""Starting a new run: all files or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rewirl.envs.creation import EnvLike, Source, wrappers_of
from rewirl.envs.environment import Misbehaved, probe
from rewirl.errors import Refused
from rewirl.files import write_aside
from rewirl.storage import checkpoint
from rewirl.storage import provenance as about
from rewirl.storage.disk_errors import complaining
from rewirl.storage.folder import RunFolder
from rewirl.storage.initial_samples import GivenPolicy, keep, pinned
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.storage.store import FolderStore
from rewirl.training.config import RunConfig
from rewirl.training.first_steps import InitialPolicy
from rewirl.training.observers import Observer
from rewirl.training.replay import Replay
from rewirl.training.run import Run


def start(
    config: RunConfig,
    folder: Path | None = None,
    *,
    env: EnvLike | None = None,
    observers: Sequence[Observer] = (),
) -> Run:
    """A new run, in a folder or in memory. Invalid settings are refused here, before the first step."""
    config, given = pinned(config)
    if config.initial_samples and not given:
        raise Refused(
            f"initial_samples = {config.initial_samples[:19]}… identifies the policy but not its path: give a run "
            "folder or policy file"
        )
    source = config.source(env)
    if folder is None:
        run = Run(config, source, None, observers, given.acting if given else None)
        run.begin(Replay.in_memory(config.replay_size, run.shape))
        return run
    place = RunFolder(folder)
    _check_free(place)
    unfit = _probe(source, config)
    if config.eval_every and source.is_given:
        source.another().close()  # refused now if it cannot be recreated
    run = _begin_new(config, source, place, observers, given)
    if unfit:
        run.tell(f"{unfit}: the run can be resumed, but the result may not be bit-identical")
    return run


def _check_free(place: RunFolder) -> None:
    if place.config.exists():
        raise Refused(f"there is a run in {place.path} already: resume it, or choose another name")
    if found := checkpoint.found(place.checkpoints):
        raise Refused(
            f"{place.path} has checkpoints of a run but no config.toml: restore the copy "
            f"in {found[0]}, or choose another name"
        )


def _begin_new(
    config: RunConfig, source: Source, place: RunFolder, observers: Sequence[Observer], given: GivenPolicy | None
) -> Run:
    """All files of a new run, or none: a folder created for it is removed again. Only the holder of its lock does
    so, since another process may have started a run in it."""
    new = place.make()
    try:
        store = FolderStore(place)
        try:
            _check_free(place)
            run = begin(config, source, store, observers, given.acting if given else None)
            with complaining(place.initial_policy):
                if given:
                    keep(place, given)
            write_head(run, place)
        except BaseException:
            if new:
                place.discard()
            store.close(remove=new)
            raise
    except BaseException:
        if new:
            with suppress(OSError):  # it contains other files
                place.path.rmdir()
        raise
    return run


def write_head(run: Run, place: RunFolder) -> None:
    """The files that mark a folder as a run."""
    write_config(run.config, place)
    with complaining(place.about):
        about.write(place.about, run.step, wrappers_of(run.loop.env.env))


def write_config(config: RunConfig, place: RunFolder) -> None:
    """Records what the run in a folder is."""
    with complaining(place.config):
        write_aside(place.config, config.to_toml().encode())


def begin(
    config: RunConfig, source: Source, store: FolderStore, observers: Sequence[Observer], initial: InitialPolicy | None
) -> Run:
    """A run at step 0, with its replay and tables."""
    run = Run(config, source, store, observers, initial)
    try:
        slots = ReplayFile.slots_for(config.replay_size, config.steps, config.checkpoint_every)
        replay = ReplayFile.create(store.place.replay, config.replay_size, slots, run.shape)
        store.set_limit(config, replay)
        run.begin(replay)
        store.open_tables(run)
        with complaining(store.place.checkpoints):
            store.place.checkpoints.mkdir(exist_ok=True)
    except BaseException:
        run.abandon()
        raise
    return run


def _probe(source: Source, config: RunConfig) -> str | None:
    try:
        return probe(source, config.seed)
    except Misbehaved as error:
        raise Refused(f"{error}, in a check before the run") from error
