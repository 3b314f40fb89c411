"""Many runs: presets of the paper, sweeps, tuning, analysis and reports.

Single runs are in `training/` and `storage/`.
"""

from rewirl.experiments.paper.presets import load_grid, preset_names
from rewirl.experiments.sweep.grid import Grid, GridRun, parse_grid
from rewirl.experiments.sweep.plan import Job, Plan, plan
from rewirl.experiments.sweep.sweep import Sweep, Watcher, run_sweep

__all__ = [
    "Grid",
    "GridRun",
    "Job",
    "Plan",
    "Sweep",
    "Watcher",
    "load_grid",
    "parse_grid",
    "plan",
    "preset_names",
    "run_sweep",
]
