"""A policy as an ONNX graph, from observations to actions in the environment's units, for any batch size."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rewirl.export.action_scaling import box_in_float32
from rewirl.export.errors import ExportError
from rewirl.export.output_folder import prepare_folder, refuse_folder
from rewirl.export.weights import apart, some_observations
from rewirl.files import write_aside
from rewirl.policies.layer import PolicyLayer
from rewirl.policies.policy import Policy
from rewirl.policies.scaling import CLIP

OPSET, IR_VERSION = 17, 8
"""Supported by runtimes since 2022, and sufficient for the graph."""
LARGEST = 2**31 - 2**20
"""Maximum bytes of weights: Protocol Buffers are limited to 2 GiB."""


@dataclass(frozen=True)
class OnnxExport:
    """The written file."""

    path: Path
    bytes: int
    """Size of the file."""
    difference: float | None
    """Largest distance of onnxruntime's actions from the policy's, in shares of half the range (1 for another choice);
    None without it."""

    def __str__(self) -> str:
        checked = "not checked: onnxruntime is not installed"
        if self.difference is not None:
            checked = "the actions are the policy's"
        if self.difference:
            checked = f"actions differ from the policy's by at most {self.difference:.1e} of half the range"
        return f"{self.path}\n{self.bytes:,} bytes, {checked}"


def export_onnx(policy: Policy, path: str | Path, sparse: bool = False) -> OnnxExport:
    """Writes the deterministic policy: input `observation` (n, n_obs), output `action` (n, n_act), n left open;
    discrete actions are (n).

    With `sparse`, sparse layers have sparse initializers: 12 bytes per link instead of 4 per weight of the dense layer,
    so that the file is smaller above 67% sparsity. onnxruntime converts them to dense matrices when it loads the file,
    so its speed and memory do not change.
    """
    onnx = _module("onnx")
    path = Path(path)
    acting = policy.acting()
    places = sum(layer.n_in * layer.n_out for layer in acting.layers)
    if 4 * places > LARGEST:
        raise ExportError(
            f"its {places} positions, which runtimes store densely, do not fit ONNX: the limit is {LARGEST // 4}"
        )
    prepare_folder(path.parent)
    refuse_folder(path)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes, dense, sparsely, x = [], [], [], "observation"
    for operator, name, values in _normalisation(acting):
        dense.append(numpy_helper.from_array(values, name))
        nodes.append(helper.make_node(operator, [x, name], [f"seen.{name}"], name=f"seen.{name}"))
        x = f"seen.{name}"
    for number, layer in enumerate(acting.layers):
        weights, bias, out = f"weights.{number}", f"bias.{number}", f"layer.{number}"
        if sparse and layer.density < 1:
            sparsely.append(_sparse(onnx, weights, layer))
        else:
            dense.append(numpy_helper.from_array(np.ascontiguousarray(layer.dense().T), weights))
        dense.append(numpy_helper.from_array(layer.bias, bias))
        nodes.append(helper.make_node("Gemm", [x, weights, bias], [out], name=out))
        x = out
        if number + 1 < len(acting.layers):
            x = f"relu.{number}"
            nodes.append(helper.make_node("Relu", [out], [x], name=x))
    constants, steps = _actions(acting)
    dense += [numpy_helper.from_array(values, name) for name, values in constants.items()]
    for number, (operator, operands, settings) in enumerate(steps):
        inputs = [x, *operands]
        x = "action" if number + 1 == len(steps) else operator.lower()
        nodes.append(helper.make_node(operator, inputs, [x], name=operator.lower(), **settings))
    real = onnx.TensorProto.FLOAT
    actions = (onnx.TensorProto.INT64, ["n"]) if acting.is_discrete else (real, ["n", acting.n_act])
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observation", real, ["n", acting.n_obs])],
        [helper.make_tensor_value_info("action", *actions)],
        initializer=dense,
        sparse_initializer=sparsely,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="rewirl", producer_version=version("rewirl")
    )
    helper.set_model_props(model, {**policy.metadata, "algorithm": policy.algorithm, "task": policy.task})
    onnx.checker.check_model(model)
    content = model.SerializeToString(deterministic=True)
    difference = _difference(policy, content)
    write_aside(path, content)
    return OnnxExport(path, len(content), difference)


def _normalisation(policy: Policy) -> list[tuple[str, str, Any]]:
    """Operators, each with the name of its constant and that: from an observation to what the network gets."""
    if not policy.is_normalised:
        return []
    both = [("Sub", "mean", policy.obs_mean), ("Div", "std", policy.obs_std)]
    return [*both, ("Max", "least", np.array(-CLIP)), ("Min", "most", np.array(CLIP))]


def _actions(policy: Policy) -> tuple[dict[str, Any], list[tuple[str, list[str], dict[str, int]]]]:
    """Constants and operators from the network's outputs to actions."""
    if policy.is_discrete:
        choice = {"axis": 1, "keepdims": 0}
        return {"first": np.array(policy.first, dtype=np.int64)}, [("ArgMax", [], choice), ("Add", ["first"], {})]
    center, half = box_in_float32(policy.low, policy.high)
    box = {"center": center, "half": half, "low": policy.low, "high": policy.high}
    scaling = {"Mul": "half", "Add": "center", "Max": "low", "Min": "high"}
    return box, [("Tanh", [], {}), *((operator, [constant], {}) for operator, constant in scaling.items())]


def _difference(policy: Policy, model: bytes) -> float | None:
    """Distance of onnxruntime's actions from the policy's, if it is installed."""
    try:
        runtime = _module("onnxruntime")
    except ExportError:
        return None
    observations = some_observations(policy)
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (actions,) = session.run(["action"], {"observation": observations})
    return float(apart(policy, actions, policy.predict(observations)[0]).max())


def _sparse(onnx: Any, name: str, layer: PolicyLayer) -> Any:
    """The layer's matrix (inputs, outputs) as a sparse initializer."""
    places = layer.columns.astype(np.int64) * layer.n_out + layer.rows()
    order = np.argsort(places)
    values = onnx.numpy_helper.from_array(layer.weights[order], name)
    return onnx.helper.make_sparse_tensor(
        values, onnx.numpy_helper.from_array(places[order], f"{name}.places"), [layer.n_in, layer.n_out]
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ExportError(f"an export to ONNX needs the package {name}: pip install 'rewirl[onnx]'") from None
