"""One run from the command line: started or resumed, displayed, and summarised at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from rewirl.cli.ui.live.run_display import display
from rewirl.cli.ui.loading import loading
from rewirl.cli.ui.run_plan import remarks, sizes
from rewirl.cli.ui.tables import duration, sparkline
from rewirl.envs.task_names import import_flags
from rewirl.errors import Failed, Refused
from rewirl.storage import inspect_run, resume, start
from rewirl.storage.folder import RunFolder
from rewirl.storage.initial_samples import as_begun
from rewirl.training import EvaluationRow, Observer, Run
from rewirl.training.config import RunConfig
from rewirl.training.loggers import LOGGERS, Logger, check_logger

FILES = ("evaluations.csv", "policy.safetensors", "best_policy.safetensors")
"""The files of a run folder that users look for."""


class LogTo(Observer):
    """Passes every evaluation to the requested loggers."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._loggers: dict[str, Logger] = {}

    def on_start(self, run: Run) -> None:
        if self._names and run.folder is not None:
            first = run.evaluations[-1].step + 1 if run.evaluations else 0
            for name in self._names:
                try:
                    self._loggers[name] = LOGGERS[name](run.folder, run.config, first)
                except Exception as error:  # third-party libraries may raise anything
                    raise Failed(f"--log {name} cannot be used: {_sentence(error)}") from error

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        numbers = {
            name: value for name, value in vars(row).items() if isinstance(value, (int, float)) and name != "step"
        }
        for name, logger in list(self._loggers.items()):
            try:
                logger.log(row.step, numbers)
            except Exception as error:  # the run's own files contain everything
                del self._loggers[name]
                run.tell(f"--log {name} failed ({_sentence(error)}): the run continues without it")

    def on_end(self, run: Run, error: BaseException | None) -> None:
        while self._loggers:
            name, logger = self._loggers.popitem()
            try:
                logger.close()
            except Exception as problem:
                run.tell(f"--log {name} could not be closed ({_sentence(problem)})")


def _sentence(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


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
        with loading():  # tasks import what they need; a folder may be left at any time
            run = start(config, folder, observers=observers)
        opening = [welcome(run)] if welcome else []
        for line in (*opening, f"Results go to {folder}", *remarks(config)):
            say(console, line)
    else:
        run = _go_on(config, folder, console, observers)
    with run:
        if run.done:
            say(
                console,
                f"This run is finished: {folder} has all {run.step:,} steps. Change --seed or --run-dir for another.",
            )
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
        if rows[-1].step < run.step:
            agent = "of the untrained agent" if rows[-1].step == 0 else f"at step {rows[-1].step:,}"
            lines.append(
                f"         The last evaluation was {agent}: use rewirl evaluate for the agent of step {run.step:,}."
            )
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
    console.out(text, highlight=False)
