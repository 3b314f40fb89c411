"""One run from the command line: started or resumed, displayed, and summarised at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from rewirl.cli.ui.live.run_display import display
from rewirl.cli.ui.loading import loading
from rewirl.cli.ui.run_plan import remarks, sizes
from rewirl.cli.ui.tables import lines, sparkline
from rewirl.envs.task_names import import_flags
from rewirl.errors import Refused
from rewirl.storage import inspect_run, resume, start
from rewirl.storage.folder import RunFolder
from rewirl.storage.initial_samples import as_begun
from rewirl.training import Observer, Run
from rewirl.training.config import RunConfig
from rewirl.training.observers.loggers import LogTo, check_logger
from rewirl.training.observers.pace import duration

FILES = ("evaluations.csv", "policy.safetensors", "best_policy.safetensors")
"""The files of a run folder that users look for."""


def train(
    config: RunConfig,
    folder: Path,
    console: Console,
    logs: Sequence[str] = (),
    welcome: Callable[[Run], str] | None = None,
) -> None:
    """Trains until the last step, after a welcome; reports a run that is already finished."""
    for name in logs:
        check_logger(name)
    observers = [display(console), LogTo(logs)]
    if not (folder / "config.toml").exists():
        sizes(config)
        with loading():  # tasks import modules; training in a folder can be interrupted at any time
            run = start(config, folder, observers=observers)
        opening = [welcome(run)] if welcome else []
        for line in (*opening, f"Results go to {folder}", *remarks(config)):
            say(console, line)
    else:
        run = _go_on(config, folder, console, observers)
    with run:
        if run.done:
            for line in (
                *(f"note: {text}" for text in run.notices),
                f"This run is finished: {folder} has all {run.step:,} steps. Change --seed or --run-dir for another.",
            ):
                say(console, line)
        else:
            run.train()
        for line in summary(run):
            say(console, line)


def _go_on(config: RunConfig, folder: Path, console: Console, observers: Sequence[Observer]) -> Run:
    info, config = inspect_run(folder), as_begun(RunFolder(folder), config)
    differences = info.config.differences(config) if info.config else []
    if differences:
        raise Refused(
            f"{folder} contains another run ({'; '.join(differences)}): choose another --run-dir for this one, "
            f"or resume that one with  rewirl train --resume {shlex.quote(str(folder))}"
        )
    with loading():
        run = resume(folder, config=config, observers=observers)
    if not run.done:
        say(console, f"{folder} contains this run: resuming at step {run.step:,} of {config.steps:,}.")
    return run


def summary(run: Run) -> list[str]:
    """A summary, and what to try next."""
    rows, costs = run.evaluations, run.costs
    lines = [""]
    if rows and run.best is not None:
        curve = sparkline([row.return_mean for row in rows])
        lines += [
            f"Return   {rows[0].return_mean:,.1f} → {rows[-1].return_mean:,.1f}   {curve}   "
            f"best {run.best.return_mean:,.1f} at step {run.best.step:,}",
        ]
    share = f"{costs.links / costs.dense_links:.1%}"
    lines += [
        f"Links    {costs.links:,}, {share} of the {costs.dense_links:,} of dense networks",
        f"Time     {duration(run.seconds)} for {run.step:,} steps, {run.step / max(run.seconds, 1e-9):,.0f} steps/s",
    ]
    if run.folder is not None:
        where = shlex.quote(str(run.folder))
        files = [file for file in FILES if (run.folder / file).exists()]
        lines += [
            f"Results  {run.folder}/ ({', '.join(files)})",
            f"Next     {shlex.join(['rewirl', 'evaluate', str(run.folder), *import_flags(run.config.task)])}",
            f"         rewirl export {where} --to c --out device/",
        ]
    return lines


def say(console: Console, text: str) -> None:
    """Prints a line without wrapping and without colours."""
    console.out(lines(text), highlight=False)
