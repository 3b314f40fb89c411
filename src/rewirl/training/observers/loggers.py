"""Loggers: the numbers of a run to TensorBoard, Weights & Biases or an object of the user."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from rewirl.errors import Failed, Refused, nearest
from rewirl.files import sha256
from rewirl.training.config import RunConfig
from rewirl.training.measurements import Episode, EvaluationRow
from rewirl.training.observers import Observer
from rewirl.training.run import Run


class Logger(Protocol):
    """The interface of a logger."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Logs the numbers of an evaluation or an episode, with names such as eval/return_mean and
        train/episode_return."""


FLUSH_SECONDS = 10
"""Minimum seconds between two writes of event files: episodes may be short and many."""


class TensorBoard:
    """Event files below the run folder, in `tensorboard/`."""

    needs: ClassVar[str] = "tensorboardX"

    def __init__(self, folder: Path, config: RunConfig, first_step: int, identity: str) -> None:
        module = importlib.import_module(self.needs)
        # Rows after the last checkpoint of a killed run are written again: the earlier ones are purged.
        # The suffix keeps two sessions that start in the same second from sharing a file.
        self._writer = module.SummaryWriter(
            str(folder / "tensorboard"),
            purge_step=first_step or None,
            filename_suffix=f".{first_step}",
            flush_secs=FLUSH_SECONDS,
        )
        if first_step == 0:
            self._writer.add_text("config", f"```\n{config.to_toml()}```")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run of the project `rewirl` or of WANDB_PROJECT; WANDB_MODE=offline keeps it local."""

    needs: ClassVar[str] = "wandb"

    def __init__(self, folder: Path, config: RunConfig, first_step: int, identity: str) -> None:
        module = importlib.import_module(self.needs)
        self._run = module.init(
            project=os.environ.get("WANDB_PROJECT", "rewirl"),
            group=f"{config.task} {config.method}",
            name=f"{config.task} {config.method} seed {config.seed}",
            id=identity,
            resume="allow",
            dir=str(folder),
            config=config.items(),
            settings=module.Settings(silent=True),
        )
        # Its step counter never decreases, and an evaluation may arrive after later episodes.
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log({**numbers, "step": step})

    def close(self) -> None:
        self._run.finish()


LOGGERS: dict[str, type[TensorBoard] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}
"""Loggers by name, which is also the name of the extra that they need."""


def check_logger(name: str) -> None:
    """Refuses an unknown logger, or one whose library is not installed."""
    if name not in LOGGERS:
        raise Refused(f"there is no logger {name!r}{nearest(name, LOGGERS)}; loggers are {', '.join(LOGGERS)}")
    module = LOGGERS[name].needs
    try:
        importlib.import_module(module)
    except ImportError:
        raise Refused(
            f"logging to {name} needs {module}: install it with  pip install 'rewirl[{name}]'", "log"
        ) from None


NAMESPACES = {
    "eval": ("return_mean", "return_std", "return_min", "return_max", "length_mean"),
    "wiring": ("links", "links_replaced", "targets_follow"),
    "time": ("seconds", "steps_per_second", "memory_mb"),
    "cost": ("paper_flops", "full_flops"),
}
"""Namespaces of the numbers in an evaluation's row; all others belong to `train`."""
_OF = {number: namespace for namespace, numbers in NAMESPACES.items() for number in numbers}


class LogTo(Observer):
    """Passes measurements to loggers: by name (`tensorboard`, `wandb`), or objects with `log` and `close`."""

    def __init__(self, wanted: Sequence[str | Logger], folder: Path | None = None) -> None:
        """Named loggers write into the run folder; for a run in memory, below `folder` or logs/."""
        self._wanted, self._folder = wanted, folder
        self._identity = secrets.token_hex(8)  # for a run without a folder
        self._loggers: list[tuple[str, Logger]] = []

    def on_start(self, run: Run) -> None:
        for wanted in self._wanted:
            name = wanted if isinstance(wanted, str) else type(wanted).__name__
            try:
                self._loggers.append((name, self._opened(wanted, run)))
            except Exception as error:  # an external library may raise anything
                raise Failed(f"logging to {name} is not possible: {_sentence(error)}") from error

    def _opened(self, wanted: str | Logger, run: Run) -> Logger:
        if not isinstance(wanted, str):
            return wanted
        config, folder, identity = run.config, run.folder, self._identity
        about = f"{config.task}-{config.method}-seed{config.seed}"
        if folder is not None:  # the id follows from the folder, so a resumed run continues its record
            identity = sha256(f"{folder.resolve()} {about}".encode())[:16]
        if folder is None or self._folder is not None:
            name = f"{about}-{identity[:6]}".replace("/", "-").replace(":", "-")
            folder = (self._folder or Path("logs")) / name
        folder.mkdir(parents=True, exist_ok=True)
        return LOGGERS[wanted](folder, config, _first_step(run), identity)

    def on_episode(self, run: Run, episode: Episode) -> None:
        self._log(run, episode.step, {"train/episode_return": episode.return_, "train/episode_length": episode.length})

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        numbers = {name: value for name, value in vars(row).items() if isinstance(value, (int, float))}
        del numbers["step"]
        tagged = {f"{_OF.get(name, 'train')}/{name}": value for name, value in numbers.items()}
        for layer in run.diagnostics_at(row.step):
            tagged |= {f"{layer.network}/layer{layer.layer}/{name}": value for name, value in layer.measured().items()}
        self._log(run, row.step, tagged)

    def _log(self, run: Run, step: int, numbers: dict[str, float]) -> None:
        for name, logger in list(self._loggers):
            try:
                logger.log(step, numbers)
            except Exception as error:  # the run's own files have all results
                self._loggers.remove((name, logger))
                run.tell(f"logging to {name} failed ({_sentence(error)}): the run continues without it")

    def on_end(self, run: Run, error: BaseException | None) -> None:
        for name, logger in self._loggers:
            close = getattr(logger, "close", None)
            if close is None or logger in self._wanted:
                continue  # closed by its owner
            try:
                close()
            except Exception as problem:
                run.tell(f"the log of {name} could not be closed ({_sentence(problem)})")
        self._loggers.clear()


def _first_step(run: Run) -> int:
    """First step that will be logged: a killed run repeats the steps after its last checkpoint."""
    if run.log.pending:
        return int(run.log.pending[0].values["step"])
    return run.step + 1 if run.step else 0


def _sentence(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
