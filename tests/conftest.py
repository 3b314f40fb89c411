"""Shared settings of the tests."""

import signal
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "support"))  # which other processes run as programs too

# In the background of a script Ctrl-C is ignored, and that is handed down: what tests start must not be deaf to it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that what failed fails again. `--hypothesis-profile=search` looks for new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.register_profile("sanitizers", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("fixed")
