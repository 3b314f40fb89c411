"""Alias of `policies/` and `export/` for existing code: a trained policy as one file, C source, ONNX.

Nothing lives here.
"""

from rewirl.export import CExport, ExportError, OnnxExport, export, export_c, export_onnx
from rewirl.policies import Policy, PolicyFileError, PolicyLayer

__all__ = [
    "CExport",
    "ExportError",
    "OnnxExport",
    "Policy",
    "PolicyFileError",
    "PolicyLayer",
    "export",
    "export_c",
    "export_onnx",
]
