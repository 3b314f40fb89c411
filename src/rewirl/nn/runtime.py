"""Which kernels run, on how many threads."""

from rewirl import _core

isa = _core.isa
"""The instruction set in use: `baseline` (on ARM `neon`), `avx2` or `avx512`."""
available_isas = _core.available_isas
"""Those that this build and this machine have, slowest first."""
select_isa = _core.select_isa
"""Use another one from now on (at start: the environment variable REWIRL_ISA). Results differ in their last bits."""
threads = _core.threads
"""Threads that kernels use."""
set_threads = _core.set_threads
"""Use so many from now on. Results are the same to the bit for any number."""
kernel_seconds = _core.kernel_seconds
"""Seconds spent inside the core since the process began; the rest of a run is Python."""
