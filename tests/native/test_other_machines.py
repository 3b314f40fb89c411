"""The core on machines that this one is not: 64-bit ARM under emulation, and vectors of 16 numbers."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
NETWORKS = sorted((NATIVE / "networks").glob("*.cpp"))
SOURCES = [NATIVE / "kernels/kernels.cpp", *NETWORKS, NATIVE / "updates/losses.cpp", NATIVE / "runtime/runtime.cpp"]
FLAGS = ["-std=gnu++17", "-O2", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-static"]


def build(compiler: str, name: str, out: Path, *flags: str) -> None:
    defines = ["-DREWIRL_NAMESPACE=baseline", f'-DREWIRL_NAME="{name}"', "-DREWIRL_ENTRY=kernels_baseline"]
    # only the kernels asked for are in this program
    alone = ["-DREWIRL_ONLY_BASELINE"]
    command = [compiler, *FLAGS, *flags, *defines, *alone, f"-I{NATIVE}", *map(str, SOURCES)]
    subprocess.run([*command, str(Path(__file__).with_name("selfcheck.cpp")), "-o", str(out), "-pthread"], check=True)


def run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_vectors_of_16_numbers(tmp_path: Path) -> None:
    """What AVX-512 computes, by whatever this machine has: the compiler splits the vectors."""
    build("g++", "wide", tmp_path / "check", "-DREWIRL_WIDTH=16")
    assert run(str(tmp_path / "check")).startswith("wide: ")


def test_64_bit_arm(tmp_path: Path) -> None:
    compiler, emulator = "aarch64-linux-gnu-g++", "qemu-aarch64"
    if platform.machine() == "aarch64":
        pytest.skip("this is one, and the other tests run on it")
    if not (shutil.which(compiler) and shutil.which(emulator)):
        pytest.skip(f"needs {compiler} and {emulator} (Debian: g++-aarch64-linux-gnu, qemu-user)")
    build(compiler, "neon", tmp_path / "check")
    assert run(emulator, str(tmp_path / "check")).startswith("neon: ")
