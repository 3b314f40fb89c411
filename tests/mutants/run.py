"""Shows that the tests catch deliberate faults: `python tests/mutants/run.py [part of a name ...]`, or `make mutants`.

Each fault of mutants.toml is put into a copy of the sources, and the tests that it names must fail there, but pass
without it. Faults in C++ are compiled into the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COPIED = ("src", "native", "tests", "examples", "docs", "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE")


def mutants() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())["mutant"]
    return found


def failure(tree: Path, tests: list[str]) -> str:
    """What pytest says if one of the tests fails with the package of a tree; else nothing."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # Before the installed package, which the tests would import otherwise.
    start = f"import rewirl; assert rewirl.__file__.startswith({str(tree)!r}), rewirl.__file__"
    (tree / "sitecustomize.py").write_text(
        "import sys\nsys.meta_path = [f for f in sys.meta_path if 'editable' not in type(f).__module__.lower()]\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
    checked = subprocess.run([sys.executable, "-c", start], cwd=tree, env=environment, capture_output=True, text=True)
    if checked.returncode:
        raise SystemExit(f"the copy is not what is imported: {checked.stderr}")
    done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"the tests could not be run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout if done.returncode else ""


def copied(tree: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        elif source.exists():
            shutil.copy(source, tree / name)
    core = next(Path(place).parent for place in _cores())
    for library in core.glob("_core*.so"):
        shutil.copy(library, tree / "src" / "rewirl" / library.name)


def _cores() -> list[str]:
    import rewirl._core

    return [str(rewirl._core.__file__)]


def compiled(tree: Path) -> None:
    """The core of a tree, in place of the copied one."""
    target = tree / "wheel"
    shutil.rmtree(target, ignore_errors=True)  # pip would keep what an earlier fault left there
    words = ["pip", "install", "--quiet", "--no-deps", "--target", str(target), str(tree)]
    subprocess.run([sys.executable, "-m", *words], check=True)
    for library in (target / "rewirl").glob("_core*.so"):
        shutil.copy(library, tree / "src" / "rewirl" / library.name)


def main(wanted: list[str]) -> int:
    chosen = [mutant for mutant in mutants() if not wanted or any(part in mutant["name"] for part in wanted)]
    survived = []
    with tempfile.TemporaryDirectory(prefix="rewirl-mutants-") as folder:
        tree = Path(folder, "tree")
        copied(tree)
        if said := failure(tree, sorted({test for mutant in chosen for test in mutant["tests"]})):
            raise SystemExit(f"the tests fail without a fault: mend them first\n{said[-3000:]}")
        for mutant in chosen:
            file = tree / mutant["file"]
            before, libraries = file.read_text(), {lib: lib.read_bytes() for lib in (tree / "src/rewirl").glob("*.so")}
            if before.count(mutant["search"]) != 1:
                raise SystemExit(f"{mutant['name']}: {mutant['file']} does not have the line that it changes, once")
            file.write_text(before.replace(mutant["search"], mutant["replace"]))
            if mutant["file"].startswith("native/"):
                compiled(tree)
                if all(library.read_bytes() == content for library, content in libraries.items()):
                    raise SystemExit(f"{mutant['name']}: the compiled core is the one without the fault")
            caught = bool(failure(tree, mutant["tests"]))
            file.write_text(before)
            for library, content in libraries.items():
                library.write_bytes(content)
            print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant['name']}", flush=True)
            survived += [] if caught else [mutant["name"]]
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
