"""Tuning: the search is in its bounds, repeats itself, survives what may happen, and ends in a config for `train`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny

from rewirl.cli import main
from rewirl.errors import NoRoom, Refused
from rewirl.experiments.sweep.workers import Ending
from rewirl.experiments.tune.search_space import Space, space_of
from rewirl.experiments.tune.tuning import Trial, TuneWatcher, Tuning
from rewirl.storage import inspect_run
from rewirl.storage.logs.tables import Table
from rewirl.training import RunConfig
from rewirl.training.measurements import EvaluationRow

pytest.importorskip("optuna")

WALK, SLOW = "tiny:tiny/Walk-v0", "faulty:faulty/Slow-v0"
BASE: dict[str, Any] = {
    "method": "ds-td3",
    "task": "tiny/Walk-v0",
    "steps": 500,
    "random_steps": 100,
    "eval_every": 100,
    "eval_episodes": 1,
    "hidden": (8, 8),
    "batch": 8,
    "checkpoint_every": 100,
}
SPACE = Space(((0.5, 2.0), (1.0, 3.0)), (0.05, 0.3), (20, 50))


class Pretended:
    """Runs that are over at once: their return is a function of their config and step."""

    def __init__(self, returns: Callable[[RunConfig, int], float], jobs: int = 1, per_look: int = 99) -> None:
        self._returns, self._jobs, self._per_look = returns, jobs, per_look
        self._running: dict[int, tuple[RunConfig, Table[EvaluationRow], int]] = {}
        self.started: list[RunConfig] = []
        self.stopped: set[int] = set()
        self.fails: Callable[[RunConfig], int] = lambda config: 0

    def room(self) -> bool:
        return len(self._running) < self._jobs

    def start(self, key: int, config: RunConfig, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        table = Table(EvaluationRow, folder / "evaluations.csv")
        table.begin()
        self._running[key] = config, table, 0
        self.started.append(config)

    def ended(self) -> list[tuple[int, Ending]]:
        back = []
        for key, (config, table, step) in list(self._running.items()):
            if key in self.stopped:
                back.append((key, Ending(3)))
            elif self.fails(config):
                back.append((key, Ending(self.fails(config), "it broke")))
            elif step > config.steps:
                back.append((key, Ending(0)))
            else:
                for _ in range(self._per_look):
                    if step <= config.steps:
                        table.add(_row(step, self._returns(config, step)))
                        step += config.eval_every
                table.flush()
                self._running[key] = config, table, step
        for key, _ in back:
            self._running.pop(key)[1].close()
        return back

    def stop(self, key: int | None = None) -> None:
        self.stopped |= self._running.keys() if key is None else {key}

    def kill(self) -> None:
        self._running.clear()

    def close(self) -> None: ...


def _row(step: int, value: float) -> EvaluationRow:
    numbers = dict.fromkeys(EvaluationRow.__dataclass_fields__, 0.0)
    texts = dict.fromkeys(("actor_links", "critic1_links", "critic2_links"), "1")
    whole = dict.fromkeys(("episodes", "updates", "links"), 1)
    return EvaluationRow(**{**numbers, **texts, **whole, "step": step, "return_mean": value})  # type: ignore[arg-type]


def searched(folder: Path, workers: Pretended, **given: Any) -> Tuning:
    tuning = Tuning({**BASE, **given.pop("base", {})}, given.pop("space", SPACE), folder, workers, **given)
    tuning.run(poll=0.0)
    return tuning


def choices(tuning: Tuning) -> list[tuple[Any, ...]]:
    return [(trial.configs[0].lambdas, trial.configs[0].eta, trial.configs[0].adapt_every) for trial in tuning.trials]


def by_eta(config: RunConfig, step: int) -> float:
    return step * config.eta


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_finds_the_best_within_the_bounds(sampler: str, tmp_path: Path) -> None:
    tuning = searched(tmp_path, Pretended(by_eta), trials=15, sampler=sampler)
    etas = [config[1] for config in choices(tuning)]
    assert len(set(choices(tuning))) == 15
    for (first, second), eta, every in choices(tuning):
        assert 0.5 <= first <= 2
        assert 1 <= second <= 3
        assert 0.05 <= eta <= 0.3
        assert every in (20, 50)
    assert {every for _, _, every in choices(tuning)} == {20, 50}
    best = tuning.best
    assert best is not None
    assert best.configs[0].eta == max(etas)
    assert best.value == pytest.approx(sum(step * max(etas) for step in range(0, 600, 100)) / 6)


def test_a_trial_that_is_done_is_done_whenever_it_was_evaluated(tmp_path: Path) -> None:
    base = {"eval_every": 300}  # of 500 steps
    for tuning in (searched(tmp_path, Pretended(by_eta), trials=2, seeds=(1, 2), base=base) for _ in range(2)):
        assert [(trial.state, trial.step, trial.steps) for trial in tuning.trials] == [("done", 1000, 1000)] * 2


def test_a_return_of_zero_is_one() -> None:
    trials = [Trial(0, {}, [], [], state="done", value=value) for value in (-5.0, 0.0, -1.0)]
    assert max(trials, key=lambda trial: trial.rank).value == 0.0
    assert Trial(0, {}, [], []).rank < -1e300


def test_r_is_of_the_last_ten_evaluations_and_of_all_seeds(tmp_path: Path) -> None:
    returns = Pretended(lambda config, step: 1000.0 * config.seed + (1 if step > 500 else -99))
    tuning = searched(tmp_path, returns, trials=1, seeds=[3, 5], base={"steps": 1500})
    assert [config.seed for config in returns.started] == [3, 5]
    assert tuning.trials[0].value == 4001.0


def test_what_is_drawn_does_not_depend_on_workers_or_interruptions(tmp_path: Path) -> None:
    whole = searched(tmp_path / "whole", Pretended(by_eta, jobs=3), trials=7)
    for trials in (2, 3, 7):
        parts = searched(tmp_path / "parts", Pretended(by_eta), trials=trials)
    assert choices(parts) == choices(whole)
    assert [trial.value for trial in parts.trials] == [trial.value for trial in whole.trials]
    other = searched(tmp_path / "other", Pretended(by_eta), trials=7, search_seed=1)
    assert choices(other) != choices(whole)


def test_a_trial_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    workers = Pretended(by_eta, per_look=2)

    class StopAtThird(TuneWatcher):
        def on_look(self, tuning: Tuning) -> None:
            if len(tuning.trials) == 3 and tuning.trials[2].step >= 300:
                signal.raise_signal(signal.SIGTERM)

    cut = searched(tmp_path, workers, trials=5, watcher=StopAtThird())
    assert [trial.state for trial in cut.trials] == ["done", "done", "stopped"]
    again = Pretended(by_eta)
    tuning = searched(tmp_path, again, trials=5)
    assert [trial.state for trial in tuning.trials] == ["done"] * 5
    assert again.started[0] == cut.trials[2].configs[0]
    assert len(again.started) == 3


def test_trials_below_the_median_are_given_up_on(tmp_path: Path) -> None:
    workers = Pretended(by_eta, per_look=1)
    tuning = searched(tmp_path, workers, trials=14, prune=True)
    pruned = [trial for trial in tuning.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.state == "done" for trial in tuning.trials[:5]), "the first ones are what others are compared with"
    done = [trial for trial in tuning.trials if trial.state == "done"]
    for trial in pruned:
        assert trial.step < 500
        assert trial.configs[0].eta < max(other.configs[0].eta for other in done)
    assert workers.stopped == {trial.number for trial in pruned}
    known = Tuning(BASE, SPACE, tmp_path, Pretended(by_eta), trials=14)
    assert [trial.state for trial in known.trials] == [trial.state for trial in tuning.trials]


def test_a_trial_that_fails_does_not_stop_the_others_and_is_not_tried_again(tmp_path: Path) -> None:
    workers = Pretended(by_eta)
    workers.fails = lambda config: 1 if config.adapt_every == 20 else 0
    tuning = searched(tmp_path, workers, trials=8)
    expected = ["failed" if every == 20 else "done" for _, _, every in choices(tuning)]
    assert [trial.state for trial in tuning.trials] == expected
    assert {"failed", "done"} == set(expected)
    assert searched(tmp_path, Pretended(by_eta), trials=8).best.number == tuning.best.number  # type: ignore[union-attr]
    assert [trial.state for trial in searched(tmp_path, Pretended(by_eta), trials=8).trials] == expected


@pytest.mark.parametrize("code", [-9, NoRoom.exit_code, Refused.exit_code])
def test_a_trial_whose_run_was_killed_or_had_no_room_is_tried_again(tmp_path: Path, code: int) -> None:
    workers = Pretended(by_eta)
    workers.fails = lambda config: code if len(workers.started) == 2 else 0
    assert "stopped" in [trial.state for trial in searched(tmp_path, workers, trials=3).trials]
    assert [trial.state for trial in searched(tmp_path, Pretended(by_eta), trials=3).trials] == ["done"] * 3


def test_static_methods_have_no_schedule_to_tune(tmp_path: Path) -> None:
    config = RunConfig.resolve(method="static-td3", task="Pendulum-v1")
    space = space_of(config)
    assert (space.eta, space.adapt_every) == (None, None)
    tuning = searched(
        tmp_path, Pretended(lambda config, step: 1.0), trials=2, space=space, base={"method": "static-td3"}
    )
    assert [trial.state for trial in tuning.trials] == ["done", "done"]


@pytest.mark.parametrize("task", ["HalfCheetah-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5"])
@pytest.mark.parametrize("method", ["ds-td3", "ds-sac"])
def test_the_papers_choice_is_within_the_bounds(task: str, method: str) -> None:
    config = RunConfig.resolve(method=method, task=task)
    space = space_of(config)
    assert config.lambdas is not None
    assert all(low <= chosen <= high for chosen, (low, high) in zip(config.lambdas, space.lambdas, strict=True))
    assert space.eta is not None
    assert space.eta[0] <= config.eta <= space.eta[1]
    assert config.adapt_every in (space.adapt_every or ())


def test_another_search_in_the_folder_is_refused(tmp_path: Path) -> None:
    searched(tmp_path, Pretended(by_eta), trials=1)
    with pytest.raises(Refused, match="contains another search \\(steps: 500 is now 700\\)"):
        searched(tmp_path, Pretended(by_eta), base={"steps": 700})
    held = Tuning(BASE, SPACE, tmp_path, Pretended(by_eta))
    with pytest.raises(Refused, match="is in use by"):
        Tuning(BASE, SPACE, tmp_path, Pretended(by_eta))
    held.run(poll=0.0)


JOURNALS = {
    "text": b"no journal\n",
    "not UTF-8": b"\xff\xfe\n",
    "a list": b"[1]\n",
    "nothing": b"null\n",
    "unknown": b'{"op_code": 99}\n',
    "without a study": b'{"op_code": 0}\n',
    "deep": b"[" * 100_000 + b"\n",
    "settings of other types": b'{"op_code":2,"worker_id":"y","study_id":0,"user_attr":{"settings":3}}\n',
}


@pytest.mark.parametrize("kind", JOURNALS)
def test_a_damaged_journal_is_refused_with_a_sentence(kind: str, tmp_path: Path) -> None:
    searched(tmp_path, Pretended(by_eta), trials=2)
    with (tmp_path / "study.journal").open("ab") as journal:
        journal.write(JOURNALS[kind])
    with pytest.raises(Refused, match=r"study\.journal is damaged \(\w+: .*\): restore it, or give another folder"):
        searched(tmp_path, Pretended(by_eta), trials=3)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_a_journal_that_is_no_file_is_refused(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "study.journal")
    with pytest.raises(Refused, match=r"is not a regular file|is a symbolic link"):
        searched(tmp_path, Pretended(by_eta), trials=1)


def test_without_optuna_the_way_to_get_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(Refused, match=r"pip install 'rewirl\[tune\]'"):
        Tuning(BASE, SPACE, tmp_path / "none", Pretended(by_eta))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("tune td3 Pendulum-v1", "td3 is dense, so there is no wiring to tune: use ds-td3"),
        ("tune ds-tdd Pendulum-v1", "did you mean ds-td3?"),
        ("tune ds-td3 Pendulun-v1", "did you mean Pendulum-v1?"),
        ("tune ds-td3", "required: TASK"),
        ("tune ds-td3 Pendulum-v1 --trials 0", "--trials must be at least 1, not 0"),
        (
            "tune ds-td3 Pendulum-v1 --eta 0.3 0.1",
            "up to 1, not (0.3, 0.1) (--eta)",
        ),
        ("tune ds-td3 Pendulum-v1 --eta 0.3 2", "positive numbers up to 1"),
        ("tune ds-td3 Pendulum-v1 --lambdas 1 2 3", "so 4 numbers, not 3"),
        ("tune ds-td3 Pendulum-v1 --lambdas 1 2 0 3", "lambdas must be a lower and an upper bound"),
        ("tune ds-td3 Pendulum-v1 --adapt-every 0", "(--adapt-every)"),
        ("tune static-td3 Pendulum-v1 --eta 0.1 0.2", "static-td3 never rewires"),
        ("tune ds-td3 Pendulum-v1 --seeds 1 1", "--seeds contains a seed twice"),
        ("tune ds-td3 Pendulum-v1 --seeds -1", "--seeds must be from 0"),
        ("tune ds-td3 Pendulum-v1 --sampler grid", "--sampler"),
        ("tune ds-td3 Pendulum-v1 --steps 600", "no trial would be evaluated after learning: it has 600 steps"),
        ("tune ds-td3 Pendulum-v1 --steps 4900", "of which 490 are random, and an evaluation every 5,000"),
    ],
)
def test_refused_with_a_sentence(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_from_the_command_line_stopped_resumed_and_its_result_trained(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        "random_steps = 100\nhidden = [8, 8]\nbatch = 8\neval_every = 500\neval_episodes = 1\ncheckpoint_every = 200\n"
        "eta = 0.2\nsteps = 5\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(tiny.__file__).parent)}
    words = [sys.executable, "-m", "rewirl", "tune", "ds-td3", SLOW, "--config", "base.toml", "--dir", "search"]
    words += ["--trials", "2", "--steps", "4000", "--workers", "2"]
    (tmp_path / "slow").touch()
    process = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 240
    while not any((tmp_path / "search").glob("trial-*/seed0/checkpoint/step-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 3, err
    assert "to continue, repeat the command:  rewirl tune ds-td3" in err
    (tmp_path / "slow").unlink()
    again = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert "Note: ignoring eta, steps in base.toml: the search sets these." in again.stdout
    assert "Next: rewirl train --config search/best.toml --import faulty --seed 1" in again.stdout
    assert all(inspect_run(tmp_path / "search" / f"trial-00{n}" / "seed0").state == "done" for n in (0, 1))
    shutil.rmtree(tmp_path / "search" / "trial-000")
    trained = [sys.executable, "-m", "rewirl", "train", "--config", "search/best.toml", "--import", "faulty"]
    trained += ["--steps", "150", "--seed", "4"]
    done = subprocess.run(trained, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    config = inspect_run(tmp_path / "runs" / "faulty-faulty-Slow-v0" / "ds-td3-seed4").config
    assert config is not None
    assert (config.seed, config.steps, config.options.hidden) == (4, 150, (8, 8))
