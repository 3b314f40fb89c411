"""Stopped anywhere and resumed, a run ends bit-equal to one that never stopped."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.spaces import Box

from rewirl import nn
from rewirl.agents import METHODS
from rewirl.errors import Failed, Refused
from rewirl.storage import provenance as about
from rewirl.storage import resume, start, verify
from rewirl.training import Observer, Run

STEPS = 450


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_on_bit_by_bit(method: str, tmp_path: Path) -> None:
    given = {"method": method, "steps": STEPS}
    if METHODS[method].defaults:
        given |= {"sparsity": 0.5}  # of so small networks there is no tenth
    if METHODS[method].rule.name not in ("set", "rigl"):
        given |= {"eta": METHODS[method].eta, "adapt_every": 1000}
    if method.endswith("sac"):
        given |= {"alpha": "auto"}
    if method.endswith("crossq"):
        given |= {"critic_hidden": (12, 16), "norm_warmup": 150}
    if method.endswith("dqn"):
        given |= {"task": "tiny/Strides-v0", "epsilon_steps": 200}
    tiny.train(tmp_path / "whole", **given)
    stopped(tmp_path / "parts", [1, 99, 100, 101, 230, 301, 449], **given)
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")
    assert verify(tmp_path / "parts") == []


@pytest.mark.parametrize("method", ["ds-td3", "ds-sac", "rigl-crossq"])
def test_every_option_goes_on_bit_by_bit(method: str, tmp_path: Path) -> None:
    given = {
        "method": method,
        "steps": STEPS,
        "updates_per_step": 1.5,
        "n_step": 3,
        "n_step_from": 150,
        "layer_norm": True,
        "sparse_init": True,
        "sparse_rate": 0.5,
        "decoupled_decay": True,
        "anneal_eta": True,
        "lambdas": None,
        "actor_sparsity": 0.3,
        "critic_sparsity": 0.6,
        "recycle": 0.3,
        "min_links": 2,
    }
    if method == "rigl-crossq":
        given |= {"critic_hidden": (12, 16), "norm_warmup": 150, "layer_norm": False}
    tiny.train(tmp_path / "whole", **given)
    stopped(tmp_path / "parts", [1, 99, 101, 230, 301, 449], **given)
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")
    assert verify(tmp_path / "parts") == []


@pytest.mark.parametrize("method", ["td3", "static-sac", "ds-dqn"])
def test_recycling_goes_on_bit_by_bit(method: str, tmp_path: Path) -> None:
    given = {"method": method, "steps": STEPS, "recycle": 0.3}
    if method != "ds-dqn":
        given |= {"eta": METHODS[method].eta}
    else:
        given |= {"task": "tiny/Strides-v0", "epsilon_steps": 200}
    whole = tiny.train(tmp_path / "whole", **given)
    stopped(tmp_path / "parts", [1, 101, 230, 301, 449], **given)
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")
    without = tiny.train(None, **{**given, "recycle": None, "adapt_every": 20 if method == "ds-dqn" else None})
    assert not np.array_equal(whole.agent.acting.parameters, without.agent.acting.parameters), "it did recycle"


def stopped(folder: Path, at: list[int], **given: object) -> Run:
    """A run that is left and resumed at each of these steps."""
    with start(tiny.config(**given), folder) as run:
        run.train(at[0])
    for step in [*at[1:], run.config.steps]:
        with resume(folder) as run:
            run.train(step)
            assert not run.notices
    return run


def test_in_memory_is_the_same_and_continues(tmp_path: Path) -> None:
    whole = tiny.train(tmp_path / "whole")
    with start(tiny.config()) as run:
        run.train(77)
        run.train(600)
        assert (tmp_path / "whole" / "policy.safetensors").exists()
        for name, array in whole.agent.state().items():
            assert np.array_equal(array, run.agent.state()[name]), name
        run.train(700)  # beyond the config's steps, as `learn` may
        assert run.step == 700
        assert clockless(run)[: len(whole.evaluations)] == clockless(whole)


def clockless(run: Run) -> list[object]:
    return [dataclasses.replace(row, seconds=0.0, steps_per_second=0.0, memory_mb=0.0) for row in run.evaluations]


@pytest.mark.parametrize("replay_size", [50, 300])
def test_a_replay_that_overwrites_records(replay_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its capacity the file is a ring: what either of the two checkpoints needs is never overwritten."""
    monkeypatch.setattr("rewirl.storage.logs.replay_file.SEGMENT", 16)
    given = {"steps": 1500, "replay_size": replay_size, "checkpoint_every": 90}
    tiny.train(tmp_path / "whole", **given)
    slots = ring_of(tmp_path / "parts", **given)
    assert replay_size < slots < 1500, "the ring was used"
    for damage in (True, False) * 4:
        with resume(tmp_path / "parts") as run:
            run.train(run.step + 150)
        if damage:  # the last checkpoint is lost: the one before is as good
            newest = max((tmp_path / "parts" / "checkpoint").iterdir())
            (newest / "run.json").write_bytes(b"")
    with resume(tmp_path / "parts") as run:
        run.train()
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")
    with start(tiny.config(**given)) as memory:
        memory.train()
    assert clockless(memory) == clockless(run)


