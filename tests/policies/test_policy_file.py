"""A policy file that is damaged, forged or no policy file at all is refused, in one sentence that names it."""

from __future__ import annotations

import importlib.util
import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewirl.errors import Refused
from rewirl.policies import Policy, PolicyFileError
from rewirl.policies.sealed_file import DTYPES

_spec = importlib.util.spec_from_file_location("attacks", Path(__file__).with_name("attacks.py"))
forge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(forge)
FOLDER = Path(__file__).parents[1] / "attacks"
FILES = json.loads((FOLDER / "policy.json").read_text())
# What is there as files, and the two that are too long for that.
ATTACKS = {name: ((FOLDER / "policy" / name).read_bytes(), said) for name, said in FILES.items()}
ATTACKS |= {name: attack for name, attack in forge.attacks().items() if name not in FILES}
GOOD = forge.sealed(*forge.good())


def load(path: Path, content: bytes) -> Policy:
    path.write_bytes(content)
    return Policy.load(path)


def refusal(path: Path, content: bytes) -> str:
    with pytest.raises(PolicyFileError) as caught:
        load(path, content)
    return str(caught.value)


def test_what_the_attacks_start_from_is_good(tmp_path):
    policy = load(tmp_path / "p", GOOD)
    assert (policy.sizes, policy.links) == ((3, 2, 1), (3, 1))
    policy.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == GOOD


def test_the_attack_files_are_what_their_program_makes():
    made = {name: attack for name, attack in forge.attacks().items() if name in FILES}
    assert made == {name: ATTACKS[name] for name in FILES}
    assert len(forge.attacks()) == len(FILES) + 2


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    content, expected = ATTACKS[name]
    path = tmp_path / f"{name}.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(PolicyFileError, match=expected) as caught:
            Policy.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(caught.value, Refused)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert peak < 20_000_000
    assert os.listdir(tmp_path) == [path.name]  # nothing was executed


@pytest.mark.parametrize("flip", [0xFF, *(1 << bit for bit in range(8))])
def test_every_flipped_bit_is_noticed(tmp_path, flip):
    path = tmp_path / "p"
    path.write_bytes(GOOD)
    with path.open("r+b", buffering=0) as file:  # in place: thousands of whole files take long
        for at, byte in enumerate(GOOD):
            file.seek(at)
            file.write(bytes([byte ^ flip]))
            with pytest.raises(PolicyFileError):
                Policy.load(path)
            file.seek(at)
            file.write(bytes([byte]))
    Policy.load(path)


def test_a_flipped_bit_in_the_arrays_is_noticed_by_the_seal(tmp_path):
    content = bytearray(GOOD)
    content[-3] ^= 1
    assert "its SHA-256 has changed" in refusal(tmp_path / "p", bytes(content))


def test_every_cut_is_noticed(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(GOOD)
    for length in reversed(range(len(GOOD))):
        os.truncate(path, length)
        with pytest.raises(PolicyFileError):
            Policy.load(path)


def test_a_file_that_claims_and_has_terabytes_is_refused_by_its_header(tmp_path):
    """A sparse file really has the bytes that its header claims: shapes that no policy has end it all the same."""
    tensors, texts = forge.good()
    header = forge.header_of(tensors, forge.seal(tensors, texts))
    at = header["layer.1.weights"]["data_offsets"][0]
    header["layer.1.weights"].update(shape=[2**38], data_offsets=[at, at + 2**40])
    content = forge.packed(header, b"")
    (tmp_path / "p").write_bytes(content)
    try:
        os.truncate(tmp_path / "p", len(content) + at + 2**40)
    except OSError as error:
        pytest.skip(f"no sparse files here: {error}")
    with pytest.raises(PolicyFileError, match=r"'layer.1.weights' is F32 \(274877906944,\)"):
        Policy.load(tmp_path / "p")


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(PolicyFileError, match="this is a folder"):
        Policy.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PolicyFileError, match="a device or a pipe"):
        Policy.load(tmp_path / "pipe")
    with pytest.raises(PolicyFileError, match="a device or a pipe"):
        Policy.load("/dev/zero")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Policy.load(tmp_path / "nowhere")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_noise_is_refused(tmp_path, noise):
    refusal(tmp_path / "p", noise)
    refusal(tmp_path / "p", GOOD[:200] + noise)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*DTYPES]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([*forge.good()[0], "__metadata__", "new"]),
    json_values
    | st.fixed_dictionaries({"dtype": json_values, "shape": json_values, "data_offsets": json_values})
    | st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "I32"]),
            "shape": st.lists(st.integers(0, 2**40), max_size=3),
            "data_offsets": st.lists(st.integers(0, 2**40), min_size=2, max_size=2),
        }
    ),
)
def test_headers_with_anything_in_them_are_refused(tmp_path, name, value):
    header = forge.header_of(forge.good()[0], forge.seal(*forge.good()))
    if value != header.get(name):
        header[name] = value
        refusal(tmp_path / "p", forge.packed(header, forge.data_of(forge.good()[0])))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_true_seals_on_any_arrays_load_only_what_is_sound(tmp_path, data):
    """Whatever the arrays, loading ends in a refusal or in a policy whose every link is in range."""
    tensors, texts = forge.good()
    name = data.draw(st.sampled_from(sorted(tensors)))
    numbers = st.integers(-3, 5) if tensors[name].dtype.kind == "i" else st.floats(width=32)
    count = data.draw(st.sampled_from([tensors[name].size] * 3 + [0, 7]))
    drawn = data.draw(st.lists(numbers, min_size=count, max_size=count))
    tensors[name] = np.array(drawn, tensors[name].dtype)
    texts |= data.draw(
        st.fixed_dictionaries({}, optional={"sizes": st.sampled_from(["3,2,1", "2,2,1", "9,2,1", "3,1"])})
    )
    try:
        policy = load(tmp_path / "p", forge.sealed(tensors, texts))
    except PolicyFileError:
        return
    for layer in policy.layers:
        assert len(layer.indptr) == layer.n_out + 1
        assert all(0 <= column < layer.n_in for column in layer.columns)
        assert np.isfinite(layer.weights).all()
    assert np.isfinite(policy.predict(np.zeros(policy.n_obs))[0]).all()


@pytest.mark.parametrize("text", ["\x00", "\x1f", "\x0b", "\ud800"])
def test_a_policy_that_could_not_be_loaded_is_not_saved(make_policy, tmp_path, text):
    with pytest.raises(ValueError, match="control characters"):
        make_policy(task=text).save(tmp_path / "p")
    assert not os.listdir(tmp_path)


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(make_policy, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "p", tmp_path / "nowhere" / "p"):
        with pytest.raises(OSError, match="directory") as caught:
            make_policy().save(path)
        assert caught.value.filename == str(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        make_policy().save(tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_saving_over_a_policy_replaces_it_whole(make_policy, tmp_path):
    make_policy(seed=1).save(tmp_path / "p")
    make_policy(seed=2).save(tmp_path / "p")
    assert os.listdir(tmp_path) == ["p"]
    np.testing.assert_array_equal(Policy.load(tmp_path / "p").low, make_policy(seed=2).low)
