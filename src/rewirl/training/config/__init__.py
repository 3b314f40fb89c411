"""The config of a run: every option with its meaning, checked; read from and written as TOML.

The options take effect in `agents/` and `topology/`; `cli/` turns them into flags.
"""

from rewirl.training.config.fields import default_of, hints, meanings_of
from rewirl.training.config.option_names import BY_LENGTH, LINKS, REWIRING, overlay
from rewirl.training.config.run_config import SEEDS, RunConfig, all_hints, parse_toml

__all__ = [
    "BY_LENGTH",
    "LINKS",
    "REWIRING",
    "SEEDS",
    "RunConfig",
    "all_hints",
    "default_of",
    "hints",
    "meanings_of",
    "overlay",
    "parse_toml",
]
