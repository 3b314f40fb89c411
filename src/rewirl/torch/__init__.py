"""Dynamic sparse training for any PyTorch module, by the same rules as the engine.

The rules are those of `topology/`; agents of Stable-Baselines3 are in `sb3/`.
"""

try:
    from rewirl.torch.wiring import Wiring, sparsify
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError("rewirl.torch needs PyTorch: pip install 'rewirl[torch]'", name="torch") from None

__all__ = ["Wiring", "sparsify"]
