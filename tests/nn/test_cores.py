"""How many cores a process may use: its affinity, and the quotas of cgroups of both versions."""

import math
import os
import warnings

import pytest

from rewirl import nn
from rewirl.nn.cores import available_cores, cgroup_quota

pytestmark = pytest.mark.usefixtures("keep_threads")


def tree(root, memberships, **files):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(memberships)
    for path, text in files.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


V1 = "3:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n"


@pytest.mark.parametrize(
    ("memberships", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n"}, 2),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/of:the:host\n", {"cpu.max": "300000 100000\n"}, 3),
        (V1, {"cpu/docker/abc/cpu.cfs_quota_us": "400000", "cpu/docker/abc/cpu.cfs_period_us": "100000"}, 4),
        (V1, {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "25000"}, 2),
        (V1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ("2:cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "25000"}, math.inf),
        ("0::/\n", {"cpu.max": "nonsense\n"}, math.inf),
        ("0::/\n", {}, math.inf),
    ],
)
def test_the_tightest_quota_counts(tmp_path, memberships, files, quota):
    assert cgroup_quota(tree(tmp_path, memberships, **files)) == quota


def test_a_system_without_cgroups_has_no_quota(tmp_path):
    assert cgroup_quota(tmp_path) == math.inf


@pytest.mark.parametrize(("quota", "cores"), [(math.inf, 3), (7.0, 3), (1.5, 2), (0.2, 1)])
def test_cores_are_those_of_the_affinity_and_the_quota(monkeypatch, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 4, 5}, raising=False)
    monkeypatch.setattr("rewirl.nn.cores.cgroup_quota", lambda: quota)
    assert available_cores() == cores


def test_more_threads_than_cores_are_reported_in_one_sentence(monkeypatch):
    monkeypatch.setattr("rewirl.nn.runtime.available_cores", lambda: 2)
    with pytest.warns(RuntimeWarning, match=r"^3 threads share 2 available cores: 2 would be faster$") as caught:
        nn.set_threads(3)
    assert caught[0].filename == __file__
    told = []
    with warnings.catch_warnings(action="error"):
        nn.set_threads(4, told.append)
        nn.set_threads(2)
    assert told == ["4 threads share 2 available cores: 2 would be faster"]
