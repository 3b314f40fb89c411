"""Export of a policy in any format, as used by the command line."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewirl.export.c_source import CExport, export_c
from rewirl.export.errors import ExportError
from rewirl.export.onnx_graph import OnnxExport, export_onnx
from rewirl.export.output_folder import no_new_folders
from rewirl.policies.policy import Policy

FORMS = ("c", "onnx")


def export(
    policy: Policy,
    to: str,
    out: str | Path,
    *,
    name: str = "policy",
    dtype: str = "f32",
    sparse: bool = False,
    observations: NDArray[np.float32] | None = None,
) -> CExport | OnnxExport:
    """Writes `policy` as C source (`to="c"`) into the folder `out`; or as ONNX (`to="onnx"`) to the file `out` if that
    ends in `.onnx`, else to `name`.onnx in the folder `out`. Printing the result describes it.

    `dtype` and `observations` are for C (see `export_c`), `sparse` is for ONNX (see `export_onnx`).
    """
    if to not in FORMS:
        near = get_close_matches(to, FORMS, 1, 0.4)
        raise ExportError(
            f"cannot export to {to!r}" + (f", did you mean {near[0]!r}?" if near else ": c or onnx is right")
        )
    if to == "c":
        if sparse:
            raise ExportError("--sparse is for ONNX: C source always contains links only")
        with no_new_folders(Path(out)):
            return export_c(policy, out, name, dtype, observations)
    if dtype != "f32":
        raise ExportError(f"weights of type {dtype!r} are for C source: ONNX uses f32")
    if not name or Path(name).name != name:
        raise ExportError(f"{name!r} cannot be a file name: use one without folders")
    out = Path(out)
    file = out if out.suffix == ".onnx" and not out.is_dir() else out / f"{name}.onnx"
    with no_new_folders(file.parent):
        return export_onnx(policy, file, sparse)
