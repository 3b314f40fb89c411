"""The paper's experiments: presets, sweeps, metrics and reports."""

from rewirl.experiments.grid import Grid, GridRun, parse_grid
from rewirl.experiments.plan import Job, Plan, plan
from rewirl.experiments.presets import load_grid, preset_names

__all__ = ["Grid", "GridRun", "Job", "Plan", "load_grid", "parse_grid", "plan", "preset_names"]
