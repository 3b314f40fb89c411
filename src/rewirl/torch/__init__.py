"""Dynamic sparse training for any PyTorch module, by the same rules as the engine."""

from rewirl.torch.wiring import Wiring, sparsify

__all__ = ["Wiring", "sparsify"]
