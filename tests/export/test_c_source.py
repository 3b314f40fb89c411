"""The exported C: it compiles without a warning, acts as the policy does, and takes the memory that it states."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rewirl.export import ExportError, export_c
from rewirl.export.weights import as_stored
from rewirl.policies import Policy

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion"]
SANITIZED = ["-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
MACHINES = {
    "this machine": (["gcc", "-O2"], []),
    "this machine, -Os": (["gcc", "-Os"], []),
    "32 bits": (["gcc", "-m32", "-O2"], []),
    "ARM": (["arm-linux-gnueabihf-gcc", "-static", "-O2"], ["qemu-arm"]),
}

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def run(command: list[object], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def compiled(folder: Path, compiler: list[str], name: str = "policy") -> Path:
    sources = [folder / f"{name}.c", folder / f"{name}_main.c"]
    done = run([*compiler, *STRICT, *sources, "-lm", "-o", folder / "act"])
    assert done.returncode == 0, done.stderr
    return folder / "act"


def acted(program: list[object], x: np.ndarray) -> np.ndarray:
    lines = "\n".join(" ".join(f"{v:.9g}" for v in row) for row in x.tolist())
    done = run(program, input=lines)
    assert done.returncode == 0, done.stderr
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float32)


def observations(policy: Policy, n: int = 10_000) -> np.ndarray:
    """As a task gives them, some a little out, and zeros, which the code skips."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, policy.n_obs)).astype(np.float32)
    x[: n // 10] *= 3
    x[rng.random(x.shape) < 0.1] = 0
    return x


def assert_acts_alike(policy: Policy, folder: Path, compiler: list[str], runner: list[str], n: int = 10_000) -> None:
    x = observations(policy, n)
    actions = acted([*runner, compiled(folder, compiler)], x)
    half = (policy.high - policy.low) / 2
    np.testing.assert_allclose(actions / half, policy.predict(x)[0] / half, atol=1e-5)
    assert (actions >= policy.low).all()
    assert (actions <= policy.high).all()


@pytest.fixture(scope="session", params=MACHINES)
def machine(request, tmp_path_factory):
    compiler, runner = MACHINES[request.param]
    folder = tmp_path_factory.mktemp("machine")
    (folder / "x.c").write_text("#include <math.h>\n#include <stdio.h>\nint main(void) { return 0; }\n")
    for tool in (compiler[0], *runner):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if run([*compiler, folder / "x.c", "-lm", "-o", folder / "x"]).returncode:
        pytest.skip(f"{' '.join(compiler)} cannot compile here")
    return compiler, runner


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_acts_as_the_policy_does_on_every_machine(make_policy, tmp_path, machine, dtype):
    policy = make_policy((17, 64, 3000, 200, 6), (0.5, 0.001, 0.05, 1.0))
    done = export_c(policy, tmp_path, dtype=dtype)
    assert done.encodings == ("bitmap", "indices", "deltas", "dense")
    assert_acts_alike(as_stored(policy, dtype), tmp_path, *machine, n=10_000 if dtype == "f32" else 1000)


@pytest.mark.parametrize(("density", "way"), [(1.0, "dense"), (0.5, "bitmap"), (0.05, "deltas")])
def test_acts_as_the_policy_does(make_policy, tmp_path, density, way):
    policy = make_policy((17, 256, 256, 6), (density, density, 1.0))
    done = export_c(policy, tmp_path)
    assert done.encodings[1:] == (way, "dense")
    assert_acts_alike(policy, tmp_path, ["gcc", "-O2"], [])


POLICIES = {
    "one link wide": ((1, 1, 1), 1.0, "td3"),
    "no hidden layer": ((5, 3), 0.6, "td3"),
    "one hidden layer, one action": ((3, 11, 1), 0.5, "td3"),
    "odd widths": ((7, 33, 65, 31, 5), 0.5, "td3"),
    "odd widths, few links": ((7, 33, 65, 31, 5), 0.07, "td3"),
    "no links at all": ((4, 9, 9, 2), 0.0, "td3"),
    "more than 255 links of an input": ((3, 600, 9, 2), (0.7, 0.4, 1.0), "td3"),
    "far links": ((40, 600, 2000, 3), (0.003, 0.0005, 0.01), "td3"),
    "sac": ((11, 40, 30, 4), 0.5, "sac"),
    "sac, one action": ((11, 40, 1), 0.3, "sac"),
}


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
@pytest.mark.parametrize("name", POLICIES)
def test_any_shape_under_sanitizers(make_policy, tmp_path, name, dtype):
    policy = make_policy(*POLICIES[name])
    done = export_c(policy, tmp_path, dtype=dtype)
    if name == "far links":
        assert "indices" in done.encodings
    assert_acts_alike(as_stored(policy, dtype), tmp_path, ["gcc", *SANITIZED], [], n=200)


@pytest.mark.parametrize("dtype", ["f32", "int8"])
@pytest.mark.parametrize("sizes", [(8, 64, 64, 4), (3, 2), (2, 5, 1)])
def test_chooses_as_a_policy_with_discrete_actions_does(make_policy, tmp_path, sizes, dtype):
    policy = make_policy(sizes, 0.5, "dqn")
    done = export_c(policy, tmp_path, dtype=dtype)
    stored = as_stored(policy, dtype)
    x = observations(policy, 2000)
    best = np.sort(stored.outputs(x), axis=1)
    clear = np.ones(len(x), bool) if sizes[-1] == 1 else best[:, -1] - best[:, -2] > 1e-4  # no ties by rounding
    assert clear.mean() > 0.9
    chosen = acted([compiled(tmp_path, ["gcc", *SANITIZED])], x)[:, 0]
    np.testing.assert_array_equal(chosen[clear], stored.predict(x)[0][clear])
    assert dtype == "f32" or "another one is chosen for" in str(done)


def test_the_ends_of_the_box_are_met_exactly(make_policy, tmp_path):
    policy = make_policy((2, 4), 1.0)
    export_c(policy, tmp_path)
    actions = acted([compiled(tmp_path, ["gcc"])], np.array([[1e4, 1e4], [-1e4, -1e4], [1e4, -1e4]], np.float32))
    ends = np.stack([policy.low, policy.high])
    assert np.isin(actions, ends).all()


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_large_observations_act_as_in_python(make_policy, tmp_path, dtype):
    """What int8 sums up is larger than the weighted sum by a factor of up to 127 over the largest weight."""
    policy = make_policy((17, 32, 6), 0.5)
    export_c(policy, tmp_path, dtype=dtype)
    x = np.random.default_rng(1).uniform(-1, 1, (200, 17)).astype(np.float32)
    x *= np.logspace(30, 36.5, 200, dtype=np.float32)[:, None]
    expected = as_stored(policy, dtype).predict(x)[0]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(acted([compiled(tmp_path, ["gcc", "-O2"])], x), expected, rtol=1e-5, atol=1e-5)


def test_nan_stays_nan(make_policy, tmp_path):
    policy = make_policy((3, 5, 2), 1.0)
    export_c(policy, tmp_path)
    assert np.isnan(acted([compiled(tmp_path, ["gcc", "-O2"])], np.float32([[np.nan, 0, 0]]))).all()


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_memory_is_as_stated(make_policy, tmp_path, dtype):
    """The object file has as many bytes of constants as stated, nothing writable, and wants nothing but tanhf."""
    done = export_c(make_policy((17, 100, 90, 6), (0.5, 0.05, 1.0)), tmp_path, dtype=dtype)
    run(["gcc", *STRICT, "-O0", "-fno-pic", "-c", done.source, "-o", tmp_path / "policy.o"])
    symbols = [line.split() for line in run(["nm", "-S", tmp_path / "policy.o"]).stdout.splitlines()]
    assert (
        sum(int(size, 16) for _, size, kind, _ in (s for s in symbols if len(s) == 4) if kind == "r")
        == done.flash_bytes
    )
    assert {s[-2] for s in symbols} == {"T", "t", "r", "U"}
    assert [s[-1] for s in symbols if s[-2] == "U"] == ["tanhf"]
    assert done.ram_bytes == 4 * (100 + 90)
    header = done.header.read_text()
    assert f"#define POLICY_FLASH_BYTES {done.flash_bytes}L\n" in header
    assert f"#define POLICY_RAM_BYTES {done.ram_bytes}L\n" in header
    assert f"{done.flash_bytes} bytes of constants (flash) and {done.ram_bytes} bytes" in header


@pytest.mark.parametrize("what", ["FLASH", "RAM"])
def test_a_false_figure_does_not_compile(make_policy, tmp_path, what):
    done = export_c(make_policy(), tmp_path)
    text = done.header.read_text()
    done.header.write_text(re.sub(rf"(_{what}_BYTES) (\d+)L", lambda m: f"{m[1]} {int(m[2]) + 4}L", text))
    failed = run(["gcc", *STRICT, "-c", done.source, "-o", tmp_path / "x.o"])
    assert f"policy_{what.lower()}_is_as_stated" in failed.stderr


def test_half_the_links_take_about_half_the_flash(make_policy, tmp_path):
    flash = {d: export_c(make_policy((17, 256, 256, 6), (d, d, 1.0)), tmp_path).flash_bytes for d in (1.0, 0.5, 0.1)}
    assert flash[0.5] < 0.56 * flash[1.0]
    assert flash[0.1] < 0.17 * flash[1.0]


def test_two_policies_in_one_program_from_cpp(make_policy, tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    for name in ("walk", "run"):
        export_c(make_policy((3, 5, 2), seed=len(name)), tmp_path, name)
    (tmp_path / "both.cpp").write_text(
        '#include "run.h"\n#include "walk.h"\n'
        "int main() { walk_memory w; run_memory r; float o[WALK_N_OBS] = {}, a[RUN_N_ACT];"
        " walk_act(o, a, &w); run_act(o, a, &r); return 0; }\n"
    )
    for name in ("walk", "run"):
        assert not run(["gcc", *STRICT, "-c", tmp_path / f"{name}.c", "-o", tmp_path / f"{name}.o"]).stderr
    objects = [tmp_path / "walk.o", tmp_path / "run.o"]
    done = run(
        [
            "g++",
            "-std=c++11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            tmp_path / "both.cpp",
            *objects,
            "-lm",
            "-o",
            tmp_path / "both",
        ]
    )
    assert done.returncode == 0, done.stderr
    assert run([tmp_path / "both"]).returncode == 0


def test_a_tasks_name_cannot_end_the_comment(make_policy, tmp_path):
    export_c(make_policy(task="*/ int x = $name; /* \\\n??/ é"), tmp_path)
    compiled(tmp_path, ["gcc"])


def test_same_policy_same_text(make_policy, tmp_path):
    first, second = (export_c(make_policy(), tmp_path / where) for where in "ab")
    assert first.source.read_text() == second.source.read_text()
    assert first.header.read_text() == second.header.read_text()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("my policy", "my_policy"),
        ("half-cheetah.v5", "half_cheetah_v5"),
        ("5th", "policy_5th"),
        ("", "policy"),
        ("___", "policy"),
        ("_mine", "mine"),
        ("while", "policy_while"),
        ("Läufer", "Laufer"),
        ("走る", "policy"),
        ("../up", "up"),
        ("a" * 60, "a" * 48),
        ("x\n", "x"),
    ],
)
def test_names_that_are_none_in_c(make_policy, tmp_path, name, nearest):
    with pytest.raises(ExportError, match=re.escape(f"is not a C identifier: use {nearest!r}")):
        export_c(make_policy(), tmp_path / "out", name)
    assert not (tmp_path / "out").exists()
    export_c(make_policy(), tmp_path / "out", nearest)
    compiled(tmp_path / "out", ["gcc"], nearest)


def test_says_what_a_person_wants_to_know(make_policy, tmp_path):
    text = str(export_c(make_policy((17, 64, 64, 6)), tmp_path, dtype="int8"))
    assert re.search(r"flash [\d,]+ bytes, RAM 512 bytes, weights int8", text)
    assert re.search(
        r"differ from the policy's: at most \d\.\d+%, \d\.\d+% on average, of half the range \(1000 obs", text
    )
    assert "differ" not in str(export_c(make_policy(), tmp_path))
