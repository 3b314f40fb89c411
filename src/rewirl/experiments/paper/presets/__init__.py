"""The paper's experiments by name: grids in the form that users write, in TOML files beside this one.

Grids are explained in `sweep/grid.py`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from rewirl.errors import Refused, nearest
from rewirl.experiments.sweep.grid import Grid, parse_grid, read_grid


def preset_names() -> list[str]:
    """Names of all presets.

    >>> "paper/td3" in preset_names()
    True
    """
    return sorted(
        f"{group.name}/{entry.name.removesuffix('.toml')}"
        for group in files(__name__).iterdir()
        if group.is_dir()
        for entry in group.iterdir()
        if entry.name.endswith(".toml")
    )


def load_grid(name: str | Path) -> Grid:
    """A preset by its name, or a user's own grid by its file.

    >>> len(load_grid("paper/td3").runs())
    100
    """
    text = str(name)
    if isinstance(name, Path) or text.endswith(".toml"):
        return read_grid(Path(name))
    if text not in preset_names():
        known = preset_names()
        hint = nearest(text, known) or nearest(f"paper/{text}", known)
        raise Refused(f"there is no preset {text!r}{hint} (presets: {', '.join(known)}; your own grid is a .toml file)")
    group, _, last = text.partition("/")
    return parse_grid(files(__name__).joinpath(group, f"{last}.toml").read_text("utf-8"), text)
