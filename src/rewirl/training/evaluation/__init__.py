"""Evaluation: returns of complete episodes without exploration noise.

In this process, in another one, or in vector environments.

Statistics over runs are in `experiments/analysis`.
"""

from rewirl.training.evaluation.episodes import (
    Evaluation,
    Snapshot,
    check_fits,
    evaluate,
    evaluate_policy,
    evaluation_seed,
)

__all__ = ["Evaluation", "Snapshot", "check_fits", "evaluate", "evaluate_policy", "evaluation_seed"]
