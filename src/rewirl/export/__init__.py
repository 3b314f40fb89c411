"""A trained policy for other machines: C source and ONNX.

The policy itself and its file are in `policies/`.
"""

from rewirl.export.c_source import CExport, export_c
from rewirl.export.errors import ExportError
from rewirl.export.formats import export
from rewirl.export.onnx_graph import OnnxExport, export_onnx

__all__ = ["CExport", "ExportError", "OnnxExport", "export", "export_c", "export_onnx"]
