"""Killed at any instant, and nothing is lost: the run ends bit-equal to one that was never stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import tiny
from waiting import PATIENCE, catches, until, until_it_catches

from rewirl.errors import Failed
from rewirl.storage import inspect_run, resume, start, verify

KILLS = 60
RUN = {"steps": 700, "checkpoint_every": 40, "eval_every": 50, "adapt_every": 5}


def forked(work: Callable[[], None]) -> int:
    """Another process that does `work`, with everything imported already: it begins at once."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def go_on(folder: Path, **given: object) -> None:
    config = tiny.config(**{**RUN, **given})
    with resume(folder) if (folder / "config.toml").exists() else start(config, folder) as run:
        run.train()


def test_sigkill_at_many_random_moments(tmp_path: Path) -> None:
    began = time.monotonic()
    tiny.train(tmp_path / "whole", **RUN)
    whole_seconds = time.monotonic() - began
    whole = tiny.content(tmp_path / "whole")
    chance = random.Random(1)
    kills = runs = 0
    resumed_at: set[int] = set()
    while kills < KILLS:
        folder = tmp_path / f"killed{runs}"
        runs += 1
        most = whole_seconds / 4
        while True:
            pid = forked(lambda folder=folder: go_on(folder))  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, most))
            most *= 1.02  # so that the run ends, even if the machine has become slower
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                break
            kills += 1
            if (folder / "config.toml").exists():
                assert verify(folder) == []
                resumed_at.add(newest_step(folder))
        assert tiny.content(folder) == whole
        assert verify(folder) == []
        assert leftovers(folder) == []
    assert len(resumed_at) > 10, "kills came at all stages of the run"


def newest_step(folder: Path) -> int:
    return max((int(path.name[5:]) for path in (folder / "checkpoint").glob("step-*")), default=0)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