def ring_of(folder: Path, **given: object) -> int:
    with start(tiny.config(**given), folder) as run:
        run.train(200)
        return run.loop.replay.slots


def test_evaluation_in_another_process_gives_the_same_numbers(tmp_path: Path) -> None:
    here = tiny.train(tmp_path / "here", task="Pendulum-v1", steps=300)
    with start(tiny.config(task="Pendulum-v1", steps=300, eval_process=True), tmp_path / "there") as run:
        run.train(151)  # the evaluation of step 150 may be under way
    with resume(tmp_path / "there") as run:
        run.train()
    assert clockless(run) == clockless(here)
    assert tiny.content(tmp_path / "there") == tiny.content(tmp_path / "here")


def test_an_evaluation_under_way_is_in_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.train(tmp_path / "whole")
    from rewirl.training import run as module

    class Slow(module.Here):
        def next(self, wait: bool):  # type: ignore[no-untyped-def]
            return super().next(wait) if wait else None

    with monkeypatch.context() as patch:
        patch.setattr(module, "Here", Slow)
        with start(tiny.config(), tmp_path / "parts") as run:
            run.observers.append(_StopAt(310))
            patch.setattr(run, "_collect", lambda wait: None)
            run.train()
            assert len(run.log.pending) == 3
    with resume(tmp_path / "parts") as run:
        assert [pending.snapshot.step for pending in run.log.pending] == [0, 150, 300]
        run.train()
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")


def test_rows_that_came_after_the_last_checkpoint_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        monkeypatch.setattr(run, "_collect", lambda wait: None)
        monkeypatch.setattr(run.store, "finish", lambda run: None)  # as if killed there
        run.train()
        assert [pending.snapshot.step for pending in run.log.pending] == [0, 150, 300, 450, 600]
    with resume(tmp_path / "run") as run:
        assert not run.done
        run.train()
        assert run.done
    for _ in range(2):
        with resume(tmp_path / "run") as run:
            assert run.done
            assert len(run.evaluations) == len(whole.evaluations)
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    assert verify(tmp_path / "run") == []


class _StopAt(Observer):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_episode(self, run: Run, episode: object) -> None:
        if run.step >= self.step:
            run.stop()


def test_seeds_and_threads(tmp_path: Path) -> None:
    one, again = tiny.train(tmp_path / "1"), tiny.train(tmp_path / "2")
    assert clockless(one) == clockless(again)
    try:
        threads = tiny.train(tmp_path / "3", threads=3)
    finally:
        nn.set_threads(1)
    assert clockless(one) == clockless(threads)
    assert tiny.content(tmp_path / "1") == tiny.content(tmp_path / "3")
    other = tiny.train(tmp_path / "4", seed=8)
    assert clockless(one) != clockless(other)


def test_checkpoints_are_never_further_apart_than_asked(tmp_path: Path) -> None:
    seen = [0]

    class Watch(Observer):
        def on_checkpoint(self, run: Run, path: Path) -> None:
            seen.append(run.step)

    with start(tiny.config(checkpoint_every=100), tmp_path / "run", observers=[Watch()]) as run:
        run.train()
    gaps = np.diff(seen)
    assert gaps.max() <= 100
    assert len(seen) > 6


