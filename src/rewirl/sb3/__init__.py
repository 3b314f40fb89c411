"""Dynamic sparse training for agents of Stable-Baselines3, and conversion between them and the engine."""

from rewirl.sb3.callback import SparseTraining
from rewirl.sb3.conversion import agent_from_sb3, from_sb3, to_sb3

__all__ = ["SparseTraining", "agent_from_sb3", "from_sb3", "to_sb3"]
