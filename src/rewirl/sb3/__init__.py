"""Dynamic sparse training for agents of Stable-Baselines3, and conversion between them and the engine.

The rules are those of `topology/`; any other PyTorch module is made sparse by `torch/`.
"""

try:
    from rewirl.sb3.callback import SparseTraining
    from rewirl.sb3.conversion import agent_from_sb3, from_sb3, to_sb3
except ModuleNotFoundError as missing:
    if (missing.name or "").split(".")[0] not in ("torch", "stable_baselines3"):
        raise
    raise ModuleNotFoundError(
        "rewirl.sb3 needs Stable-Baselines3 and PyTorch: pip install 'rewirl[sb3]'", name=missing.name
    ) from None

__all__ = ["SparseTraining", "agent_from_sb3", "from_sb3", "to_sb3"]
