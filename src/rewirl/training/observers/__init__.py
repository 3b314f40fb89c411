"""Watching a run: the observer's interface, loggers (TensorBoard, Weights & Biases), speed and remaining time.

Displays on the terminal are in `cli/ui/`.
"""

from rewirl.training.observers.observer import Everyone, Observer

__all__ = ["Everyone", "Observer"]
