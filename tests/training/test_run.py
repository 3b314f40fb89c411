"""A run: its rows, its evaluations, who watches it, how it is checked."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from rewirl import nn
from rewirl.agents import costs
from rewirl.envs.creation import Source
from rewirl.errors import Refused
from rewirl.policies.policy import Policy
from rewirl.storage import resume, start, verify
from rewirl.storage.logs.tables import Table, parse
from rewirl.training import Episode, EvaluationRow, Observer, Run, evaluate_policy
from rewirl.training.evaluation.critic_bias import critics_of
from rewirl.training.evaluation.episodes import Evaluation, Snapshot, evaluation_seed
from rewirl.training.evaluation.evaluator import Elsewhere, Here


class Watch(Observer):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_start(self, run: Run) -> None:
        self.seen.append("start")

    def on_episode(self, run: Run, episode: Episode) -> None:
        self.seen.append(episode)

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        self.seen.append(row)

    def on_checkpoint(self, run: Run, path: Path) -> None:
        self.seen.append(path)

    def on_end(self, run: Run, error: BaseException | None) -> None:
        self.seen.append(error)

    def of(self, kind: type) -> list[Any]:
        return [item for item in self.seen if isinstance(item, kind)]


def test_rows(tmp_path: Path) -> None:
    watch = Watch()
    with start(tiny.config(), tmp_path / "run", observers=[watch]) as run:
        run.train()
    rows = parse(EvaluationRow, (tmp_path / "run" / "evaluations.csv").read_bytes())
    assert rows == run.evaluations == watch.of(EvaluationRow)
    assert [row.step for row in rows] == [0, 150, 300, 450, 600]
    assert [row.updates for row in rows] == [0, 50, 200, 350, 500]
    assert rows[0].critic_loss is None
    assert rows[0].links_replaced == 0
    last = rows[-1]
    cost = costs(3, 2, run.config.options, run.config.wiring())
    per_layer = f"{last.actor_links} {last.critic1_links} {last.critic2_links}".split()
    assert last.links == cost.links == sum(map(int, per_layer))
    assert last.paper_flops == cost.paper_flops(500)
    evaluation_steps = sum(round(row.length_mean * 2) for row in rows)
    assert last.full_flops == cost.full_flops(500, 500 + evaluation_steps)
    assert last.links_replaced
    assert 0 < (last.targets_follow or 0) <= 1
    assert last.return_min <= last.return_mean <= last.return_max
    assert (np.diff([row.seconds for row in rows]) > 0).all()
    assert run.best == max(rows, key=lambda row: row.return_mean)
    episodes = parse(Episode, (tmp_path / "run" / "progress.csv").read_bytes())
    assert episodes == watch.of(Episode)
    assert episodes[-1].step == sum(episode.length for episode in episodes)
    assert last.episodes == len(episodes) or last.episodes == len([e for e in episodes if e.step <= 600])
    assert watch.seen[0] == "start"
    assert watch.seen[-1] is None


def test_policies(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train()
        last = run.policy()
    saved, best = (Policy.load(tmp_path / "run" / f"{name}.safetensors") for name in ("policy", "best_policy"))
    obs = np.array([0.1, -0.2, 0.3], dtype=np.float32)
    assert saved.predict(obs)[0] == pytest.approx(last.predict(obs)[0], abs=0)
    assert run.best
    assert (best.metadata["step"], best.metadata["return"]) == (str(run.best.step), repr(run.best.return_mean))
    assert saved.metadata["method"] == "ds-td3"
    # the best one does as its row says, up to the rounding of another implementation
    again = evaluate_policy(best, tiny.Walk, episodes=2, seed=evaluation_seed(7, run.best.step))
    assert again.mean == pytest.approx(run.best.return_mean, rel=1e-4)


def test_the_last_policy_is_there_when_no_evaluation_fell_on_the_last_step(tmp_path: Path) -> None:
    with start(tiny.config(steps=200), tmp_path / "run") as run:
        run.train()
    assert Policy.load(tmp_path / "run" / "policy.safetensors").metadata["step"] == "200"


def test_policies_of_other_tasks_are_refused() -> None:
    with start(tiny.config()) as run:
        policy = run.policy()
    with pytest.raises(Refused, match="3 observations and 2 continuous actions, Hopper-v5 has 11 and 3"):
        evaluate_policy(policy, "Hopper-v5")
    with pytest.raises(Refused, match="at least 1 episode"):
        evaluate_policy(policy, tiny.Walk, episodes=0)


def test_an_observer_may_stop_the_run(tmp_path: Path) -> None:
    class Enough(Observer):
        def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
            if row.step == 150:
                run.stop()

    with start(tiny.config(), tmp_path / "run", observers=[Enough()]) as run:
        run.train()
        assert 150 <= run.step < 170
        assert not run.done
        run.train()
        assert run.done


def test_an_observer_that_raises_leaves_the_run_resumable(tmp_path: Path) -> None:
    class Rude(Observer):
        def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
            if row.step == 300:
                raise RuntimeError("no")

    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run", observers=[Rude()]) as run, pytest.raises(RuntimeError, match="no"):
        run.train()
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_ctrl_c_in_memory_stops_between_two_steps() -> None:
    class Interrupt(Observer):
        def on_episode(self, run: Run, episode: Episode) -> None:
            if run.episodes == 5:
                os.kill(os.getpid(), signal.SIGINT)

    with start(tiny.config()) as whole:
        whole.train()
    before = signal.getsignal(signal.SIGINT)
    with start(tiny.config(), observers=[Interrupt()]) as run:
        with pytest.raises(KeyboardInterrupt):
            run.train()
        assert signal.getsignal(signal.SIGINT) is before
        run.train()
    assert [row.return_mean for row in run.evaluations] == [row.return_mean for row in whole.evaluations]


def test_a_run_in_another_thread() -> None:
    """Where no signal handlers may be set."""
    done = []

    def work() -> None:
        with start(tiny.config(steps=120)) as run:
            run.train()
            done.append(run.done)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


# ---------------------------------------------------------------------- evaluations


def test_here_and_elsewhere_are_the_same_to_the_bit_and_in_order() -> None:
    results: list[list[Evaluation | None]] = []
    for kind in (Here, Elsewhere):
        evaluator = kind(Source("Pendulum", "Pendulum-v1"), 3, 2)
        with start(tiny.config(task="Pendulum-v1")) as run:
            for step in (0, 5, 10):
                evaluator.submit(Snapshot.of(run.agent, step).with_critics(run.agent, critics_of(run.agent)))
        results.append([evaluator.next(wait=True) for _ in range(4)])
        evaluator.close()
    assert results[0] == results[1]
    assert results[0][0]
    assert set(results[0][0].q_bias) == {"critic1", "critic2"}
    assert results[0][3] is None
    assert results[0][0] != results[0][1], "each step has episodes of its own"


def test_an_evaluating_process_that_dies_is_replaced_by_this_one() -> None:
    source = Source("Pendulum", "Pendulum-v1")
    here, elsewhere = Here(source, 3, 2), Elsewhere(source, 3, 2)
    with start(tiny.config(task="Pendulum-v1")) as run:
        given = [Snapshot.of(run.agent, step) for step in (0, 5, 10)]
    for evaluator in (here, elsewhere):
        for snapshot in given[:2]:
            evaluator.submit(snapshot)
    elsewhere._process.kill()
    elsewhere._process.join()
    for evaluator in (here, elsewhere):
        evaluator.submit(given[2])
    assert [here.next(wait=True) for _ in given] == [elsewhere.next(wait=True) for _ in given]
    assert not elsewhere.pending
    here.close()
    elsewhere.close()


# --------------------------------------------------------------------------- verify


def test_verify_finds_nothing_wrong_with_a_good_run(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        assert verify(tmp_path / "run") == []
        run.train(270)
        assert verify(tmp_path / "run") == [], "while it runs"
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        run.train()
    assert verify(tmp_path / "run") == []
    with pytest.raises(Refused, match="no run in"):
        verify(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("evaluations.csv", lambda c: c.replace(b"\n150,", b"\n151,"), "does not start with"),
        ("evaluations.csv", lambda c: c + c.splitlines(keepends=True)[-1], "a duplicate or missing row"),
        ("evaluations.csv", lambda c: c + b"half", "line 5 has 1 of 24 columns"),
        ("progress.csv", lambda c: c + c.splitlines(keepends=True)[-1], "twice or out of order"),
        ("progress.csv", lambda c: b"", "does not start with"),
        ("policy.safetensors", lambda c: c[:-1] + bytes([c[-1] ^ 1]), "policy.safetensors: the file is damaged"),
        ("best_policy.safetensors", lambda c: c[:100], "best_policy.safetensors"),
        ("config.toml", lambda c: c.replace(b"gamma = 0.99", b"gamma = 0.9"), r"gamma: 0.99 is now 0.9"),
        ("config.toml", lambda c: b"\xff", "not a config of a run"),
        ("replay.bin", lambda c: bytes([c[0] ^ 1]) + c[1:], "replay.bin is damaged in the records 0 to"),
        ("replay.bin", lambda c: c[:-1], "replay.bin has"),
        ("checkpoint/step-000000320/run.json", lambda c: c + b" ", "run.json is damaged"),
        ("checkpoint/step-000000320/state.safetensors", lambda c: b"", "state.safetensors is damaged"),
    ],
)
def test_verify_says_what_is_wrong(name: str, change: Any, said: str, tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    path = tmp_path / "run" / name
    path.write_bytes(change(path.read_bytes()))
    problems = verify(tmp_path / "run")
    assert any(said in problem for problem in problems), problems


def test_rows_without_a_folder_are_nowhere() -> None:
    table = Table(Episode, None)
    table.begin()
    table.add(Episode(1, 2.0, 3))
    assert table.content() == b""
    table.close()


@pytest.mark.parametrize("content", [b"", b"a\n", b"step,return,length\n1,2\n", b"step,return,length\n1,x,3\n", b"\0"])
def test_tables_that_are_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"columns|is not a number"):
        parse(Episode, content)


def test_more_threads_than_cores_are_a_notice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rewirl.nn.runtime.available_cores", lambda: 1)
    try:
        with start(tiny.config(threads=2), tmp_path / "run") as run:
            assert run.notices == ["2 threads share 1 available core: 1 would be faster"]
    finally:
        nn.set_threads(1)
