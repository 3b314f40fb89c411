"""Sweeps of real processes: one that fails or is killed does not stop the others, and nothing is done twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import tiny
from waiting import until_it_is_sent

from rewirl.experiments import Job, Sweep, Watcher, parse_grid, plan, run_sweep
from rewirl.experiments.sweep.workers import Processes
from rewirl.storage import inspect_run, start, verify
from rewirl.storage.lock import Lock, holder_of

GRID = """
tasks = {tasks}
methods = ["ds-td3"]
seeds = {seeds}
steps = {steps}
random_steps = 100
hidden = [8, 8]
batch = 8
adapt_every = 20
checkpoint_every = 100
eval_every = 300
eval_episodes = 1
"""
WALK, FAULTY, SLOW = "tiny:tiny/Walk-v0", "faulty:faulty/Walk-v0", "faulty:faulty/Slow-v0"


def grid(tasks: tuple[str, ...] = (WALK,), seeds: tuple[int, ...] = (1, 2), steps: int = 600, more: str = "") -> str:
    return GRID.format(tasks=str(list(tasks)).replace("'", '"'), seeds=list(seeds), steps=steps) + more


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(tiny.__file__).parent))
    import_module("faulty")  # what is imported here, the runs of a sweep may import too


class Told(Watcher):
    """Keeps what it is told, and does something then."""

    def __init__(self, on_look: Callable[[Sweep], None] = lambda sweep: None) -> None:
        self.changes: list[tuple[str, str]] = []
        self._on_look = on_look

    def on_change(self, sweep: Sweep, job: Job) -> None:
        self.changes.append((job.folder.name, job.state))

    def on_look(self, sweep: Sweep) -> None:
        self._on_look(sweep)


def swept(text: str, runs: str = "runs", watcher: Watcher | None = None) -> Sweep:
    return run_sweep(plan(parse_grid(text, "mine"), Path(runs)), jobs=2, watcher=watcher)


def command(text: str, *words: str) -> list[str]:
    Path("grid.toml").write_text(text)
    return [
        sys.executable,
        "-m",
        "rewirl",
        "sweep",
        "grid.toml",
        "--jobs",
        "2",
        "--import",
        "tiny",
        "--import",
        "faulty",
        *words,
    ]


def checkpoints(folder: Path) -> int:
    return len(list((folder / "checkpoint").glob("step-*")))


def test_each_run_is_a_normal_run_folder_and_is_done_once() -> None:
    sweep = swept(grid())
    assert [job.state for job in sweep.plan.jobs] == ["done", "done"]
    for job in sweep.plan.jobs:
        assert verify(job.folder) == []
        with start(job.config, Path("alone", job.folder.name)) as run:
            run.train()
        assert tiny.content(job.folder) == tiny.content(Path("alone", job.folder.name))
    written = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")}
    told = Told()
    assert [job.state for job in swept(grid(), watcher=told).plan.jobs] == ["done", "done"]
    assert told.changes == []
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == written


def test_a_run_that_fails_is_listed_and_only_it_is_tried_again() -> None:
    Path("broken").touch()
    text = grid((FAULTY, WALK), seeds=(1,))
    done = subprocess.run(command(text), capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 runs failed (faulty-faulty-Walk-v0/ds-td3-seed1), 1 are finished" in done.stderr
    assert "the joint is stuck, at step 200" in done.stdout
    assert done.stderr.count("\n") == 1
    walk = Path("runs/tiny-tiny-Walk-v0/ds-td3-seed1")
    before = (walk / "train.log").read_bytes()
    Path("broken").unlink()
    again = subprocess.run(command(text), capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert "2 runs in runs, 1 done, 1 to resume" in again.stdout
    assert (walk / "train.log").read_bytes() == before
    faulty = Path("runs/faulty-faulty-Walk-v0/ds-td3-seed1")
    assert "resuming at step 200" in (faulty / "train.log").read_text()
    assert inspect_run(faulty).state == "done"


def test_a_run_that_is_killed_does_not_stop_the_others() -> None:
    killed: list[str] = []

    def kill_one(sweep: Sweep) -> None:
        for job in sweep.of("running"):
            holder = holder_of(job.folder)
            if not killed and holder is not None and checkpoints(job.folder):
                os.kill(holder.pid, signal.SIGKILL)
                killed.append(job.folder.name)
                Path("slow").unlink()

    Path("slow").touch()
    text = grid((SLOW,), steps=2000)
    sweep = swept(text, watcher=Told(kill_one))
    assert {job.folder.name: job.state for job in sweep.plan.jobs} == {
        f"ds-td3-seed{seed}": "failed" if f"ds-td3-seed{seed}" in killed else "done" for seed in (1, 2)
    }
    [cut] = sweep.of("failed")
    assert cut.message == "killed by SIGKILL"
    told = Told()
    again = swept(text, watcher=told)
    assert told.changes == [(killed[0], "running"), (killed[0], "done")]
    assert all(job.state == "done" for job in again.plan.jobs)
    with start(cut.config, Path("alone")) as run:
        run.train()
    assert tiny.content(cut.folder) == tiny.content(Path("alone"))


def begun(text: str, task: str = WALK) -> tuple[subprocess.Popen[str], list[Path]]:
    """A sweep of two runs, both of which have a checkpoint."""
    process = subprocess.Popen(command(text), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folders = [Path("runs", re.sub("[:/]", "-", task), f"ds-td3-seed{seed}") for seed in (1, 2)]
    end = time.monotonic() + 240
    while not all(map(checkpoints, folders)):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    return process, folders


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_all_runs_save_and_stop(number: signal.Signals) -> None:
    process, folders = begun(grid(steps=1_000_000))
    process.send_signal(number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 3, err
    assert "stopped with 0 of 2 runs finished, the others are saved" in err
    assert "rewirl sweep grid.toml --jobs 2" in err
    reached = []
    for folder in folders:
        info = inspect_run(folder)
        assert info.state == "stopped"
        assert f"stopped by SIGTERM at step {info.step}" in (folder / "train.log").read_text()
        reached.append(info.step)
    more = max(reached) + 50
    assert all(job.state == "done" for job in swept(grid(steps=more)).plan.jobs)
    with start(
        tiny.config(steps=more, task=WALK, seed=1, eval_every=300, eval_episodes=1, eta=None), Path("alone")
    ) as run:
        run.train()
    assert tiny.content(folders[0])["state.safetensors"] == tiny.content(Path("alone"))["state.safetensors"]


def test_ctrl_c_twice_kills_them() -> None:
    process, folders = begun(grid(steps=1_000_000))
    pids = [holder.pid for folder in folders if (holder := holder_of(folder))]
    assert len(pids) == 2
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # so that they do not hear the first one
    process.send_signal(signal.SIGINT)
    for pid in pids:
        until_it_is_sent(signal.SIGTERM, pid)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert all(verify(folder) == [] for folder in folders)


def test_a_run_in_other_hands_is_waited_for() -> None:
    config = plan(parse_grid(grid(seeds=(1,)), "mine"), Path("runs")).jobs[0].config
    with start(config, Path("runs", "mine")) as run:
        run.train(200)
    lock = Lock(Path("runs", "mine"))
    seen: list[str] = []

    def release(sweep: Sweep) -> None:
        seen.append(sweep.plan.jobs[0].state)
        if len(seen) == 4:
            lock.release()

    [job] = swept(grid(seeds=(1,)), watcher=Told(release)).plan.jobs
    assert seen[:4] == ["elsewhere"] * 4
    assert job.state == "done"
    assert job.folder == Path("runs", "mine")


def test_runs_that_outlive_a_killed_sweep_are_waited_for() -> None:
    Path("slow").touch()
    text = grid((SLOW,), steps=2000)
    process, folders = begun(text, SLOW)
    process.kill()
    process.communicate()
    again = subprocess.Popen(command(text), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert again.stdout
    assert any("2 running elsewhere" in line for line in iter(again.stdout.readline, ""))
    Path("slow").unlink()
    out, _ = again.communicate(timeout=240)
    assert again.returncode == 0, out
    for folder in folders:
        assert (folder / "train.log").read_text().count("Results go to") == 1
        assert "resuming at step" not in (folder / "train.log").read_text()
        assert inspect_run(folder).state == "done"


def test_two_sweeps_of_one_folder_share_the_work() -> None:
    text = grid(seeds=(1, 2, 3), steps=1500)
    both = [subprocess.Popen(command(text), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in "ab"]
    for process in both:
        out, _ = process.communicate(timeout=240)
        assert process.returncode == 0, out
    for seed in (1, 2, 3):
        log = Path(f"runs/tiny-tiny-Walk-v0/ds-td3-seed{seed}/train.log").read_text()
        assert log.count("Results go to") == 1
        assert "resuming at step" not in log


SOURCE = """
[[variant]]
label = "source"
tasks = ["%s"]
seeds = [0]
steps = 300

