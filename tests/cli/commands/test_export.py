"""`rewirl export`: each form from the command line, and what cannot be, refused before anything is written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rewirl import SAC, SET
from rewirl.cli import main
from rewirl.policies import Policy

OBS = np.random.default_rng(0).standard_normal((50, 3), dtype=np.float32)


@pytest.fixture(autouse=True)
def policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SAC(
        "Pendulum-v1", wiring=SET(every=20), sparsity=0.5, hidden=(16, 16), random_steps=50, eval_every=0
    ) as agent:
        agent.learn(80).save("policy.safetensors")
    return Policy.load("policy.safetensors")


def exported(capsys, *words: str) -> str:
    assert main(["export", "policy.safetensors", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_onnx_acts_as_the_policy_does(capsys, policy):
    runtime = pytest.importorskip("onnxruntime")
    text = exported(capsys, "--to", "onnx", "--out", "walk.onnx")
    assert "walk.onnx\n" in text
    assert "actions differ from the policy's by at most" in text
    exported(capsys, "--to", "onnx", "--out", "folder", "--sparse", "--name", "pendulum")
    for file in ("walk.onnx", "folder/pendulum.onnx"):
        session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
        for rows in (OBS, OBS[:1]):
            (actions,) = session.run(["action"], {"observation": rows})
            np.testing.assert_allclose(actions, policy(rows), atol=2e-5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_c_acts_as_the_policy_does(capsys, policy, dtype):
    text = exported(capsys, "--to", "c", "--out", "device", "--name", "pendulum", "--dtype", dtype)
    assert "flash " in text
    assert ("measured on an episode of Pendulum-v1" in text) == (dtype != "f32")
    assert ("(200 observations)" in text) == (dtype != "f32")
    subprocess.run("cc -std=c99 pendulum.c pendulum_main.c -lm -o act", shell=True, check=True, cwd="device")
    lines = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in OBS.tolist())
    printed = subprocess.run("device/act", input=lines, capture_output=True, text=True, check=True).stdout
    off = {"f32": 1e-5, "f16": 1e-2, "int8": 0.2}[dtype]
    np.testing.assert_allclose(np.array(printed.split(), np.float32)[:, None], policy(OBS), atol=off)


def test_a_task_that_cannot_be_made_is_no_hindrance(capsys, policy):
    Policy(layers=policy.layers, low=policy.low, high=policy.high, algorithm="sac", task="Gone-v0").save(
        "policy.safetensors"
    )
    text = exported(capsys, "--to", "c", "--out", "device", "--dtype", "int8")
    assert "(1000 observations)" in text
    assert "measured on random observations, because no episode could be run: there is no task 'Gone-v0'" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("policy.safetensors --to c --out out --sparse", "--sparse is for ONNX"),
        ("policy.safetensors --to onnx --out out --dtype int8", "weights of type 'int8' are for C source"),
        ("policy.safetensors --to c --out out --name 1+1", "'1+1' is not a C identifier: use 'policy_1_1'"),
        ("policy.safetensors --to c --out policy.safetensors", "cannot write to policy.safetensors"),
        ("policy.safetensors --to onnx --out policy.safetensors/x.onnx", "cannot write to policy.safetensors"),
        ("policy.safetensors --to tflite --out out", "invalid choice: 'tflite'"),
        ("nothing --to c --out out", "there is no nothing"),
        ("empty --to c --out out", "empty is not a run folder"),
        ("begun --to c --out out", "begun has no policy yet"),
    ],
)
def test_refusals(capsys, words, says):
    os.makedirs("empty")
    os.makedirs("begun")
    with open("begun/config.toml", "w") as file:
        file.write('method = "ds-td3"\ntask = "Pendulum-v1"\n')
    before = sorted(os.listdir())
    assert main(["export", *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_what_was_around_the_task_is_said(capsys, policy):
    given = {"layers": policy.layers, "low": policy.low, "high": policy.high, "algorithm": "sac"}
    around = {"wrappers": "NormalizeObservation"}
    Policy(**given, task="Pendulum-v1", metadata=around).save("policy.safetensors")
    text = " ".join(exported(capsys, "--to", "c", "--out", "device", "--dtype", "int8").split())
    assert "trained with the wrappers NormalizeObservation" in text
    assert (
        "measured on random observations, because no episode could be run: "
        "the wrappers of its task are known only to Python" in text
    )
    assert "Pendulum-v1 with NormalizeObservation around it" in Path("device/policy.h").read_text()
    Policy(**given).save("policy.safetensors")
    text = " ".join(exported(capsys, "--to", "c", "--out", "device", "--dtype", "int8").split())
    assert "the policy file does not name its task" in text


def test_a_folder_where_a_file_should_be(capsys, policy):
    os.makedirs("part/policy.c")
    assert main(["export", "policy.safetensors", "--to", "c", "--out", "part"]) == 2
    assert "policy.c is a folder" in capsys.readouterr().err
    assert os.listdir("part") == ["policy.c"]
    os.makedirs("folder.onnx")
    exported(capsys, "--to", "onnx", "--out", "folder.onnx")
    assert os.listdir("folder.onnx") == ["policy.onnx"]
    assert main(["export", "policy.safetensors", "--to", "onnx", "--out", "d", "--name", ""]) == 2
