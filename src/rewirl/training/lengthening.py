"""A run that goes further than was asked for when it began, without being closed."""

from __future__ import annotations

from dataclasses import replace

from rewirl.deploy.files import write_aside
from rewirl.errors import Refused
from rewirl.training.files import complaining
from rewirl.training.replay import ReplayFile
from rewirl.training.run import Run


def set_steps(run: Run, steps: int) -> None:
    """Makes it a run of so many steps, in its folder too: no bit of what it computes depends on them."""
    if steps < run.step:
        raise Refused(f"the run has made {run.step:,} steps already, and {steps:,} are asked for: ask for more")
    config, store, replay = replace(run.config, steps=steps), run.store, run.loop.replay
    if store:
        place = store.place
        if not isinstance(replay, ReplayFile) or not place.replay.exists():
            raise Refused(
                f"the run in {place.path} is done and its replay was deleted: to go on later, train with keep_replay"
            )
        replay = replay.grown(ReplayFile.slots_for(config.replay_size, steps, config.checkpoint_every))
        store.set_limit(config, replay)
        store.finished = False
        with complaining(place.config):
            write_aside(place.config, config.to_toml().encode())
    run.config, run.loop.replay = config, replay
