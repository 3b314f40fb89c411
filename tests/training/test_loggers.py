"""Rows of evaluations in TensorBoard and Weights & Biases."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from rewirl.errors import Failed, Refused
from rewirl.storage import resume, start
from rewirl.training import RunConfig
from rewirl.training.observers.loggers import LOGGERS, LogTo, check_logger

TINY = {"hidden": (8, 8), "random_steps": 50, "eval_every": 50, "eval_episodes": 1, "steps": 150, "replay_size": 1000}
CONFIG = RunConfig.resolve(method="ds-td3", task="Pendulum-v1", **TINY)


def test_tensorboard_reads_what_was_logged(tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with start(CONFIG, tmp_path / "run", observers=[LogTo(["tensorboard"])]) as run:
        run.train(100)
    with resume(tmp_path / "run", observers=[LogTo(["tensorboard"])]) as run:
        run.train()
        wanted = [(row.step, row.return_mean) for row in run.evaluations]
    events = accumulator.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("eval/return_mean")]
    assert [step for step, _ in found] == [0, 50, 100, 150]
    assert [value for _, value in found] == pytest.approx([value for _, value in wanted])
    tags = {"train/q", "wiring/links", "train/critic_loss", "cost/paper_flops", "time/steps_per_second"}
    assert tags <= set(events.Tags()["scalars"])
    dormant = [(row.step, row.dormant) for row in run.diagnostics if (row.network, row.layer) == ("critic2", 1)][1:]
    assert [(event.step, event.value) for event in events.Scalars("critic2/layer1/dormant")] == dormant
    assert len(dormant) == 3


def test_wandb_takes_what_was_logged(tmp_path, monkeypatch):
    class Settings:
        def __init__(self, **given):
            pass

    class Wandb:
        rows: list[tuple[int, float]] = []  # noqa: RUF012
        calls: list[dict[str, object]] = []  # noqa: RUF012
        Settings = None

        def init(self, **given):
            self.calls.append(given)
            return self

        def define_metric(self, name, step_metric):
            assert (name, step_metric) == ("*", "step")

        def log(self, numbers):
            if "eval/return_mean" in numbers:
                self.rows.append((numbers["step"], numbers["eval/return_mean"]))

        def finish(self):
            self.calls.append({})

    Wandb.Settings = Settings
    monkeypatch.setitem(sys.modules, "wandb", Wandb())
    with start(CONFIG, tmp_path / "run", observers=[LogTo(["wandb"])]) as run:
        run.train()
        assert Wandb.rows == [(row.step, row.return_mean) for row in run.evaluations]
    opened, closed = Wandb.calls
    assert opened["config"]["method"] == "ds-td3"
    assert opened["project"] == "rewirl"
    assert closed == {}


@pytest.mark.parametrize("name", LOGGERS)
def test_a_missing_library_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, LOGGERS[name].needs, None)
    with pytest.raises(Refused, match=rf"logging to {name} needs .* pip install 'rewirl\[{name}\]'"):
        check_logger(name)


class Broken:
    """Begins, and fails at its second row."""

    rows = 0

    def __init__(self, folder, config, first_step, identity):
        if config.seed == 13:
            raise RuntimeError("no API key configured.\nSee the docs.")

    def log(self, step, row):
        self.rows += 1
        if self.rows == 2:
            raise OSError(27, "File too large")

    def close(self):
        raise OSError(27, "File too large")


def test_a_logger_that_fails_does_not_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(LOGGERS, "tensorboard", Broken)
    with start(CONFIG, tmp_path / "run", observers=[LogTo(["tensorboard"])]) as run:
        run.train()
        assert run.done
    assert run.notices == ["logging to tensorboard failed ([Errno 27] File too large): the run continues without it"]


def test_a_logger_that_cannot_begin_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(LOGGERS, "tensorboard", Broken)
    config = replace(CONFIG, seed=13)
    with (
        start(config, tmp_path / "run", observers=[LogTo(["tensorboard"])]) as run,
        pytest.raises(Failed, match=r"^logging to tensorboard is not possible: no API key configured$"),
    ):
        run.train()


class Lines:
    """A user's logger."""

    def __init__(self):
        self.lines = []

    def log(self, step, numbers):
        self.lines.append((step, dict(numbers)))


def test_a_logger_of_ones_own_sees_episodes_and_evaluations():
    mine = Lines()
    with start(replace(CONFIG, steps=450, eval_every=200), observers=[LogTo([mine, mine])]) as run:
        run.train()
        episodes, evaluations = (
            [(step, numbers) for step, numbers in mine.lines[::2] if tag in numbers]
            for tag in ("train/episode_return", "eval/return_mean")
        )
        assert [step for step, _ in episodes] == [200, 400]
        assert all(numbers["train/episode_length"] == 200 for _, numbers in episodes)
        assert [step for step, _ in evaluations] == [0, 200, 400, 450]  # the last step is always evaluated
        assert [numbers["eval/return_mean"] for _, numbers in evaluations] == [
            row.return_mean for row in run.evaluations
        ]
    assert mine.lines[::2] == mine.lines[1::2]