def test_sigkill_while_another_process_evaluates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"task": "faulty:faulty/Slow-v0", "eval_process": True, "steps": 1500, "eval_every": 25}
    given["checkpoint_every"] = 60
    import_module("faulty")
    monkeypatch.setenv("SLOW", str(tmp_path / "slow"))
    tiny.train(tmp_path / "whole", **{**RUN, **given, "eval_process": False})
    (tmp_path / "slow").touch()
    for number in range(4):
        program = run_program(tmp_path / "run", **given)
        assert program.stdout
        program.stdout.readline()
        until(lambda wanted=3 + 3 * number: rows_of(tmp_path / "run") >= wanted, program)  # type: ignore[misc]
        program.kill()
        program.wait()
    (tmp_path / "slow").unlink()
    go_on(tmp_path / "run", **given)
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def rows_of(folder: Path) -> int:
    path = folder / "evaluations.csv"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def run_program(folder: Path, **given: object) -> subprocess.Popen[str]:
    settings = [f"{name}={_json(value)}" for name, value in {**RUN, **given}.items()]
    command = [sys.executable, str(Path(tiny.__file__)), str(folder), *settings]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _json(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


@pytest.fixture(scope="module")
def long_run() -> dict[str, object]:
    return {"steps": 100_000, "slow": 0.001, "checkpoint_every": 10_000, "eval_every": 100}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_with_a_checkpoint_and_the_way_on(
    number: signal.Signals, tmp_path: Path, long_run: dict[str, object]
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("under nohup, as these tests are now, a run shall ignore it too")
    program = run_program(tmp_path / "run", **long_run)
    assert program.stdout
    assert program.stdout.readline() == "ready\n"
    until(lambda: rows_of(tmp_path / "run") > 3, program)
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 3, err
    assert f"stopped by {number.name} at step" in out
    assert f"rewirl train --resume {tmp_path / 'run'}" in out
    assert newest_step(tmp_path / "run") > 0
    assert inspect_run(tmp_path / "run").state == "stopped"
    stopped_at = newest_step(tmp_path / "run")
    with start(tiny.config(**{k: v for k, v in {**RUN, **long_run}.items() if k != "slow"})) as memory:
        memory.train(stopped_at + 50)
    with resume(tmp_path / "run") as run:
        run.train(stopped_at + 50)
        for name, array in memory.agent.state().items():
            assert array.tobytes() == run.agent.state()[name].tobytes(), name


def test_ctrl_c_twice_is_out_at_once(tmp_path: Path, long_run: dict[str, object]) -> None:
    program = run_program(tmp_path / "run", **{**long_run, "slow": 10 * PATIENCE})
    assert program.stdout
    program.stdout.readline()
    assert program.stdout.readline() == "in a step\n"
    program.send_signal(signal.SIGINT)
    # The first waits for the step to end; a handler that has done its work no longer catches another one.
    until(lambda: not catches(signal.SIGINT, program.pid), program)
    program.send_signal(signal.SIGINT)
    program.wait(timeout=PATIENCE)
    assert program.returncode == -signal.SIGINT


def test_sigusr1_saves_and_goes_on(tmp_path: Path, long_run: dict[str, object]) -> None:
    program = run_program(tmp_path / "run", **long_run)
    assert program.stdout
    program.stdout.readline()
    until_it_catches(signal.SIGUSR1, program)
    until(lambda: rows_of(tmp_path / "run") > 3, program)
    program.send_signal(signal.SIGUSR1)
    until(lambda: newest_step(tmp_path / "run") > 0, program)
    assert inspect_run(tmp_path / "run").state == "running"
    second = run_program(tmp_path / "run", **long_run)
    out, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 2
    assert f"in use by process {program.pid}" in out
    program.kill()
    program.wait()
    assert inspect_run(tmp_path / "run").state == "stopped"
    with resume(tmp_path / "run") as run:  # a dead process's lock is taken over
        assert run.step > 0


def test_a_replay_that_is_truncated_meanwhile(tmp_path: Path, long_run: dict[str, object]) -> None:
    """The system ends the process (docs/reliability.md): everything else is intact, and the next command names the
    file."""
    program = run_program(tmp_path / "run", **long_run)
    until(lambda: rows_of(tmp_path / "run") > 3, program)
    program.send_signal(signal.SIGUSR1)
    until(lambda: newest_step(tmp_path / "run") > 0, program)
    os.truncate(tmp_path / "run" / "replay.bin", 0)
    program.communicate(timeout=PATIENCE)
    assert program.returncode == -signal.SIGBUS
    assert inspect_run(tmp_path / "run").state == "stopped"
    with pytest.raises(Failed, match=r"replay\.bin has 0 bytes and should have \d+"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("when", ["rewirl.cli.commands.train", "rewirl.cli.ui.parser"])
def test_a_signal_before_the_run_begins_does_not_end_it(when: str, tmp_path: Path) -> None:
    """SIGUSR1 asks for a checkpoint; by default it would end a process that has no handler yet."""
    program = f"""
import importlib.abc, os, signal, sys
class Early(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {when!r}:
            os.kill(os.getpid(), signal.SIGUSR1)
from rewirl.cli.main import main
sys.meta_path.insert(0, Early())
code = main("train ds-td3 Pendulum-v1 --steps 60 --random-steps 30 --eval-every 0 --hidden 4 4 --run-dir run".split())
os.write(1, b"ended %d" % code)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert "ended 0" in done.stdout, done.stderr


@pytest.mark.parametrize("module", ["rewirl", "rewirl.cli.main"])
def test_a_signal_after_the_run_does_not_end_it(module: str, tmp_path: Path) -> None:
    """SIGUSR1 while the interpreter ends, which restores the default of every handler."""
    program = f"""
import os, runpy, signal, sys
class Late:
    # As defaults, because globals are gone by then.
    def __del__(self, pid=os.getpid(), kill=os.kill, say=os.write, number=int(signal.SIGUSR1)):
        kill(pid, number)
        say(1, b"survived")
sys.argv = ["rewirl", "methods"]
sys.late = Late()  # deleted with the last modules
from rewirl.cli import main
if {module!r} == "rewirl":
    runpy.run_module("rewirl", run_name="__main__")
else:
    sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ds-td3" in done.stdout
    assert done.stdout.endswith("survived"), "the signal was sent"
