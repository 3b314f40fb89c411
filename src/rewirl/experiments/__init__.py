"""The paper's experiments: presets, sweeps, metrics and reports."""

from rewirl.experiments.grid import Grid, GridRun, parse_grid
from rewirl.experiments.planning import Job, Plan, plan
from rewirl.experiments.presets import load_grid, preset_names
from rewirl.experiments.sweep import Sweep, Watcher, run_sweep

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
