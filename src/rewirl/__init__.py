"""Deep RL agents that rewire themselves while they learn.

>>> from rewirl import TD3, SET
>>> agent = TD3("Pendulum-v1", wiring=SET(), sparsity=0.5, seed=1, hidden=(16, 16), random_steps=100, eval_every=0)
>>> action, _ = agent.learn(200).predict([1.0, 0.0, 0.0])
>>> action.shape
(1,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rewirl import _aliases, platforms

if TYPE_CHECKING:
    from rewirl.learners import DQN as DQN
    from rewirl.learners import SAC as SAC
    from rewirl.learners import TD3 as TD3
    from rewirl.learners import Callback as Callback
    from rewirl.learners import CrossQ as CrossQ
    from rewirl.learners import EarlyStopping as EarlyStopping
    from rewirl.learners import PeriodicSave as PeriodicSave
    from rewirl.policies.policy import Policy as Policy
    from rewirl.topology import SET as SET
    from rewirl.topology import Dense as Dense
    from rewirl.topology import RigL as RigL
    from rewirl.topology import Rule as Rule
    from rewirl.topology import Static as Static
    from rewirl.training.evaluation.vector import evaluate_vector as evaluate_vector

    __version__: str

platforms.check()
_aliases.install()

# Imported on first use: a device that only needs Policy needs neither Gymnasium nor MuJoCo.
_HOMES = {
    **dict.fromkeys(("TD3", "SAC", "CrossQ", "DQN", "Callback", "EarlyStopping", "PeriodicSave"), "rewirl.learners"),
    "Policy": "rewirl.policies.policy",
    "evaluate_vector": "rewirl.training.evaluation.vector",
    **dict.fromkeys(("SET", "RigL", "Static", "Dense", "Rule"), "rewirl.topology"),
}

__all__ = [
    "DQN",
    "SAC",
    "SET",
    "TD3",
    "Callback",
    "CrossQ",
    "Dense",
    "EarlyStopping",
    "PeriodicSave",
    "Policy",
    "RigL",
    "Rule",
    "Static",
    "__version__",
    "evaluate_vector",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rewirl")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rewirl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
