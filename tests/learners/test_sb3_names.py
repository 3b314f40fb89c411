"""Code that was written for Stable-Baselines3, and what it is told where it means something else."""

from __future__ import annotations

import gymnasium
import pytest

from rewirl import SAC, TD3
from rewirl.errors import Refused

WORDS = {
    "learning_rate": 3e-4,
    "learning_starts": 40,
    "batch_size": 16,
    "buffer_size": 500,
    "gradient_steps": 2,
    "policy_kwargs": {"net_arch": [12, 10]},
    "verbose": 0,
    "device": "auto",
    "eval_every": 0,
}


@pytest.mark.parametrize(
    "made",
    [
        lambda: TD3("MlpPolicy", "Pendulum-v1", **WORDS),
        lambda: TD3("MlpPolicy", env="Pendulum-v1", **WORDS),
        lambda: TD3(policy="MlpPolicy", env=gymnasium.make("Pendulum-v1"), **WORDS),
        lambda: TD3(env="Pendulum-v1", **WORDS),
    ],
)
def test_the_same_agent_by_other_names(made):
    agent = made().learn(total_timesteps=100, progress_bar=False)
    config = agent.config
    assert (config.task, config.random_steps, config.replay_size) == ("Pendulum-v1", 40, 500)
    assert (config.options.lr, config.options.batch, config.options.hidden) == (3e-4, 16, (12, 10))
    assert (agent.step, agent.run.agent.updates) == (100, 120)


def test_names_of_sac():
    agent = SAC("MlpPolicy", "Pendulum-v1", ent_coef="auto", target_update_interval=3, target_entropy="auto")
    options = agent.config.options
    assert (options.alpha, options.target_interval, options.target_entropy) == ("auto", 3, None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"net_arch": [64]}, r"there is no option 'net_arch': hidden=\(256, 256\) sets the widths"),
        (
            {"policy_kwargs": {"activation_fn": None}},
            "policy_kwargs has no 'activation_fn' here: hidden layers have ReLU",
        ),
        ({"policy_kwargs": {"net_arch": {"pi": [8], "qf": [9]}}}, "net_arch must be the same for actor and critics"),
        ({"action_noise": None}, "exploration_noise=0.1 sets its σ"),
        ({"learning_rate": lambda left: left}, "lr_schedule='linear' or 'cosine'"),
        ({"gradient_steps": 0}, "updates_per_step must be"),
        ({"device": "cuda"}, "device must be 'cpu', not 'cuda'"),
        ({"batch_size": 3, "batch": 4}, "batch is given twice"),
        ({"policy": "CnnPolicy"}, "there is no CnnPolicy"),
        ({"train_freq": 2}, "the agent learns after every step"),
    ],
)
def test_what_means_something_else(words, says):
    with pytest.raises(Refused, match=says) as refusal:
        TD3("Pendulum-v1", **words)
    assert "--" not in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({}, "how many steps"),
        ({"steps": 5, "total_timesteps": 5}, "given twice"),
        ({"steps": 5, "log_interval": 4}, r"progress=True\) shows progress"),
        ({"steps": 5, "stpes": 4}, "learn has no option 'stpes'"),
    ],
)
def test_what_learn_does_not_take(words, says):
    with pytest.raises(Refused, match=says):
        TD3("Pendulum-v1").learn(**words)


def test_two_environments_are_refused():
    with pytest.raises(Refused, match="give one environment, not 2"):
        TD3("Pendulum-v1", "Hopper-v5")


def test_tensorboard_log(tmp_path):
    pytest.importorskip("tensorboardX")
    TD3("MlpPolicy", "Pendulum-v1", tensorboard_log=str(tmp_path), **WORDS).learn(250)
    assert list(tmp_path.glob("Pendulum-v1-td3-seed0-*/tensorboard/events*"))