[[variant]]
label = "learner"
tasks = ["tiny:tiny/Walk-v0"]
initial_samples = { of = "source" }
"""


def test_learned_policies_come_first_and_fill_the_replay() -> None:
    text = grid(more=SOURCE % WALK)
    told = Told()
    sweep = swept(text, watcher=told)
    assert [job.state for job in sweep.plan.jobs] == ["done"] * 3
    assert told.changes[:2] == [("ds-td3-seed0-source", "running"), ("ds-td3-seed0-source", "done")]
    source, *learners = (job.folder for job in sweep.plan.jobs)
    for folder in learners:
        assert (folder / "initial_policy.safetensors").read_bytes() == (source / "policy.safetensors").read_bytes()
    assert [job.state for job in plan(parse_grid(text, "mine"), Path("runs")).jobs] == ["done"] * 3


def test_a_policy_from_elsewhere_fills_the_replay() -> None:
    policy = tiny.train(Path("learned")).folder
    assert policy
    text = grid(seeds=(1,), more=f'initial_samples = "{policy}"\n')
    sweep = swept(text)
    assert [(job.state, job.message) for job in sweep.plan.jobs] == [("done", "")]
    copy = sweep.plan.jobs[0].folder / "initial_policy.safetensors"
    assert copy.read_bytes() == (policy / "policy.safetensors").read_bytes()
    assert [job.state for job in plan(parse_grid(text, "mine"), Path("runs")).jobs] == ["done"]


def test_a_damaged_run_stops_only_those_that_begin_with_it() -> None:
    text = grid(seeds=(1,), more=SOURCE % WALK)
    source, learner = swept(text).plan.jobs
    (source.folder / "policy.safetensors").unlink()
    shutil.rmtree(learner.folder)
    more = text + '[[variant]]\nlabel = "plain"\n'
    sweep = swept(more)
    assert [job.state for job in sweep.plan.jobs] == ["done", "failed", "done"]
    assert "has no policy yet" in sweep.plan.jobs[1].message


def test_what_begins_with_a_policy_that_failed_is_not_begun() -> None:
    Path("broken").touch()
    sweep = swept(grid(more=SOURCE % FAULTY))
    assert [job.state for job in sweep.plan.jobs] == ["failed", "blocked", "blocked"]
    assert "the run that it starts from, ds-td3-seed0-source, is not finished" in sweep.plan.jobs[1].message
    Path("broken").unlink()
    assert [job.state for job in swept(grid(more=SOURCE % FAULTY)).plan.jobs] == ["done"] * 3


def test_a_place_that_cannot_be_written_to_fails_that_run_alone() -> None:
    Path("runs").mkdir()
    Path("runs", "faulty-faulty-Walk-v0").write_text("in the way")
    sweep = swept(grid((FAULTY, WALK), seeds=(1,)))
    assert [job.state for job in sweep.plan.jobs] == ["failed", "done"]
    assert "cannot be written to" in sweep.plan.jobs[0].message


def test_never_more_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    free = [10**12]
    processes = Processes(jobs=3, free=lambda: free[0])
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Sleeping())
    assert processes.room()
    processes.start(0, tiny.config(), Path("a"))
    assert processes.room()
    free[0] = 2 * processes.memory - 1
    assert not processes.room(), "the first one has not yet taken what it needs"
    monkeypatch.setattr("rewirl.experiments.sweep.workers.GROWING", 0.0)
    assert processes.room(), "now it has"
    processes.took(processes.memory / 2**20 * 2 + 1)
    assert not processes.room(), "runs take more than was thought"
    free[0] = 10**12
    processes.start(1, tiny.config(), Path("b"))
    processes.start(2, tiny.config(), Path("c"))
    assert not processes.room(), "three at a time"
    processes.close()


def test_one_run_is_tried_even_when_memory_is_short() -> None:
    processes = Processes(jobs=3, free=lambda: 0)
    assert processes.room()
    processes.close()


class Sleeping:
    """A process that does not end."""

    def poll(self) -> None:
        return None
