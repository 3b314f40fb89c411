"""Other destinations for evaluations than the run folder."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from rewirl.errors import Refused
from rewirl.training.config import RunConfig


class Logger(Protocol):
    """Takes the row of each evaluation."""

    def log(self, step: int, row: Mapping[str, float]) -> None:
        """Values of one evaluation, by name."""

    def close(self) -> None:
        """Ends the log."""


class TensorBoard:
    """Event files below the run folder, in `tensorboard/`."""

    needs: ClassVar[str] = "tensorboardX"

    def __init__(self, folder: Path, config: RunConfig, first_step: int) -> None:
        module = importlib.import_module(self.needs)
        # Rows after the last checkpoint of a killed run are written again: the earlier ones are purged.
        # The suffix keeps two sessions that start in the same second from sharing a file.
        self._writer = module.SummaryWriter(
            str(folder / "tensorboard"), purge_step=first_step or None, filename_suffix=f".{first_step}"
        )
        if first_step == 0:
            self._writer.add_text("config", f"```\n{config.to_toml()}```")

    def log(self, step: int, row: Mapping[str, float]) -> None:
        for name, value in row.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run of the project `rewirl` or of WANDB_PROJECT; WANDB_MODE=offline keeps it local."""

    needs: ClassVar[str] = "wandb"

    def __init__(self, folder: Path, config: RunConfig, first_step: int) -> None:
        module = importlib.import_module(self.needs)
        # The same folder is the same run, even if resumed.
        identity = hashlib.sha256(
            f"{folder.resolve()} {config.method} {config.task} {config.seed}".encode()
        ).hexdigest()[:16]
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

    def log(self, step: int, row: Mapping[str, float]) -> None:
        self._run.log(dict(row), step=step)

    def close(self) -> None:
        self._run.finish()


LOGGERS: dict[str, type[TensorBoard] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}
"""Loggers by name, which is also the name of the extra that they need."""


def check_logger(name: str) -> None:
    """Refuses a logger whose library is not installed."""
    module = LOGGERS[name].needs
    try:
        importlib.import_module(module)
    except ImportError:
        raise Refused(
            f"logging to {name} needs {module}: install it with  pip install 'rewirl[{name}]'", "log"
        ) from None
