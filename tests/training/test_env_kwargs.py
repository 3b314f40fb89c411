"""Arguments of a task: from a flag, a config file or Python into gymnasium.make, in training and in evaluation."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rewirl import TD3
from rewirl.cli.main import main
from rewirl.errors import Refused
from rewirl.storage import resume
from rewirl.training import RunConfig

TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 200, "eval_episodes": 1, "replay_size": 2000}


def test_by_name_and_by_hand_are_the_same(tmp_path):
    by_name = TD3("Pendulum-v1", env_kwargs={"g": 3.5, "max_episode_steps": 90}, **TINY).learn(300)
    by_hand = TD3(lambda: gymnasium.make("Pendulum-v1", g=3.5, max_episode_steps=90), **TINY).learn(300)
    assert by_name.run.loop.env.env.unwrapped.g == 3.5
    assert by_name.config.env_kwargs == ("g=3.5", "max_episode_steps=90")
    np.testing.assert_array_equal(by_name.predict([1, 0, 0])[0], by_hand.predict([1, 0, 0])[0])
    assert by_name.evaluations[-1].return_mean == by_hand.evaluations[-1].return_mean
    assert by_name.evaluate(1).lengths == (90,)
    by_name.save(tmp_path / "agent.safetensors")
    assert TD3.load(tmp_path / "agent.safetensors").evaluate(1).lengths == (90,)


def test_from_the_command_line_and_after_a_resume(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "--steps 300 --random-steps 50 --hidden 8,8 --eval-every 0 --run-dir run"
    words += " --env-kwargs g=2.5 render_mode=null"
    assert main(["train", "td3", "Pendulum-v1", *words.split(), "--dry-run"]) == 0
    assert 'env_kwargs = ["g=2.5", "render_mode=null"]' in capsys.readouterr().out
    assert main(["train", "td3", "Pendulum-v1", *words.split()]) == 0
    with resume(tmp_path / "run") as run:
        assert run.loop.env.env.unwrapped.g == 2.5
    assert main(["train", "td3", "Pendulum-v1", *words.replace("g=2.5", "g=9").split()]) == 2
    assert "env_kwargs" in capsys.readouterr().err


def test_values_are_json_or_text():
    config = RunConfig.resolve(method="td3", task="Pendulum-v1", env_kwargs=["a=1", "b=[1, 2]", "c=true", "d=x=y"])
    assert config.source().arguments == {"a": 1, "b": [1, 2], "c": True, "d": "x=y"}
    assert RunConfig.from_toml(config.to_toml()) == config


@pytest.mark.parametrize(
    ("env", "arguments", "says"),
    [
        ("Pendulum-v1", ["9.81"], "env_kwargs must be arguments such as g=9.81, not '9.81'"),
        ("Pendulum-v1", "g=9", "env_kwargs must be arguments such as"),
        ("Pendulum-v1", {"gravity": 9}, "gravity"),
        (gymnasium.make("Pendulum-v1"), {"g": 9}, "env_kwargs needs a task by its name"),
    ],
)
def test_refusals(env, arguments, says):
    with pytest.raises(Refused, match=says):
        TD3(env, env_kwargs=arguments, **TINY).learn(5)
