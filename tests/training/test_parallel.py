"""Several environments that take turns: the same bits in this process and in workers, resumed, and as vectors."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import faulty  # noqa: F401  # registers tasks
import gymnasium
import numpy as np
import pytest
import tiny
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rewirl import TD3
from rewirl.cli.main import main
from rewirl.envs.several import InTurn
from rewirl.envs.workers import Workers
from rewirl.errors import Failed, Refused
from rewirl.nn import cores
from rewirl.storage import inspect_run, resume, start, verify
from rewirl.training import Run, RunConfig
from rewirl.training.config import run_config

TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 200, "eval_episodes": 1, "replay_size": 2000}


@pytest.fixture(autouse=True)
def two_spare_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are two workers, whatever the machine has."""
    monkeypatch.setattr(run_config, "available_cores", lambda: 3)


def kind(run: Run) -> type:
    return type(run.loop.envs)  # type: ignore[attr-defined]


def worker_ids(run: Run) -> list[int]:
    return [worker._process.pid for worker in run.loop.envs._workers]  # type: ignore[attr-defined]


def transitions(run: Run) -> np.ndarray:
    replay = run.loop.replay
    return replay.records[replay.slots_of(np.arange(len(replay)))]


@pytest.mark.parametrize(
    "given", [{"envs": 2, "normalize": "rewards"}, {"envs": 3, "n_step": 3, "updates_per_step": 2}, {"envs": 5}]
)
def test_workers_give_the_bits_of_this_process(given: dict[str, Any], tmp_path: Path) -> None:
    here = tiny.train(tmp_path / "here", env_processes=False, **given)
    there = tiny.train(tmp_path / "there", **given)
    assert (kind(here), kind(there)) == (InTurn, Workers)
    one, two = tiny.content(tmp_path / "here"), tiny.content(tmp_path / "there")
    assert one == two
    assert verify(tmp_path / "there") == []


def test_each_environment_has_its_own_episodes_and_every_nth_record(tmp_path: Path) -> None:
    run = tiny.train(tmp_path / "run", envs=4, env_processes=False)
    records = transitions(run)
    n_obs = run.shape.n_obs
    obs, following = records[:, :n_obs], records[:, -n_obs:]
    assert len({row.tobytes() for row in obs[:4]}) == 4, "they start in different states"
    continued = (obs[4:] == following[:-4]).all(axis=1)
    assert continued.sum() == len(records) - 4 - run.episodes + ended_last(run)
    assert not (obs[1:] == following[:-1]).all(axis=1).any()
    assert run.step == 600
    assert run.agent.updates == 500
    assert run.loop.acted == 500 + 4, "four actions are on their way"


def ended_last(run: Run) -> int:
    """Environments whose last record ended an episode: nothing was to continue it."""
    return sum(not lane.actions for lane in run.loop._lanes)  # type: ignore[attr-defined]


def test_every_step_before_learning_is_random() -> None:
    """Its actions are chosen N steps ahead, and yet exactly random_steps of them are random."""
    with start(tiny.config(envs=3, random_steps=100, steps=300), env=tiny.Walk) as run:
        chosen = []
        explore = run.agent.explore
        run.agent.explore = lambda obs: chosen.append(run.step) or explore(obs)  # type: ignore
        run.train()
    assert len(chosen) == 300 - 100 + 3
    assert chosen[0] == 98  # for step 100, counted from 0


def test_windows_do_not_mix_environments() -> None:
    """Every n-step return is a sum of rewards of one environment: every third record."""
    with start(tiny.config(envs=3, n_step=3, gamma=1.0, steps=200, env_processes=False)) as run:
        run.train()
        records, width = run.loop.replay.records, run.shape.n_obs
        rewards = records[:200, width + run.shape.n_act].astype(np.float64)
        batch = run.loop._draw()
        firsts = [int(np.flatnonzero((records[:200, :width] == obs).all(axis=1))[0]) for obs in batch.obs.array.T]
        lengths = []
        for first, value in zip(firsts, batch.reward.array[0], strict=True):
            sums = np.cumsum(rewards[first::3][:3]).astype(np.float32)
            assert value in sums
            lengths.append(int(np.argmax(sums == value)) + 1)
        assert max(lengths) == 3


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("stops", [(1,), (3, 130), (257, 259, 400)])
def test_resumed_to_the_bit(stops: tuple[int, ...], processes: bool, tmp_path: Path) -> None:
    given = {"envs": 4, "env_processes": processes, "normalize": "observations,rewards" if processes else None}
    tiny.train(tmp_path / "whole", **{**given, "env_processes": False})
    with start(tiny.config(**given), tmp_path / "run") as run:
        run.train(stops[0])
    for stop in (*stops[1:], None):
        with resume(tmp_path / "run") as run:
            assert not run.notices
            run.train(stop)
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_killed_and_resumed_to_the_bit(tmp_path: Path) -> None:
    """With workers, which end with the training process."""
    given = {"envs": 3, "steps": 700, "checkpoint_every": 40}
    tiny.train(tmp_path / "whole", **given, env_processes=False)
    settings = ["slow=0.002", *(f"{name}={value}" for name, value in given.items())]
    for _ in range(2):
        # Not as the program tiny.py: what it defines would be in __main__, which no worker can import.
        command = [sys.executable, "-c", "import sys, tiny; tiny.main(*sys.argv[1:])", str(tmp_path / "run")]
        program = subprocess.Popen(
            [*command, *settings], stdout=subprocess.PIPE, text=True, cwd=Path(tiny.__file__).parent
        )
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        known = step_of(tmp_path / "run")
        children = [int(pid) for pid in Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()]
        assert len(children) == min(cores.available_cores() - 1, 3), "the program sees the machine's cores"
        until(lambda known=known: step_of(tmp_path / "run") > known)
        program.kill()
        program.wait()
        until(lambda children=children: not any(alive(pid) for pid in children))
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def step_of(folder: Path) -> int:
    return max((int(path.name[5:]) for path in (folder / "checkpoint").glob("step-*")), default=0)


