"""Policy files as an attacker, a broken disk or a hurried person makes them, each with the refusal that it must meet.

`python tests/policies/attacks.py FOLDER` writes them all; tests/attacks/policy has those below 10 kB.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Tensors = dict[str, np.ndarray]
Texts = dict[str, str]


def good() -> tuple[Tensors, Texts]:
    """A policy 3 → 2 → 1 with four links."""
    tensors = {
        "layer.0.indptr": np.array([0, 2, 3], "<i4"),
        "layer.0.columns": np.array([0, 2, 1], "<i4"),
        "layer.0.weights": np.array([0.5, -1.5, 2.0], "<f4"),
        "layer.0.bias": np.array([0.1, -0.2], "<f4"),
        "layer.1.indptr": np.array([0, 1], "<i4"),
        "layer.1.columns": np.array([1], "<i4"),
        "layer.1.weights": np.array([0.75], "<f4"),
        "layer.1.bias": np.array([0.25], "<f4"),
        "action.low": np.array([-2.0], "<f4"),
        "action.high": np.array([3.0], "<f4"),
    }
    texts = {
        "format": "rewirl-policy",
        "format_version": "1",
        "rewirl": "0.1.0",
        "algorithm": "td3",
        "task": "Toy-v0",
        "sizes": "3,2,1",
        "links": "3,1",
    }
    return tensors, texts


def kind(array: np.ndarray) -> str:
    return {"<f4": "F32", "<i4": "I32", "<f8": "F64", "<i8": "I64"}[array.dtype.str]


def seal(tensors: Tensors, texts: Texts) -> Texts:
    """The SHA-256 of a file, as its format says."""
    digest = hashlib.sha256()
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, kind(array), array.shape]).encode() + array.tobytes())
    digest.update(json.dumps(sorted(texts.items())).encode())
    return texts | {"sha256": digest.hexdigest()}


def header_of(tensors: Tensors, texts: Texts) -> dict[str, Any]:
    header: dict[str, Any] = {"__metadata__": dict(sorted(texts.items()))}
    at = 0
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": kind(array), "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    return header


def packed(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def data_of(tensors: Tensors) -> bytes:
    return b"".join(array.tobytes() for _, array in sorted(tensors.items()))


def sealed(tensors: Tensors, texts: Texts) -> bytes:
    return packed(header_of(tensors, seal(tensors, texts)), data_of(tensors))


def with_tensors(**changes: np.ndarray | None) -> bytes:
    """A file with a true seal whose arrays are changed (None: left out). Names have _ for dots."""
    tensors, texts = good()
    for name, array in changes.items():
        tensors.pop(name.replace("_", "."), None)
        if array is not None:
            tensors[name.replace("_", ".")] = array
    return sealed(tensors, texts)


def normalised(version: str = "3", **changes: np.ndarray | None) -> bytes:
    """A file with a true seal whose observations are normalised, with other statistics (None: left out)."""
    tensors, texts = good()
    statistics = {"mean": f4(0, -1, 2), "std": f4(1, 0.5, 3), **changes}
    tensors |= {f"observation.{name}": array for name, array in statistics.items() if array is not None}
    return sealed(tensors, {**texts, "format_version": version})


def with_texts(**changes: str | None) -> bytes:
    """A file with a true seal whose metadata is changed (None: left out)."""
    tensors, texts = good()
    return sealed(tensors, {name: text for name, text in {**texts, **changes}.items() if text is not None})


def with_header(change: Callable[[dict[str, Any]], object], data: bytes | None = None) -> bytes:
    """A file whose header is changed after it was sealed."""
    tensors, texts = good()
    header = header_of(tensors, seal(tensors, texts))
    change(header)
    return packed(header, data_of(tensors) if data is None else data)


def entry(name: str, **values: object) -> bytes:
    return with_header(lambda header: header[name].update(values))


class Bomb:
    """Unpickled, it leaves a file behind that the tests look for."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (Path("rewirl-was-unpickled"),)  # type: ignore[return-value]


