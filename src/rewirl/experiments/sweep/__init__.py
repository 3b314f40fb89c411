"""Sweeps: grids of runs, what is missing of them, and who does it, on this machine or on a Ray cluster.

What comes of the runs is looked at in `analysis/`.
"""

from rewirl.experiments.sweep.sweep import Sweep, Watcher, run_sweep

__all__ = ["Sweep", "Watcher", "run_sweep"]
