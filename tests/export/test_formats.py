"""What the command line calls: the right form, and refusals before anything is written."""

from __future__ import annotations

import os

import pytest

from rewirl.errors import Refused
from rewirl.export import CExport, ExportError, OnnxExport, export


def test_c_and_onnx(make_policy, tmp_path):
    pytest.importorskip("onnx")
    assert isinstance(export(make_policy(), "c", tmp_path / "deep" / "c", name="walk", dtype="f16"), CExport)
    assert sorted(os.listdir(tmp_path / "deep" / "c")) == ["walk.c", "walk.h", "walk_main.c"]
    done = export(make_policy(), "onnx", tmp_path / "o", sparse=True)
    assert isinstance(done, OnnxExport)
    assert done.path == tmp_path / "o" / "policy.onnx"
    assert export(make_policy(), "onnx", tmp_path / "o" / "x.onnx").path == tmp_path / "o" / "x.onnx"
    assert sorted(os.listdir(tmp_path / "o")) == ["policy.onnx", "x.onnx"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "onxx"}, "cannot export to 'onxx', did you mean 'onnx'\\?"),
        ({"to": "tflite"}, "cannot export to 'tflite': c or onnx is right"),
        ({"to": "c", "name": "my policy"}, "'my policy' is not a C identifier: use 'my_policy'"),
        ({"to": "c", "dtype": "f8"}, "dtype must be f32, f16 or int8, not 'f8'"),
        ({"to": "c", "sparse": True}, "--sparse is for ONNX"),
        ({"to": "onnx", "dtype": "int8"}, "weights of type 'int8' are for C source"),
        ({"to": "onnx", "name": "../up"}, "'../up' cannot be a file name"),
    ],
)
def test_refusals(make_policy, tmp_path, options, message):
    with pytest.raises(ExportError, match=message) as caught:
        export(make_policy(), out=tmp_path / "out", **options)
    assert isinstance(caught.value, Refused)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("to", ["c", "onnx"])
def test_a_place_that_cannot_be_written_is_refused(make_policy, tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnx")
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ExportError, match=r"cannot write to .*file"):
            export(make_policy(), to, place)
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(ExportError, match=r"cannot write to .*locked: Permission denied"):
            export(make_policy(), to, tmp_path / "locked")
    assert (tmp_path / "file").read_text() == ""
