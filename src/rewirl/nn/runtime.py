"""The instruction set and threads of the kernels."""

import warnings
from collections.abc import Callable

from rewirl import _core
from rewirl.nn.cores import available_cores

isa = _core.isa
"""The instruction set in use: `baseline` (on ARM `neon`), `avx2` or `avx512`."""
available_isas = _core.available_isas
"""Instruction sets that this build and this machine support, slowest first."""
select_isa = _core.select_isa
"""Selects an instruction set (at start: environment variable REWIRL_ISA). Results differ in their last bits."""
threads = _core.threads
"""Threads that kernels use."""
kernel_seconds = _core.kernel_seconds
"""Seconds spent inside the core since the process started; the rest of a run is Python."""
compiler = _core.compiler
"""Compiler of the core."""
sources = _core.sources
"""A hash of the core's C++ sources."""


def set_threads(n: int, warn: Callable[[str], object] | None = None) -> None:
    """Sets the number of threads. Results are bit-identical for any number.

    More threads than available cores only cost time: `warn`, or else `warnings.warn`, is called with a message.
    """
    cores = available_cores()
    _core.set_threads(n, n <= cores)
    if n > cores:
        text = f"{n} threads share {cores} available core{'s' * (cores > 1)}: {cores} would be faster"
        if warn:
            warn(text)
        else:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
