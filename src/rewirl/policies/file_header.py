"""The header of a policy file, and the check that its arrays match."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewirl.policies.sealed_file import PolicyFileError, SealedFile
from rewirl.untrusted import printable

FORMAT, FORMAT_VERSION = "rewirl-policy", 3
"""Version 3 has normalised observations. Version 2 has discrete actions without them, version 1 an action box: both are
still written for these."""
NORMALISATION = ("observation.mean", "observation.std")
"""Arrays of a policy that normalises its observations."""
AGENT_FORMAT, AGENT = "rewirl-agent", "agent."
"""Format of a file with a whole agent (`learners/agent_file.py`), and prefix of its arrays that do not belong to the
policy."""
PARTS = ("indptr", "columns", "weights", "bias")
"""Arrays of a layer in the file."""
ALGORITHMS = {"td3": 1, "sac": 2, "dqn": 1}
"""Outputs of the network per dimension of the action: TD3 has the action alone, SAC mean and log-std. DQN has the value
of each action that can be chosen."""
DISCRETE = frozenset({"dqn"})
"""Algorithms with discrete actions."""
OWN_METADATA = ("format", "format_version", "rewirl", "algorithm", "task", "sizes", "links", "sha256")
"""Metadata that the format reserves."""


def outputs_of(algorithm: str, n_act: int) -> int:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"the algorithm must be {' or '.join(ALGORITHMS)}, not {algorithm!r}")
    return n_act * ALGORITHMS[algorithm]


def check_header(file: SealedFile) -> None:
    """Refuses a file whose arrays are not those of a policy with the sizes and links that it states."""
    text = file.metadata
    if text.get("format") not in (FORMAT, AGENT_FORMAT):
        raise PolicyFileError(f"this is not a policy file: its format is {text.get('format')!r} instead of {FORMAT!r}")
    found = text.get("format_version", "")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", found, re.ASCII):
        raise PolicyFileError(f"the format version {found!r} is not a number")
    if int(found) > FORMAT_VERSION:
        raise PolicyFileError(f"the file has format version {found}: it needs rewirl ≥ {_version_of(text)}")
    for name in OWN_METADATA:
        if name not in text:
            raise PolicyFileError(f"the file does not state its {name!r}")
    sizes, links = _numbers("sizes", text), _numbers("links", text)
    if len(sizes) < 2 or len(links) != len(sizes) - 1:
        raise PolicyFileError(
            f"the file states {len(sizes)} widths and {len(links)} link counts: there must be one more width"
        )
    for name, value in text.items():
        if printable(value.replace("\n", "")) != value.replace("\n", ""):
            raise PolicyFileError(f"the metadata {printable(name)} has a control character in {value[:50]!r}")
    per_action = outputs_of(text["algorithm"], 1)
    if sizes[-1] % per_action:
        raise PolicyFileError(
            f"the file states {sizes[-1]} outputs: a sac policy has two for each dimension of the action"
        )
    expected = _expected(sizes, links, text["algorithm"])
    if int(found) >= 3 and any(name in file.entries for name in NORMALISATION):
        expected |= dict.fromkeys(NORMALISATION, ("F32", (sizes[0],)))
    others = {name for name in file.entries if name.startswith(AGENT)} if text["format"] == AGENT_FORMAT else set()
    for name in sorted(set(expected) | set(file.entries) - others):
        if name not in file.entries:
            raise PolicyFileError(f"the array {name!r} is missing")
        if name not in expected:
            raise PolicyFileError(f"the array {name!r} does not belong to a policy with the sizes {text['sizes']}")
        entry = file.entries[name]
        if (entry.dtype, entry.shape) != expected[name]:
            dtype, shape = expected[name]
            raise PolicyFileError(
                f"the array {name!r} is {entry.dtype} {entry.shape}: with the sizes {text['sizes']} and the links "
                f"{text['links']} that it states it must be {dtype} {shape}"
            )


def _expected(sizes: list[int], links: list[int], algorithm: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    n_act = sizes[-1] // ALGORITHMS[algorithm]
    expected: dict[str, tuple[str, tuple[int, ...]]] = {f"action.{end}": ("F32", (n_act,)) for end in ("low", "high")}
    if algorithm in DISCRETE:
        expected = {"action.first": ("I32", (1,))}
    for number, (count, n_out) in enumerate(zip(links, sizes[1:], strict=True)):
        expected[f"layer.{number}.indptr"] = ("I32", (n_out + 1,))
        expected[f"layer.{number}.columns"] = ("I32", (count,))
        expected[f"layer.{number}.weights"] = ("F32", (count,))
        expected[f"layer.{number}.bias"] = ("F32", (n_out,))
    return expected


def _numbers(name: str, text: Mapping[str, str]) -> list[int]:
    if not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10}){0,99}", text[name], re.ASCII):
        raise PolicyFileError(
            f"the file states {name} {text[name]!r}: they must be at most 100 integers separated by commas"
        )
    return [int(number) for number in text[name].split(",")]


def _version_of(text: Mapping[str, str]) -> str:
    """The version that wrote the file, which can read it."""
    found = text.get("rewirl", "")
    known = re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}[a-z0-9.+]{0,16}", found, re.ASCII)
    return found if known else "a later version than this"
