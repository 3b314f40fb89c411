"""A trained policy as one file, as C source, as ONNX."""

from rewirl.deploy.c_source import CExport, export_c
from rewirl.deploy.errors import ExportError
from rewirl.deploy.export import export
from rewirl.deploy.onnx_graph import OnnxExport, export_onnx
from rewirl.deploy.policy import Policy, PolicyFileError, PolicyLayer

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
