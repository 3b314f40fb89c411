"""A sweep on a real Ray cluster of two nodes: one dies in the middle of a run, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tiny

from rewirl.errors import Refused
from rewirl.experiments import parse_grid, plan, run_sweep
from rewirl.experiments.sweep.ray_tasks import RayTasks, train_here
from rewirl.storage import inspect_run, start, verify
from rewirl.storage.lock import Lock, holder_of

ray = pytest.importorskip("ray")

GRID = """
tasks = ["tiny:tiny/Walk-v0"]
methods = ["ds-td3"]
seeds = [1, 2]
steps = {steps}
random_steps = 100
hidden = [8, 8]
batch = 8
adapt_every = 20
checkpoint_every = 200
eval_every = 1000
eval_episodes = 1
"""
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


pytestmark = pytest.mark.xdist_group("ray")  # one cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = str(Path(tiny.__file__).parent)
    os.environ["SLOW"] = str(tmp_path_factory.mktemp("ray") / "slow")
    # A dead node is noticed within a few seconds instead of half a minute.
    quick = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 4}
    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False, "_system_config": quick})
    yield made
    made.shutdown()
    del os.environ["PYTHONPATH"], os.environ["SLOW"]


def sweep_process(cluster: Any, where: Path, *words: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "rewirl",
        "sweep",
        "grid.toml",
        "--import",
        "faulty",
        "--dir",
        "runs",
        "--on",
        "ray",
    ]
    command += words
    return subprocess.Popen(
        command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "RAY_ADDRESS": cluster.address},
    )  # fmt: skip


def until(condition: Any, process: subprocess.Popen[str], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            pytest.fail(process.communicate()[0])
        time.sleep(0.05)


def saved(folder: Path) -> bool:
    return any((folder / "checkpoint").glob("step-*"))


def lives(pid: int) -> bool:
    status = Path("/proc", str(pid), "stat")
    return status.exists() and ") Z " not in status.read_text()


def test_a_node_dies_and_its_run_goes_on_elsewhere_bit_by_bit(cluster: Any, tmp_path: Path) -> None:
    slow = Path(os.environ["SLOW"])
    slow.touch()
    text = GRID.format(steps=2000).replace("tiny:tiny/Walk-v0", "faulty:faulty/Slow-v0")
    (tmp_path / "grid.toml").write_text(text)
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    folders = [tmp_path / "runs" / "faulty-faulty-Slow-v0" / f"ds-td3-seed{seed}" for seed in (1, 2)]
    process = sweep_process(cluster, tmp_path)
    until(lambda: all(map(saved, folders)), process)
    trains = [holder.pid for folder in folders if (holder := holder_of(folder))]
    cluster.remove_node(node, allow_graceful=False)
    until(lambda: not all(map(lives, trains)), process)
    slow.unlink()
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, out
    sessions = [(folder / "train.log").read_text().count(" by process ") for folder in folders]
    assert sorted(sessions) == [1, 2], "one run was begun twice, on the node that died and on the other"
    cut = folders[sessions.index(2)]
    lines = (cut / "train.log").read_text().splitlines()
    assert next(line for line in reversed(lines) if " by process " in line).split()[2] != "0"
    import_module("faulty")  # as --import does above
    local = run_sweep(plan(parse_grid(text, "grid"), tmp_path / "local")).plan
    for folder, job in zip(folders, local.jobs, strict=True):
        assert job.state == "done", job.message
        assert verify(folder) == []
        assert tiny.content(folder) == tiny.content(job.folder)


def test_stopped_with_checkpoints_and_gone_on_with(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID.format(steps=1_000_000).replace("[1, 2]", "[1]"))
    folder = tmp_path / "runs" / "tiny-tiny-Walk-v0" / "ds-td3-seed1"
    process = sweep_process(cluster, tmp_path)
    until(lambda: saved(folder), process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 3, out
    assert "to continue, repeat the command" in out
    info = inspect_run(folder)
    assert info.state == "stopped", info.message
    assert f"stopped by SIGINT at step {info.step}" in (folder / "train.log").read_text(), "a checkpoint of that step"
    (tmp_path / "grid.toml").write_text(GRID.format(steps=info.step + 300).replace("[1, 2]", "[1]"))
    again = sweep_process(cluster, tmp_path, "--jobs", "1")
    out, _ = again.communicate(timeout=600)
    assert again.returncode == 0, out
    assert inspect_run(folder).step == info.step + 300


def test_waits_until_the_lock_of_a_dead_machine_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny.config()
    with start(config, tmp_path / "run") as run:
        run.train(200)
    monkeypatch.setattr("rewirl.storage.lock.STALE", 2.0)
    (tmp_path / "run" / "lock").write_text('{"pid": 1, "started": 1, "host": "a-machine-that-died"}')
    began = time.monotonic()
    assert train_here(config.to_toml(), str(tmp_path / "run")) == (0, "")
    assert time.monotonic() - began >= 1.0
    assert inspect_run(tmp_path / "run").state == "done"


def test_a_run_that_somebody_has_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewirl.experiments.sweep.ray_tasks.PATIENCE", 0.1)
    (tmp_path / "run").mkdir()
    lock = Lock(tmp_path / "run")
    code, message = train_here(tiny.config().to_toml(), str(tmp_path / "run"))
    lock.release()
    assert code == 2
    assert "is in use by process" in message


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999", "no-such-host.invalid:1"])
def test_no_cluster_at_the_address(address: str) -> None:
    with pytest.raises(Refused, match=f"no Ray cluster answers at {address}"):
        RayTasks(address=address)


def test_without_ray_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Refused, match=r"pip install 'rewirl\[ray\]'"):
        RayTasks()
