"""A policy as C99: one header, one source file, an example."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewirl.export import c_template as template
from rewirl.export.action_scaling import box_in_float32
from rewirl.export.errors import ExportError
from rewirl.export.link_encoding import Encoded, encode
from rewirl.export.output_folder import prepare_folder, refuse_folder
from rewirl.export.weights import BYTES, Loss, accuracy_loss, check_dtype, stored
from rewirl.files import write_together
from rewirl.policies.layer import Floats
from rewirl.policies.policy import Policy
from rewirl.policies.scaling import CLIP

C_TYPES = {"float32": "float", "uint8": "uint8_t", "uint16": "uint16_t", "int8": "int8_t"}
KEYWORD = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
)
LONGEST_NAME = 48


@dataclass(frozen=True)
class CExport:
    """The written files, and the memory that they need."""

    header: Path
    source: Path
    example: Path
    """A program that acts on observations from standard input."""
    flash_bytes: int
    """Constants: links, weights, biases, action box."""
    ram_bytes: int
    """Working memory."""
    encodings: tuple[str, ...]
    """Encoding of each layer's links."""
    dtype: str
    """Data type of the weights."""
    loss: Loss
    """Effect of that type on the actions."""

    def __str__(self) -> str:
        lines = [
            f"{self.header}, {self.source.name}, {self.example.name}",
            f"flash {self.flash_bytes:,} bytes, RAM {self.ram_bytes:,} bytes, weights {self.dtype}",
            f"links by layer: {', '.join(self.encodings)}",
        ]
        if self.dtype != "f32":
            lines.append(f"actions differ from the policy's: {self.loss}")
        return "\n".join(lines)


def export_c(
    policy: Policy,
    out_dir: str | Path,
    name: str = "policy",
    dtype: str = "f32",
    observations: Floats | None = None,
) -> CExport:
    """Writes `name`.h, `name`.c and the example `name`_main.c into `out_dir`, which is created if necessary.

    `name` is the prefix of every identifier. `dtype` is the type of the weights: f32, f16 or int8 (with a scale for
    each output). Its effect on actions is measured on `observations` (rows), or on random ones.
    """
    check_name(name)
    check_dtype(dtype)
    loss = accuracy_loss(policy, dtype, observations)
    policy = policy.acting()
    encodings = [encode(layer, BYTES[dtype]) for layer in policy.layers]
    arrays = _arrays(policy, encodings, dtype)
    flash = sum(values.nbytes for values in arrays.values())
    memory = _memory(policy.sizes[1:-1])
    if policy.is_discrete:
        memory["outputs"] = policy.n_act
    if policy.is_normalised:
        memory["seen"] = policy.n_obs
    words = {
        **(template.CHOICE if policy.is_discrete else template.BOX),
        "first": f"{policy.first}L",
        "name": name,
        "NAME": name.upper(),
        "about": _plain(f"a policy for {_task(policy)} made by rewirl {version('rewirl')}"),
        "network": f"{_first(policy)}{' -> '.join(map(str, policy.sizes))}, ReLU between layers, then {_last(policy)}",
        "clip": _float(float(CLIP)),
        "layers": "\n".join(
            f" * layer {number}  {layer.links} links of {layer.n_in * layer.n_out} ({links.way}), weights {dtype}"
            for number, (layer, links) in enumerate(zip(policy.layers, encodings, strict=True))
        ),
        "n_obs": str(policy.n_obs),
        "n_act": str(policy.n_act),
        "flash": str(flash),
        "ram": str(4 * sum(memory.values())),
        "memory": "\n".join(f"    float {part}[{width}];" for part, width in memory.items()),
        "sizes": " +\n        ".join(f"sizeof {name}_{part}" for part in arrays),
        "arrays": "".join(_array(f"{name}_{part}", values) for part, values in arrays.items()),
        "functions": _functions(policy, encodings, dtype),
        "unused": "" if len(policy.layers) > 1 or policy.is_normalised else "    (void)memory;\n",
        "calls": "".join(_calls(policy, encodings, dtype)),
        "zeros": " ".join("0" * policy.n_obs),
    }
    folder = prepare_folder(Path(out_dir))
    texts = {f"{name}.h": template.HEADER, f"{name}.c": template.SOURCE, f"{name}_main.c": template.MAIN}
    for file in texts:
        refuse_folder(folder / file)
    write_together({folder / file: _filled(text, words).encode("ascii") for file, text in texts.items()})
    header, source, example = (folder / file for file in texts)
    ways = tuple(links.way for links in encodings)
    return CExport(header, source, example, flash, int(words["ram"]), ways, dtype, loss)


def _first(policy: Policy) -> str:
    return "observations normalised and clipped, " if policy.is_normalised else ""


def _last(policy: Policy) -> str:
    return "the action of the largest output" if policy.is_discrete else "tanh, then the action box"


def _task(policy: Policy) -> str:
    around = f" with {policy.around} around it" if policy.around else ""
    return f"{policy.task or 'some task'}{around}"


