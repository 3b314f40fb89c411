"""Sweeps: grids of runs, planning missing runs, and training them on this machine or on a Ray cluster.

Results are evaluated in `analysis/`.
"""

from rewirl.experiments.sweep.sweep import Sweep, Watcher, run_sweep

__all__ = ["Sweep", "Watcher", "run_sweep"]
