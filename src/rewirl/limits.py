"""The limits of the core (native/runtime/limits.h), for checks before the core is called, or without it.

A policy runs on NumPy alone, so these are not read from the core; a test compares them with what it exports.
"""

MAX_WIDTH = 65_535
"""Widest layer: indices have 16 bits."""
MAX_BATCH = 2**30
"""Most samples in a batch."""
MAX_THREADS = 256
"""Most threads."""
BLOCKS = (1, 2, 4)
"""Numbers of outputs that may share one input as a block."""
LOG_STD = (-20.0, 2.0)
"""SAC's log-std is clamped to this range."""
