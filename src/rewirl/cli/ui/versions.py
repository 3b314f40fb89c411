"""Versions of this installation."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from rewirl import nn
from rewirl.platforms import SYSTEMS


def versions() -> str:
    """Versions and settings for a bug report."""
    rows = {
        "rewirl": version("rewirl"),
        "compiler": nn.compiler,
        "instruction set": f"{nn.isa()} (of {', '.join(nn.available_isas())})",
        "threads": str(nn.threads()),
        "python": f"{sys.version.split()[0]} ({platform.python_implementation()})",
        **{name: _installed(name) for name in ("numpy", "gymnasium", "mujoco", "safetensors")},
        "system": platform.platform(),
        **SYSTEMS,
    }
    return "\n".join(f"{name:<18}{value}" for name, value in rows.items())


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
