"""A trained policy as one file, as C source, as ONNX."""

from rewirl.deploy.policy import Policy, PolicyFileError, PolicyLayer

__all__ = ["Policy", "PolicyFileError", "PolicyLayer"]
