"""Callbacks: what they see, how they stop, and the ready-made ones."""

from __future__ import annotations

import pytest

from rewirl import TD3, Callback, EarlyStopping, PeriodicSave
from rewirl.errors import Refused

TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 100, "eval_episodes": 1, "replay_size": 2000}


class Recorder(Callback):
    def __init__(self):
        self.seen = []

    def on_start(self, run):
        self.seen.append(("start", run.step))

    def on_step(self, run):
        self.seen.append(("step", run.step))

    def on_episode(self, run, episode):
        self.seen.append(("episode", episode.step))

    def on_evaluation(self, run, row):
        self.seen.append(("evaluation", row.step))

    def on_checkpoint(self, run, path):
        self.seen.append(("checkpoint", run.step))

    def on_end(self, run, error):
        self.seen.append(("end", run.step))

    def steps_of(self, what):
        return [step for name, step in self.seen if name == what]


def test_a_callback_sees_everything(tmp_path):
    seen = Recorder()
    with TD3("Pendulum-v1", run_dir=tmp_path / "run", **TINY) as agent:
        agent.learn(250, callback=seen)
    assert seen.steps_of("start") == [0]
    assert seen.steps_of("step") == list(range(1, 251))
    assert seen.steps_of("episode") == [200]
    assert seen.steps_of("evaluation") == [0, 100, 200, 250]
    assert seen.steps_of("checkpoint") == [250]
    assert seen.steps_of("end") == [250]


def test_who_watches_every_step_changes_nothing():
    alone, watched = (TD3("Pendulum-v1", seed=1, **TINY) for _ in range(2))
    alone.learn(150)
    watched.learn(150, callback=[Recorder(), None, lambda agent, step: None])
    assert alone.predict([1, 0, 0])[0] == watched.predict([1, 0, 0])[0]


@pytest.mark.parametrize(("hook", "stops_at"), [("on_step", 70), ("on_episode", 200), ("on_evaluation", 100)])
def test_false_stops(hook, stops_at):
    class Stop(Callback):
        pass

    setattr(Stop, hook, lambda self, run, *_: run.step < 70)
    assert TD3("Pendulum-v1", **TINY).learn(1000, callback=Stop()).step == stops_at


def test_callbacks_of_one_call_are_forgotten_at_the_next():
    first, second = Recorder(), Recorder()
    TD3("Pendulum-v1", **TINY).learn(100, callback=first).learn(100, callback=second)
    assert max(first.steps_of("step")) == 100
    assert (second.steps_of("start"), min(second.steps_of("step"))) == ([100], 101)


class Rows:
    """Stands in for a run's evaluations."""

    def __init__(self, returns):
        self.rows = [type("Row", (), {"step": 100 * n, "return_mean": value})() for n, value in enumerate(returns)]

    def stop_at(self, callback):
        return next((row.step for row in self.rows if callback.on_evaluation(None, row) is False), None)


def test_early_stopping():
    returns = [50, 0, 5, 4, 5.5, 3, 9]
    assert Rows(returns).stop_at(EarlyStopping(target=5)) == 200  # not at step 0, where nothing is learned
    assert Rows(returns).stop_at(EarlyStopping(patience=1)) == 300
    assert Rows(returns).stop_at(EarlyStopping(patience=2)) is None
    assert Rows(returns).stop_at(EarlyStopping(patience=2, min_delta=1)) == 400
    assert Rows(returns).stop_at(EarlyStopping(target=100, patience=3, min_delta=1)) == 500
    for wrong in ({}, {"patience": 0}):
        with pytest.raises(Refused):
            EarlyStopping(**wrong)


def test_periodic_saving(tmp_path):
    saving = PeriodicSave(250, tmp_path / "saved", keep=2, replay=True)
    agent = TD3("Pendulum-v1", seed=1, **TINY).learn(1100, callback=saving)
    assert [file.name for file in saving.files] == ["step-000000800.safetensors", "step-000001000.safetensors"]
    assert sorted((tmp_path / "saved").iterdir()) == saving.files
    loaded = TD3.load(saving.files[-1]).learn(100)
    assert loaded.predict([1, 0, 0])[0] == agent.predict([1, 0, 0])[0]


@pytest.mark.parametrize("wrong", [3, "print", EarlyStopping])
def test_what_is_no_callback_is_refused(wrong):
    with pytest.raises(Refused, match="callback must be"):
        TD3("Pendulum-v1", **TINY).learn(10, callback=wrong)
