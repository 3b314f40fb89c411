"""Which systems rewirl runs on."""

from __future__ import annotations

import sys

SYSTEMS = {
    "tested": "Linux x86-64 (SSE2, AVX2, AVX-512), Linux ARM64 (under emulation)",
    "expected to work": "macOS ARM64",
    "not supported": "Windows (use WSL 2)",
}
"""Status of each system."""


def check() -> None:
    """ImportError with a reason on systems without the POSIX modules that rewirl needs."""
    if sys.platform == "win32":
        raise ImportError("rewirl does not run on Windows: use Linux, for example in WSL 2")