def check_name(name: str) -> None:
    """Refuses a name that is not a valid C prefix, and suggests one.

    >>> check_name("my policy")
    Traceback (most recent call last):
    rewirl.export.errors.ExportError: 'my policy' is not a C identifier: use 'my_policy'
    """
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    nearest = re.sub(r"[^A-Za-z0-9_]+", "_", ascii_name).strip("_")[:LONGEST_NAME] or "policy"
    if nearest[0].isdigit() or KEYWORD.fullmatch(nearest):
        nearest = f"policy_{nearest}"[:LONGEST_NAME]
    usable = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII) and len(name) <= LONGEST_NAME
    if not usable or KEYWORD.fullmatch(name):
        raise ExportError(f"{name!r} is not a C identifier: use {nearest!r}")


def _arrays(policy: Policy, encodings: list[Encoded], dtype: str) -> dict[str, NDArray[Any]]:
    """Every constant of the source file, in order."""
    arrays: dict[str, NDArray[Any]] = {}
    if policy.is_normalised:
        arrays |= {"mean": policy.obs_mean, "std": policy.obs_std}
    for number, (layer, links) in enumerate(zip(policy.layers, encodings, strict=True)):
        weights = stored(layer, dtype)
        if links.way != "dense":
            arrays[f"links_{number}"] = _not_empty(links.links)
            arrays[f"counts_{number}"] = links.counts
        arrays[f"weights_{number}"] = _not_empty(np.append(weights.codes, weights.codes.dtype.type(0))[links.order])
        if weights.scale is not None:
            arrays[f"scale_{number}"] = weights.scale
        arrays[f"bias_{number}"] = layer.bias
    if policy.is_discrete:
        return arrays
    center, half = box_in_float32(policy.low, policy.high)
    return arrays | {"center": center, "half": half, "low": policy.low, "high": policy.high}


def _not_empty(values: NDArray[Any]) -> NDArray[Any]:
    """C has no empty arrays: a layer without links gets one unused 0."""
    return values if len(values) else np.zeros(1, dtype=values.dtype)


def _memory(hidden: tuple[int, ...]) -> dict[str, int]:
    """Two arrays in turn hold the hidden layers; without hidden layers one number, since C has no empty structs."""
    memory = {"a": max(hidden[0::2], default=1)}
    return memory | ({"b": max(hidden[1::2])} if len(hidden) > 1 else {})


def _functions(policy: Policy, encodings: list[Encoded], dtype: str) -> str:
    """Only functions that are used: compilers warn about unused ones."""
    ways = sorted({links.way for links in encodings})
    parts = [template.WEIGHT[dtype], template.BEGIN[dtype]]
    parts += [template.NORMALISE] if policy.is_normalised else []
    parts += [template.RELU] if len(policy.layers) > 1 else []
    parts += [template.COUNT] if ways != ["dense"] else []
    return "\n".join(parts + [template.LINKS[way] for way in ways])


def _calls(policy: Policy, encodings: list[Encoded], dtype: str) -> Iterable[str]:
    last = len(policy.layers) - 1
    first = "memory->seen" if policy.is_normalised else "observation"
    if policy.is_normalised:
        yield "    $name_normalise(observation, memory->seen);\n"
    places = [first, *(f"memory->{'ab'[number % 2]}" for number in range(last)), "action"]
    for number, (x, y) in enumerate(pairwise(places)):
        layer, links = policy.layers[number], encodings[number]
        begin = f"{layer.n_out}, {y}" if dtype == "int8" else f"{layer.n_out}, $name_bias_{number}, {y}"
        yield f"    $name_begin({begin});\n"
        widths = f"{layer.n_in}, {layer.n_out}" if links.way in ("dense", "bitmap") else f"{layer.n_in}"
        found = "" if links.way == "dense" else f"$name_links_{number}, $name_counts_{number}, {int(links.wide)}, "
        yield f"    $name_{links.way}({widths}, {found}$name_weights_{number}, {x}, {y});\n"
        if dtype == "int8":
            yield f"    $name_end({layer.n_out}, $name_scale_{number}, $name_bias_{number}, {y});\n"
        if number < last:
            yield f"    $name_relu({layer.n_out}, {y});\n"


def _array(name: str, values: NDArray[Any]) -> str:
    numbers = [_float(v) for v in values.tolist()] if values.dtype == np.float32 else list(map(str, values.tolist()))
    per_line = 8 if values.dtype == np.float32 else 20
    lines = [", ".join(numbers[i : i + per_line]) for i in range(0, len(numbers), per_line)]
    body = ",\n    ".join(lines)
    return f"static const {C_TYPES[values.dtype.name]} {name}[{len(values)}] = {{\n    {body}}};\n"


def _float(value: float) -> str:
    """Nine digits represent any float32 exactly."""
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _plain(text: str) -> str:
    """Untrusted text, made safe for a C comment."""
    return re.sub(r"[^A-Za-z0-9 ._+-]", "_", text)


def _filled(text: str, words: Mapping[str, str]) -> str:
    # values that contain names come first, and longer names before their prefixes
    first = ("declared", "defined", "variables", "printed", "functions", "calls")
    for word in sorted(words, key=lambda word: (first.index(word) if word in first else len(first), -len(word))):
        text = text.replace(f"${word}", words[word])
    return text
