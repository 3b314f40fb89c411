"""TD3, SAC, CrossQ and DQN with the interface of Stable-Baselines3 (learn, predict, save, load), callbacks, files.

The algorithms are in `agents/`, runs and run folders in `training/` and `storage/`.
"""

from rewirl.learners.callbacks import Callback, EarlyStopping, PeriodicSave
from rewirl.learners.learner import DQN, SAC, TD3, CrossQ, Learner

__all__ = ["DQN", "SAC", "TD3", "Callback", "CrossQ", "EarlyStopping", "Learner", "PeriodicSave"]