def i4(*values: int) -> np.ndarray:
    return np.array(values, "<i4")


def f4(*values: float) -> np.ndarray:
    return np.array(values, "<f4")


def attacks() -> dict[str, tuple[bytes, str]]:
    """Name → content, and a pattern of what must be said about it."""
    tensors, texts = good()
    text = json.dumps(header_of(tensors, seal(tensors, texts)), separators=(",", ":")).encode()
    data = data_of(tensors)
    twice = text.replace(b'"layer.0.bias":', b'"layer.0.bias":{"dtype":"F32"},"layer.0.bias":')
    huge = 2**62
    return {
        # not a policy at all
        "empty": (b"", "the file is empty"),
        "seven-bytes": (b"\x10" + bytes(6), "only 7 bytes"),
        "zeros": (bytes(4096), "its header would have 0 of"),
        "text": (b"weights: 1, 2, 3\n" * 20, "was truncated or is not a policy file"),
        **{f"pickle-{p}": (pickle.dumps(Bomb(), p), "pickle|not a policy file") for p in range(6)},
        "zip": (b"PK\x03\x04" + bytes(100), "pickle or a zip archive"),
        "other-format": (
            with_texts(format="somebody-elses"),
            "this is not a policy file: its format is 'somebody-elses'",
        ),
        "no-metadata": (with_header(lambda h: h.pop("__metadata__")), "its format is None"),
        "newer": (with_texts(format_version="4", rewirl="1.4.0"), r"format version 4: it needs rewirl ≥ 1\.4\.0"),
        "newer-by-nobody": (with_texts(format_version="4", rewirl="rm -rf"), "needs rewirl ≥ a later version"),
        "version-zero": (with_texts(format_version="0"), "format version '0' is not a number"),
        "version-text": (with_texts(format_version="one"), "format version 'one' is not a number"),
        # headers with lies about lengths
        "header-length-max": (b"\xff" * 8 + text + data, "its header would have 18446744073709551615 of"),
        "header-length-beyond": ((10**6).to_bytes(8, "little") + text + data, "its header would have 1000000 of"),
        "header-too-long": (((1 << 20) + 8).to_bytes(8, "little") + b" " * (2 << 20), "its header would have 1048584"),
        "array-of-exabytes": (entry("layer.0.weights", shape=[huge // 4], data_offsets=[0, huge]), "starts at byte 0"),
        "last-array-endless": (
            entry("layer.1.weights", shape=[huge], data_offsets=[64, 64 + 4 * huge]),
            "not whole numbers",
        ),
        "shape-of-exabytes": (entry("layer.0.weights", shape=[huge]), "does not fit its bytes"),
        "shape-overflows-64-bits": (entry("layer.0.bias", shape=[2**32, 2**32, 2]), "does not fit its bytes"),
        "shape-product-wraps": (entry("layer.0.bias", shape=[2**62 + 2]), "does not fit its bytes"),
        "number-of-5000-digits": (
            packed(b'{"x":{"dtype":"F32","shape":[' + b"9" * 5000 + b"]}}", b""),
            "not valid JSON",
        ),
        "nested-100000-deep": (packed(b"[" * 100_000, b""), "not valid JSON"),
        "overlapping": (entry("layer.0.bias", data_offsets=[0, 8]), "starts at byte 0 of the data instead of"),
        "gap": (entry("layer.0.bias", data_offsets=[12, 20]), "starts at byte 12 of the data instead of 8"),
        "ends-before-it-starts": (entry("layer.0.bias", data_offsets=[16, 8]), "does not fit its bytes 16 to 8"),
        "negative-offsets": (entry("layer.0.bias", data_offsets=[-8, 0]), "not whole numbers from 0 up"),
        "negative-shape": (entry("layer.0.bias", shape=[-2]), "not whole numbers from 0 up"),
        "three-offsets": (entry("layer.0.bias", data_offsets=[8, 16, 24]), "not whole numbers from 0 up"),
        "offsets-of-text": (entry("layer.0.bias", data_offsets=["8", "16"]), "not whole numbers from 0 up"),
        "offsets-of-floats": (entry("layer.0.bias", data_offsets=[8.0, 16.0]), "not whole numbers from 0 up"),
        "shape-true": (entry("layer.1.bias", shape=[True]), "not whole numbers from 0 up"),
        "shape-nothing": (entry("layer.0.bias", shape=None), "not whole numbers from 0 up"),
        "dtype-float64": (entry("layer.0.bias", dtype="F64"), "which does not fit its bytes 8 to 16"),
        "dtype-list": (entry("layer.0.bias", dtype=["F32"]), "must be F32 or I32"),
        "entry-with-more": (entry("layer.0.bias", code="1"), "a dtype, a shape and data_offsets, and nothing else"),
        "entry-a-number": (with_header(lambda h: h.update({"layer.0.bias": 1})), "a dtype, a shape and data_offsets"),
        "data-left-over": (with_header(lambda h: None, data + b"more"), "it was truncated or extended"),
        # headers that are not what they should be
        "header-list": (packed([1, 2], b""), "not a JSON object"),
        "header-not-utf8": (packed(b'{"\xff":1}', b""), "not valid JSON"),
        "header-nan": (packed(b'{"x":NaN}', b""), "NaN is not a finite number"),
        "a-name-twice": (packed(twice, data), "a name occurs twice"),
        "metadata-of-numbers": (with_header(lambda h: h["__metadata__"].update(task=3)), "'task' must be a string"),
        "metadata-list": (with_header(lambda h: h.update(__metadata__=[])), "metadata must map names to strings"),
        "metadata-control": (with_texts(task="\x1b[2J"), "control characters"),
        "metadata-surrogate": (with_texts(task="\udc00"), "control characters"),
        # a true seal on a false policy
        "no-seal": (with_header(lambda h: h["__metadata__"].pop("sha256")), "does not state its 'sha256'"),
        "seal-of-zeros": (
            with_header(lambda h: h["__metadata__"].update(sha256="0" * 64)),
            "its SHA-256 has changed",
        ),
        "task-renamed": (with_header(lambda h: h["__metadata__"].update(task="Other")), "its SHA-256 has changed"),
        "metadata-added": (with_header(lambda h: h["__metadata__"].update(more="x")), "its SHA-256 has changed"),
        "arrays-swapped": (
            with_header(
                lambda h: h.update({"layer.1.bias": h["layer.1.weights"], "layer.1.weights": h["layer.1.bias"]})
            ),
            "its SHA-256 has changed",
        ),
        "missing-array": (with_tensors(layer_0_bias=None), "the array 'layer.0.bias' is missing"),
        "one-array-more": (with_tensors(layer_2_bias=f4(1)), "the array 'layer.2.bias' does not belong"),
        "links-miscounted": (with_texts(links="4,1"), r"'layer.0.columns' is I32 \(3,\): .* it must be I32 \(4,\)"),
        "links-of-one-layer": (with_texts(links="3"), "3 widths and 1 link counts"),
        "links-text": (with_texts(links="3,one"), "must be at most 100 integers"),
        "links-negative": (with_texts(links="3,-1"), "must be at most 100 integers"),
        "links-other-digits": (with_texts(links="3,١"), "must be at most 100 integers"),
        "a-thousand-layers": (with_texts(sizes=",".join(["1"] * 1001), links=",".join(["1"] * 1000)), "at most 100"),
        "sizes-wrong": (with_texts(sizes="3,3,1"), r"'layer.0.bias' is F32 \(2,\): .* it must be F32 \(3,\)"),
        "inputs-too-many": (with_texts(sizes="4000000000,2,1"), "layer 0: n_in must be from 1 to"),
        "inputs-too-few": (with_texts(sizes="2,2,1"), "layer 0: row 0 has column 2: columns must be from 0 to 1"),
        "inputs-none": (with_texts(sizes="0,2,1"), "layer 0: n_in must be from 1 to"),
        "no-sizes": (with_texts(sizes=None), "does not state its 'sizes'"),
        "no-task": (with_texts(task=None), "does not state its 'task'"),
        "unknown-algorithm": (with_texts(algorithm="ppo"), "the algorithm must be td3 or sac or dqn, not 'ppo'"),
        "discrete-in-a-box": (with_texts(algorithm="dqn"), "the array 'action.first' is missing"),
        "odd-sac": (with_texts(algorithm="sac"), "a sac policy has two for each dimension"),
        "weights-as-integers": (with_tensors(layer_0_weights=i4(1, 2, 3)), r"is I32 \(3,\): .* it must be F32 \(3,\)"),
        "weights-as-matrix": (
            with_tensors(layer_0_weights=f4(1, 2, 3)[None]),
            r"is F32 \(1, 3\): .* it must be F32 \(3,\)",
        ),
        "column-beyond": (
            with_tensors(layer_0_columns=i4(0, 3, 1)),
            "layer 0: row 0 has column 3: columns must be from 0",
        ),
        "column-far-beyond": (
            with_tensors(layer_0_columns=i4(0, 2**31 - 1, 1)),
            "layer 0: row 0 has column 2147483647",
        ),
        "column-negative": (with_tensors(layer_0_columns=i4(-1, 2, 1)), "layer 0: row 0 has column -1"),
        "columns-unsorted": (with_tensors(layer_0_columns=i4(2, 0, 1)), "layer 0: row 0 has column 0 after 2"),
        "column-twice": (with_tensors(layer_0_columns=i4(2, 2, 1)), "layer 0: row 0 has column 2 twice"),
        "indptr-falls": (with_tensors(layer_0_indptr=i4(0, 4, 3)), "layer 0: indptr falls"),
        "indptr-negative": (with_tensors(layer_0_indptr=i4(0, -5, 3)), "layer 0: indptr falls"),
        "indptr-ends-beyond": (with_tensors(layer_0_indptr=i4(0, 2, 9)), "layer 0: indptr ends at 9"),
        "indptr-starts-late": (with_tensors(layer_0_indptr=i4(1, 2, 3)), "layer 0: indptr starts at 1"),
        "weight-nan": (with_tensors(layer_0_weights=f4(1, np.nan, 3)), r"layer 0: weights\[1\] is nan"),
        "weight-infinite": (with_tensors(layer_1_weights=f4(np.inf)), r"layer 1: weights\[0\] is inf"),
        "bias-nan": (with_tensors(layer_1_bias=f4(np.nan)), r"layer 1: bias\[0\] is nan"),
        "box-nan": (with_tensors(action_low=f4(np.nan)), "finite lows below finite highs"),
        "mean-missing": (normalised(mean=None), "the array 'observation.mean' is missing"),
        "std-missing": (normalised(std=None), "the array 'observation.std' is missing"),
        "normalised-before-version-3": (normalised("2"), "the array 'observation.mean' does not belong"),
        "mean-short": (normalised(mean=f4(0, 1)), r"'observation.mean' is F32 \(2,\): .* it must be F32 \(3,\)"),
        "std-as-matrix": (normalised(std=f4(1, 2, 3)[None]), r"is F32 \(1, 3\): .* it must be F32 \(3,\)"),
        "std-as-integers": (normalised(std=i4(1, 2, 3)), r"is I32 \(3,\): .* it must be F32 \(3,\)"),
        "mean-nan": (normalised(mean=f4(0, np.nan, 1)), r"obs_mean\[1\] is nan: every number must be finite"),
        "std-infinite": (normalised(std=f4(1, 1, np.inf)), r"obs_std\[2\] is inf: every number must be finite"),
        "std-zero": (normalised(std=f4(1, 0, 1)), r"obs_std\[1\] is 0.0: a standard deviation must be above 0"),
        "std-negative": (normalised(std=f4(1, 1, -1)), r"obs_std\[2\] is -1.0: a standard deviation must be above 0"),
        "box-upside-down": (with_tensors(action_low=f4(4)), "finite lows below finite highs"),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (content, expected) in attacks().items():
        (folder / name).write_bytes(content)
        print(f"{name}: {expected}")
