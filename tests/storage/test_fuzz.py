"""Checkpoints made by an enemy: a manifest that fits, and anything in the files. Loaded or refused, never a crash."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_memory import new_folder

from rewirl.errors import Failed, Refused
from rewirl.storage import checkpoint, resume, start, verify
from rewirl.storage.checkpoint import Damaged, parse_arrays, parse_values

FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**130), 2**130) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def run_of() -> Iterator[Path]:
    """A run with a single checkpoint, in the middle of an episode, with an evaluation under way."""
    folder = new_folder() / "run"
    with start(tiny.config(method="ds-sac", eval_every=110), folder) as run:
        run.train(108)
        run._evaluator, run._collect = None, lambda wait: None  # type: ignore[assignment,method-assign]
        run.loop.advance(110)
        run.log.open_row(run)
        run.loop.advance(113)
        run.checkpoint()
    for path in checkpoint.found(folder / "checkpoint")[1:]:
        shutil.rmtree(path)
    yield folder
    shutil.rmtree(folder.parent)


def attacked(folder: Path, **files: bytes) -> str:
    """What becomes of the run with these files in its checkpoint: what is said about it, or 'loaded'."""
    path = checkpoint.found(folder / "checkpoint")[0]
    good = checkpoint.read(path)
    names = ("config.toml", "evaluations.csv", "best_policy.safetensors")
    kept = {name: (folder / name).read_bytes() for name in names}
    bad = good | {name.replace("__", "."): content for name, content in files.items()}
    try:
        shutil.rmtree(path)
        checkpoint.write(path.parent, checkpoint.step_of(path), bad)
        verify(folder)
        with resume(folder) as run:
            run.train(run.step + 2)
        return "loaded"
    except (Failed, Refused) as error:
        return str(error)
    finally:
        for old in (folder / "checkpoint").iterdir():
            shutil.rmtree(old)
        checkpoint.write(path.parent, checkpoint.step_of(path), good)
        for name, content in kept.items():
            (folder / name).write_bytes(content)


def state_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files_of(folder)["run.json"])
    return found


def arrays_of(folder: Path) -> dict[str, Any]:
    return parse_arrays("", files_of(folder)["state.safetensors"])


def files_of(folder: Path) -> dict[str, bytes]:
    return checkpoint.read(checkpoint.found(folder / "checkpoint")[0])


def test_the_untouched_one_loads(run_of: Path) -> None:
    assert attacked(run_of) == "loaded"


@FUZZ
@given(data=st.data())
def test_any_field_of_the_state(run_of: Path, data: st.DataObject) -> None:
    state = state_of(run_of)
    field = data.draw(st.sampled_from(sorted(state)))
    value = data.draw(JSON)
    changed = state | {field: value}
    if isinstance(state[field], dict) and state[field] and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(state[field])))
        changed = state | {field: state[field] | {key: value}}
    attacked(run_of, run__json=json.dumps(changed).encode())


@FUZZ
@given(data=st.data())
def test_any_array(run_of: Path, data: st.DataObject) -> None:
    arrays = arrays_of(run_of)
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    change = data.draw(st.sampled_from(["missing", "dtype", "longer", "shorter", "shape", "values", "reversed"]))
    if change == "missing":
        del arrays[name]
    elif change == "dtype":
        arrays[name] = array.astype(data.draw(st.sampled_from(["i1", "i4", "i8", "f2", "f4", "f8", "u8", "?"])))
    elif change == "longer":
        arrays[name] = np.concatenate([array.ravel(), array.ravel()])
    elif change == "shorter":
        arrays[name] = array.ravel()[:-1]
    elif change == "shape":
        arrays[name] = array.reshape(1, *array.shape)
    elif change == "reversed":
        arrays[name] = np.ascontiguousarray(array.ravel()[::-1]).reshape(array.shape)
    else:
        limits = np.iinfo(array.dtype) if array.dtype.kind == "i" else None
        value = data.draw(st.integers(limits.min, limits.max) if limits else st.floats(width=32))
        flat = array.ravel().copy()
        if flat.size:
            flat[data.draw(st.integers(0, flat.size - 1))] = value
        arrays[name] = flat.reshape(array.shape)
    attacked(run_of, state__safetensors=safetensors.numpy.save(arrays))


@FUZZ
@given(data=st.data())
def test_any_bytes_in_any_file(run_of: Path, data: st.DataObject) -> None:
    files = files_of(run_of)
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    begin = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(begin, min(len(content), begin + 40)))
    content[begin:end] = data.draw(st.binary(max_size=40))
    attacked(run_of, **{name.replace(".", "__"): bytes(content)})


@FUZZ
@given(content=st.binary(max_size=300))
def test_loaders_of_parts(content: bytes) -> None:
    for load in (parse_values, parse_arrays):
        with pytest.raises((Damaged, Refused)):
            load("it", content)


ATTACKS = Path(__file__).parents[1] / "attacks"
EXPECTED: dict[str, str] = json.loads((ATTACKS / "checkpoint.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_attack_files(name: str, run_of: Path) -> None:
    part = Path(name).parent.name.replace(".", "__")
    assert EXPECTED[name] in attacked(run_of, **{part: (ATTACKS / "checkpoint" / name).read_bytes()})


def test_every_attack_file_has_its_refusal() -> None:
    for kind in ("checkpoint", "policy"):
        files = {str(path.relative_to(ATTACKS / kind)) for path in (ATTACKS / kind).rglob("*") if path.is_file()}
        assert files == json.loads((ATTACKS / f"{kind}.json").read_text()).keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agent.actor.places.0": lambda a: a[::-1].copy()}, "position"),
        ({"agent.actor.places.0": lambda a: np.where(np.arange(len(a)) == 1, a[0], a)}, "listed twice"),
        ({"agent.actor.places.0": lambda a: a + 10**6}, "position"),
        ({"agent.actor.places.0": lambda a: a[:-1]}, "links"),
        ({"agent.critic1_target.extra_places.0": lambda a: np.array([-5])}, "extra"),
        ({"agent.critic1_target.extra_places.0": lambda a: np.array([10**12])}, "extra"),
        ({"episode.actions": lambda a: a[:-1]}, "actions must be float32"),
        ({"pending.0.places.1": lambda a: a + 10**6}, "position"),
    ],
)
def test_links_that_are_none_never_reach_a_kernel(change: dict[str, Any], said: str, run_of: Path) -> None:
    arrays = arrays_of(run_of)
    for name, how in change.items():
        arrays[name] = how(arrays[name])
    assert said in attacked(run_of, state__safetensors=safetensors.numpy.save(arrays))
