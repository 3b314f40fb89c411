"""The house rules that can be checked: who may import whom, and what a folder says and holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "rewirl"
LAYERS = (
    ("errors", "files", "limits", "memory", "platforms", "untrusted"),
    ("_core",),
    ("topology",),
    ("nn",),
    ("policies",),
    ("export",),
    ("agents",),
    ("envs",),
    ("training",),
    ("storage",),
    ("learners",),
    ("experiments",),
    ("cli",),
)
"""From the bottom: a module imports only from its own layer and those below. `learners` has the public TD3 and SAC."""
BESIDE = {
    "torch": {"errors", "topology", "torch"},
    "sb3": {"errors", "topology", "nn", "policies", "agents", "torch", "sb3"},
    "deploy": {"policies", "export"},
}
"""Folders that stand beside the layers, and what they may import."""
DOORS = {"nn"}
"""The folders that may import the core."""
SIBLINGS = 13
"""Modules and folders in one folder, at most."""

RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FOLDERS = sorted(path.parent for path in ROOT.rglob("*.py"))


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in RANK)


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """The layers that a module imports from, with the line; for types alone, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            names = [f"rewirl.{alias.name}" for alias in node.names] if module == "rewirl" else [module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rewirl" and len(parts) > 1:
                yield parts[1], node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    here = layer_of(path)
    for other, line in imported(path):
        where = f"{path.relative_to(ROOT)}:{line} imports rewirl.{other}"
        if here in BESIDE:
            assert other in BESIDE[here], where
        elif other in RANK:  # else a name of the package itself, such as __version__
            assert RANK[other] <= RANK[here], f"{where}, which is above it"
        if other == "_core":
            assert here in DOORS, f"{where}: nn/ is the only door to the core"


def test_every_entry_of_the_package_has_its_layer() -> None:
    found = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {name for name in found if not name.startswith("_")} == (RANK.keys() | BESIDE.keys()) - {"_core"}


@pytest.mark.parametrize("folder", sorted(set(FOLDERS)), ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_folders_are_small_and_say_what_they_hold(folder: Path) -> None:
    init = folder / "__init__.py"
    assert init.exists(), f"{folder} has no __init__.py"
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
    assert text, f"{init} has no docstring that says what lives here, and what does not"
    siblings = [
        path.name
        for path in folder.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    ]
    if folder != ROOT:  # whose entries are the layers
        assert len(siblings) <= SIBLINGS, f"{folder} has {len(siblings)} entries: {sorted(siblings)}"
        assert len(text.splitlines()) >= 2, f"{init}: two lines at least, what lives here and what does not"


READERS = {
    "policies/sealed_file.py": "reads arrays of any size, after it has checked that the file is a regular one",
    "memory.py": "/proc and /sys",
    "nn/cores.py": "/proc and /sys",
    "storage/lock.py": "/proc",
    "storage/provenance.py": "/proc",
    "training/run_log.py": "/proc",
    "experiments/report/elements.py": "the package's own",
    "experiments/paper/presets/__init__.py": "the package's own",
}
"""The modules besides `untrusted` that open files for reading, and why."""


def test_files_are_read_in_one_place() -> None:
    """Else a pipe in place of a file makes a command wait, and a huge file takes all memory."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                method = called.attr if isinstance(called, ast.Attribute) else ""
                # os.open has flags, which say whether it waits; the other one is a constructor.
                opens = method == "open" and ast.unparse(called) not in ("os.open", "cls.open")
                if method in ("read_bytes", "read_text") or opens or ast.unparse(called) == "open":
                    found.add(str(path.relative_to(ROOT)))
    assert found == READERS.keys()
