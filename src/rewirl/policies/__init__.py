"""A trained policy: in memory, and as one file.

Needs only NumPy and safetensors, not the core or environments. Other formats are in `export/`.
"""

from rewirl.policies.policy import Policy, PolicyLayer
from rewirl.policies.sealed_file import PolicyFileError

__all__ = ["Policy", "PolicyFileError", "PolicyLayer"]