def test_a_changed_config_is_refused_with_the_differences(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
    with pytest.raises(Refused, match=r"seed: 7 is now 8; gamma: 0\.99 is now 0\.9"):
        resume(tmp_path / "run", config=tiny.config(seed=8, gamma=0.9))
    text = (tmp_path / "run" / "config.toml").read_text()
    (tmp_path / "run" / "config.toml").write_text(text.replace("seed = 7", "seed = 9"))
    with pytest.raises(Refused, match="seed: 7 is now 9"):
        resume(tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_bytes(b"\xff not a config")
    with resume(tmp_path / "run") as run:
        assert "config.toml is damaged" in run.notices[0]
        assert run.config.seed == 7
    assert (tmp_path / "run" / "config.toml").read_text() == text


def test_a_longer_run(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole", steps=900)
    tiny.train(tmp_path / "run", steps=600, keep_replay=True)
    with resume(tmp_path / "run", config=tiny.config(steps=900)) as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    with resume(tmp_path / "run") as run:
        assert run.done
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_killed_before_the_first_checkpoint(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(50)
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    with resume(tmp_path / "run") as run:
        assert run.step == 0
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_killed_before_the_first_checkpoint_and_gone_on_with_more_of_them(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(50)
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    with resume(tmp_path / "run", config=tiny.config(checkpoint_every=10)) as run:
        assert run.step == 0


def test_a_config_that_is_gone_is_no_reason_to_begin_anew(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run", keep_replay=True)
    before = (tmp_path / "run" / "replay.bin").read_bytes()
    (tmp_path / "run" / "config.toml").unlink()
    with pytest.raises(Refused, match=r"checkpoints of a run but no config.toml: restore the copy"):
        start(tiny.config(seed=8), tmp_path / "run")
    assert (tmp_path / "run" / "replay.bin").read_bytes() == before


def test_files_that_are_taken_away_do_not_end_a_run(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
        for name in ("best_policy.safetensors", "evaluations.csv", "progress.csv"):
            (tmp_path / "run" / name).unlink()
        run.train(500)
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_a_closed_run_does_not_go_on(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(200)
    with pytest.raises(Refused, match="the run was closed"):
        run.train()


def test_an_environment_that_cannot_be_made_again_leaves_no_folder(tmp_path: Path) -> None:
    class Single(tiny.Walk):
        def __deepcopy__(self, _: object) -> Single:
            raise RuntimeError("there is but one")

    with pytest.raises(Refused, match="cannot be created a second time for evaluation"):
        start(tiny.config(), tmp_path / "run", env=Single())
    assert not (tmp_path / "run").exists()


def test_checkpoints_that_are_gone_are_no_reason_to_begin_anew(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(400)
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    with pytest.raises(Failed, match="are missing"):
        resume(tmp_path / "run")
    assert len(tiny.rows(tmp_path / "run" / "evaluations.csv")) == 3


def test_rows_after_the_checkpoint_are_cut(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    evaluations = tmp_path / "run" / "evaluations.csv"
    before = evaluations.read_bytes()
    evaluations.write_bytes(before + before.splitlines(keepends=True)[-1] + b"450,half a r")
    with resume(tmp_path / "run"):
        assert evaluations.read_bytes() == before


@pytest.mark.parametrize("package", about.PACKAGES)
def test_another_version(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
    real = about._installed
    monkeypatch.setattr(about, "_installed", lambda name: "99.0" if name == package else real(name))
    with resume(tmp_path / "run") as run:
        assert (
            f"({package} {real(package)} → 99.0): the run continues, but its result may not be bit-identical"
            in run.notices[0]
        )


def test_another_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn, "sources", "abc", raising=False)
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)
    monkeypatch.setattr(nn, "sources", "def")
    with resume(tmp_path / "run") as run:
        assert "(core abc → def)" in run.notices[0]


@pytest.mark.skipif(len(nn.available_isas()) < 2, reason="this machine has one instruction set")
def test_another_instruction_set(tmp_path: Path) -> None:
    mine = nn.isa()
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(250)
    try:
        nn.select_isa(next(name for name in nn.available_isas() if name != mine))
        with resume(tmp_path / "run") as run:
            assert "may not be bit-identical" in run.notices[0]
            assert mine in run.notices[0]
            run.train()
            assert run.done
    finally:
        nn.select_isa(mine)


class Forgetful(tiny.Walk):
    """Draws from a generator of its own, that nobody can save."""

    def step(self, action):  # type: ignore[no-untyped-def]
        place, reward, terminated, truncated, info = super().step(action)
        return place + np.random.normal(size=3), reward, terminated, truncated, info


def test_a_task_that_does_not_repeat_itself_goes_on_with_a_new_episode(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run", env=Forgetful) as run:
        assert "not deterministic" in run.notices[0]
        run.train(110)
        while run.loop.episode_length < 2:  # into the middle of an episode, where there is something to repeat
            run.train(run.step + 1)
        middle = run.step
    with resume(tmp_path / "run", env=Forgetful) as run:
        assert f"did not repeat its episode: a new one starts at step {middle}" in run.notices[0]
        assert run.loop.episode_length == 0
        run.train()
        assert run.done


def test_another_shape_of_the_task_is_refused(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(120)

    class Wider(tiny.Walk):
        observation_space = Box(-np.inf, np.inf, (5,), dtype=np.float64)

    with pytest.raises(Refused, match="now has 5 observations"):
        resume(tmp_path / "run", env=Wider)


def test_an_endless_episode(tmp_path: Path) -> None:
    """Checkpoints in its middle: the actions since its start take the environment back to where it was."""

    class Endless(tiny.Walk):
        limit = 10**9

        def step(self, action):  # type: ignore[no-untyped-def]
            place, reward, _, truncated, info = super().step(action)
            return place, reward, False, truncated, info

    def make() -> gymnasium.Env:  # type: ignore[type-arg]
        return gymnasium.wrappers.TimeLimit(Endless(), 1300)

    given = {"steps": 1500, "eval_episodes": 1, "eval_every": 1500}
    with start(tiny.config(**given), tmp_path / "whole", env=make) as run:
        run.train()
    with start(tiny.config(**given), tmp_path / "parts", env=make) as run:
        run.train(1100)
    for step in (1290, 1300, 1500):
        with resume(tmp_path / "parts", env=make) as run:
            run.train(step)
    assert tiny.content(tmp_path / "parts") == tiny.content(tmp_path / "whole")
