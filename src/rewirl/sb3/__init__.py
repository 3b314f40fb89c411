"""Dynamic sparse training for agents of Stable-Baselines3."""

from rewirl.sb3.callback import SparseTraining

__all__ = ["SparseTraining"]
