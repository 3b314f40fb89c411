"""Evaluation: returns of whole episodes without exploration noise, here, in another process or in vectors.

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