def until(done: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_workers_leave_signals_to_the_training_process(number: signal.Signals) -> None:
    """A terminal or a batch system sends them to all processes."""
    with start(tiny.config(envs=2)) as run, start(tiny.config(envs=2)) as whole:
        run.train(200)
        for pid in worker_ids(run):
            os.kill(pid, number)
        run.train()
        whole.train()
        pids = worker_ids(run)
        assert run.agent.state()["actor.parameters"].tobytes() == whole.agent.state()["actor.parameters"].tobytes()
    assert not any(alive(pid) for pid in pids), "they end with the run"


def test_a_worker_that_dies(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole", envs=3, env_processes=False)
    with start(tiny.config(envs=3), tmp_path / "run") as run:
        run.train(200)
        os.kill(worker_ids(run)[1], signal.SIGKILL)
        with pytest.raises(
            Failed, match=r"Walk-v0: the process that steps it was ended by SIGKILL, at step 2.*, seed 7"
        ):
            run.train()
    assert inspect_run(tmp_path / "run").state == "failed"
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


@pytest.mark.parametrize("processes", [False, True])
def test_an_environment_that_raises(processes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said with its number and seed; mended, the run ends as if nothing had been."""
    monkeypatch.chdir(tmp_path)
    given = {"task": "faulty/Walk-v0", "envs": 2, "env_processes": processes}
    tiny.train(tmp_path / "whole", **given)
    Path("broken").touch()
    with start(tiny.config(**given), tmp_path / "run") as run:
        seed = run.loop._lanes[0].seed  # type: ignore[attr-defined]
        with pytest.raises(Failed) as caught:
            run.train()
        assert caught.match("raised RuntimeError in step: the joint is stuck, at step 400, seed 7")
        assert caught.match(rf"that of environment 1 of 2: {seed}\); the checkpoint of step 400 is kept")
        with pytest.raises(Failed, match="stuck, at step 400"):
            run.train()
    Path("broken").unlink()
    with resume(tmp_path / "run") as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")


def test_a_task_that_workers_cannot_make_is_stepped_here() -> None:
    class Local(tiny.Walk):
        pass

    with start(tiny.config(envs=3, steps=200), env=Local) as run:
        assert any("cannot be made in worker processes" in notice for notice in run.notices)
        run.train()
        assert kind(run) is InTurn
    with start(tiny.config(envs=3, steps=200), env=tiny.Walk) as there:
        there.train()
        assert kind(there) is Workers
    assert transitions(run).tobytes() == transitions(there).tobytes()


# ------------------------------------------------------------------ vector environments


def sync(n: int = 3) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gymnasium.make("tiny/Walk-v0")] * n)


def test_a_plain_vector_is_its_environments(tmp_path: Path) -> None:
    by_name = TD3("tiny/Walk-v0", envs=3, **TINY).learn(400)
    vector = TD3(sync(), run_dir=tmp_path / "run", **TINY).learn(400)
    assert vector.config.envs == 3
    assert transitions(vector.run).tobytes() == transitions(by_name.run).tobytes()
    vector.close()
    with TD3(sync(), run_dir=tmp_path / "run", **TINY) as more:
        more.learn(100)
    by_name.learn(100)
    assert more.run.policy().layers[0].weights.tobytes() == by_name.run.policy().layers[0].weights.tobytes()


class Flat(gymnasium.vector.VectorWrapper):
    """Changes nothing, and yet is a vector environment that only steps as a whole."""


def whole(mode: AutoresetMode) -> Any:
    return lambda: Flat(SyncVectorEnv([lambda: gymnasium.make("tiny/Walk-v0")] * 3, autoreset_mode=mode))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_that_steps_as_a_whole(mode: AutoresetMode) -> None:
    """Every transition of one environment continues where the last one ended, also across its resets."""
    run = TD3(whole(mode), **TINY).learn(400).run
    again = TD3(whole(mode)(), **TINY).learn(400).run
    records = transitions(run)
    assert records.tobytes() == transitions(again).tobytes(), "deterministic, as a function and as an object"
    assert len(records) == 400
    assert run.agent.updates == 350
    n_obs, terminated = run.shape.n_obs, records[:, -run.shape.n_obs - 1] == 1
    starts = {row.tobytes() for row in records[:, :n_obs]}
    continued = [row.tobytes() in starts for row in records[:, -n_obs:]]
    assert run.episodes >= 8
    assert not np.array(continued)[terminated].any(), "no transition begins in a last observation"
    assert 400 - sum(continued) in range(run.episodes, run.episodes + 4), "all others continue"


def test_a_vector_that_steps_as_a_whole_is_resumed_with_new_episodes(tmp_path: Path) -> None:
    env = whole(AutoresetMode.SAME_STEP)
    with (
        pytest.warns(UserWarning, match="has no NumPy generator in np_random"),
        TD3(env, run_dir=tmp_path / "run", **TINY) as agent,
    ):
        agent.learn(200)
    ends = []
    for copy in ("one", "two"):
        shutil.copytree(tmp_path / "run", tmp_path / copy)
        with TD3(env, run_dir=tmp_path / copy, **TINY) as agent:
            with pytest.warns(UserWarning, match="did not repeat its episode"):
                agent.learn(100)
            ends.append(transitions(agent.run).tobytes())
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("env", "given", "sentence"),
    [
        (lambda: tiny.Walk(), {"envs": 4}, "envs=4 needs a task by its name, a function that creates an environment"),
        (sync, {"envs": 4}, "is a vector environment with 3 environments, so envs cannot be 4"),
        (whole(AutoresetMode.NEXT_STEP), {"n_step": 3}, "one step after their end, which n_step=3 does not support"),
        (lambda: "tiny/Walk-v0", {"envs": 0}, "envs must be at least 1, not 0"),
        (lambda: "tiny/Walk-v0", {"envs": 10**9}, "envs must be from 1 to 1024, not 1000000000"),
        (lambda: "tiny/Walk-v0", {"envs": 2.5}, "envs must be a whole number"),
    ],
)
def test_what_is_refused(env: Any, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        TD3(env(), **given, **TINY).learn(100)


def test_an_async_vector_needs_a_function_for_evaluation() -> None:
    env = gymnasium.make_vec("Pendulum-v1", 2, vectorization_mode="async")
    try:
        with pytest.raises(Refused, match=r"cannot be created a second time for evaluation.*: give a function"):
            TD3(env, **TINY).learn(100)
        agent = TD3(env, **{**TINY, "eval_every": 0}).learn(100)
        assert (agent.config.task, agent.config.envs, agent.step) == ("Pendulum-v1", 2, 100)
    finally:
        env.close()


# ------------------------------------------------------------------ config and commands


def test_one_environment_leaves_the_config_as_it_was() -> None:
    assert "env" not in [line.split("_")[0].split()[0].rstrip("s") for line in tiny.config().to_toml().splitlines()]
    four = tiny.config(envs=4, env_processes=False)
    assert RunConfig.from_toml(four.to_toml()) == four
    assert four.differences(tiny.config(envs=4)) == []
    assert tiny.config().differences(four) == ["envs: not set is now 4"]


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "train",
        "ds-td3",
        "Pendulum-v1",
        "--envs",
        "4",
        "--steps",
        "300",
        "--random-steps",
        "100",
        "--hidden",
        "8",
    ]
    assert main([*words, "--dry-run"]) == 0
    assert "4, in 2 worker processes: 4 updates for a step of all" in capsys.readouterr().out
    assert main([*words, "--dry-run", "--no-env-processes"]) == 0
    assert "4, in this process" in capsys.readouterr().out
    assert main([*words, "--run-dir", str(tmp_path / "run")]) == 0
    assert "envs = 4" in (tmp_path / "run" / "config.toml").read_text()
    assert main([*words, "--run-dir", str(tmp_path / "run"), "--envs", "2"]) == 2
    assert "envs: 4 is now 2" in capsys.readouterr().err


def test_saved_as_a_file_and_loaded_to_the_bit(tmp_path: Path) -> None:
    with TD3("tiny/Walk-v0", envs=3, **TINY) as agent:
        agent.learn(200)
        agent.save(tmp_path / "agent", replay=True)
        agent.learn(100)
    with TD3.load(tmp_path / "agent") as loaded:
        loaded.learn(100)
    assert loaded.config.envs == 3
    assert transitions(loaded.run).tobytes() == transitions(agent.run).tobytes()
