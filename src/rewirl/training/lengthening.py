"""A run that goes further than was asked for when it began, without being closed."""

from __future__ import annotations

from dataclasses import replace

from rewirl.errors import Refused
from rewirl.training.replay import ReplayFile
from rewirl.training.run import Run
from rewirl.training.starting import write_config


def set_steps(run: Run, steps: int) -> None:
    """Makes it a run of so many steps, in its folder too: no bit of what it computes depends on them."""
    if steps < run.step:
        raise Refused(f"the run has made {run.step:,} steps already, and {steps:,} are asked for: ask for more")
    config, store, replay = replace(run.config, steps=steps), run.store, run.loop.replay
    if store:
        place = store.place
        if not isinstance(replay, ReplayFile) or not place.replay.exists():
            raise place.without_replay()
        replay = store.grown(config, replay)
        store.finished = False
        write_config(config, place)
    run.config, run.loop.replay = config, replay
