"""Every documented default, and formulas of defaults: a changed number fails here, and a new one has to be added."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from rewirl.agents import METHODS, ActionBox, CrossQOptions, DQNOptions, Options, SACOptions, TD3Options, WiringOptions
from rewirl.agents.actions import Choices
from rewirl.agents.dqn import DQNAgent
from rewirl.agents.sac import SACAgent
from rewirl.nn import BatchNorm
from rewirl.topology import DEFAULT_SPARSITY, SET, Dense, RigL
from rewirl.training.config import RunConfig

SHARED = {
    "hidden": (256, 256),
    "gamma": 0.99,
    "lr_schedule": "constant",
    "lr_until": None,
    "beta1": 0.9,
    "beta2": 0.999,
    "adam_eps": 1e-8,
    "decoupled_decay": False,
    "sparse_init": False,
    "sparse_rate": 0.0,
    "layer_norm": False,
    "n_step": 1,
    "n_step_from": 0,
    "normalize": None,
}
DEFAULTS = {
    TD3Options: {
        **SHARED,
        "tau": 0.005,
        "batch": 100,
        "lr": 1e-3,
        "weight_decay": 2e-4,
        "policy_delay": 2,
        "exploration_noise": 0.1,
        "target_noise": 0.2,
        "target_clip": 0.5,
    },
    SACOptions: {
        **SHARED,
        "tau": 0.005,
        "batch": 256,
        "lr": 3e-4,
        "weight_decay": 0.0,
        "alpha": 0.2,
        "target_entropy": None,
        "target_interval": 1,
    },
    DQNOptions: {
        **SHARED,
        "tau": 0.005,
        "batch": 128,
        "lr": 5e-4,
        "weight_decay": 0.0,
        "loss": "huber",
        "target_interval": 1,
        "epsilon_start": 1.0,
        "epsilon_end": 0.05,
        "epsilon_steps": 10_000,
    },
    CrossQOptions: {
        **SHARED,
        "critic_hidden": (2048, 2048),
        "batch": 256,
        "lr": 1e-3,
        "beta1": 0.5,
        "weight_decay": 0.0,
        "alpha": "auto",
        "target_entropy": None,
        "policy_delay": 3,
        "norm_momentum": 0.99,
        "norm_warmup": 100_000,
    },
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaults_of_the_algorithms(kind: type[Options]) -> None:
    assert {item.name: getattr(kind(), item.name) for item in fields(kind)} == DEFAULTS[kind]


def test_these_are_all_algorithms() -> None:
    assert {method.options for method in METHODS.values()} == DEFAULTS.keys()


OF_METHODS = {
    "td3": {"eta": 0.05, "random_steps": 25_000},
    "sac": {"eta": 0.1, "random_steps": 10_000},
    "dqn": {"eta": 0.05, "random_steps": 1_000},
    "crossq": {"eta": 0.1, "random_steps": 5_000},
}


@pytest.mark.parametrize("name", METHODS)
def test_defaults_of_the_methods(name: str) -> None:
    """What a method's run has without any option."""
    task = "CartPole-v1" if name.endswith("dqn") else "Pendulum-v1"
    config, algorithm = RunConfig.resolve(method=name, task=task), name.rpartition("-")[2]
    wanted = {**OF_METHODS[algorithm], "sparsity": 0.5, "updates_per_step": 1.0, "recycle": None, "min_links": 0}
    if name == algorithm:
        wanted["sparsity"] = None
    if name == "lean-td3":
        wanted |= {"sparsity": 0.9, "updates_per_step": 2.0, "recycle": 0.0}
    assert {option: getattr(config, option) for option in wanted} == wanted
    lean = {
        "lr_schedule": "linear",
        "lr_until": 2 * (config.steps - config.random_steps),
        "sparse_init": True,
        "sparse_rate": 1.0,
    }
    options = lean if name == "lean-td3" else {}
    assert config.options == {kind.algorithm: kind.options for kind in METHODS.values()}[algorithm](**options)


def test_defaults_of_the_rules() -> None:
    rules = {"eta": 0.05, "every": 1000, "until": None, "anneal": False, "min_links": 0}
    for rule in (SET, RigL):
        assert {item.name: getattr(rule(), item.name) for item in fields(rule)} == rules
    assert DEFAULT_SPARSITY == 0.5
    recycling = WiringOptions(recycle=0)
    assert (recycling.block, recycling.recycle_every, RunConfig.resolve(**LEAN).wiring().rule) == (
        1,
        1000,
        SET(min_links=1),  # a recycled neuron has at least one link
    )


LEAN = {"method": "lean-td3", "task": "Pendulum-v1"}


@pytest.mark.parametrize(
    ("steps", "random_steps"),
    [(500, 100), (1000, 100), (1010, 101), (200_000, 20_000), (250_000, 25_000), (260_000, 25_000)],
)
def test_short_runs_have_a_tenth_of_random_steps(steps: int, random_steps: int) -> None:
    assert RunConfig.resolve(**LEAN, steps=steps).random_steps == random_steps


@pytest.mark.parametrize(
    ("actions", "epsilon"), [(0, 1.0), (1, 0.999905), (5000, 0.525), (10_000, 0.05), (10**6, 0.05)]
)
def test_epsilon_falls_linearly_over_ten_thousand_actions(actions: int, epsilon: float) -> None:
    agent = DQNAgent(2, Choices(2), DQNOptions(hidden=(4,)), WiringOptions(), np.random.default_rng(0))
    agent._explored = actions
    assert agent.epsilon == pytest.approx(epsilon, abs=1e-12)


def test_the_normalisation_of_crossq() -> None:
    assert CrossQOptions().batch_norm == BatchNorm(momentum=0.99, eps=1e-3, r_max=3, d_max=5, warmup=100_000)
    assert METHODS["crossq"].random_steps == 5_000
    assert TD3Options().batch_norm is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"layer_norm": True}, "layer_norm is for critics without batch normalisation"),
        ({"critic_hidden": ()}, "critic_hidden must have at least one width"),
        ({"policy_delay": 0}, "policy_delay must be at least 1"),
        ({"norm_momentum": 1.0}, "norm_momentum must be below 1"),
    ],
)
def test_what_crossq_refuses(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        CrossQOptions(**given)  # type: ignore[arg-type]


def test_defaults_of_a_run() -> None:
    given = {item.name: item.default for item in fields(RunConfig) if item.name not in ("method", "task", "options")}
    assert {name: given[name] for name in RUN} == RUN
    assert not {name for name, value in given.items() if name not in RUN and isinstance(value, float | int) and value}


RUN = {
    "seed": 0,
    "steps": 1_000_000,
    "sparsity": None,
    "lambdas": None,
    "eta": 0.05,
    "adapt_every": 1000,
    "block": 1,
    "random_steps": 25_000,
    "updates_per_step": 1,
    "initial_samples": None,
    "eval_every": 5000,
    "eval_episodes": 10,
    "replay_size": 1_000_000,
    "threads": 1,
    "checkpoint_every": 25_000,
    "keep_replay": False,
    "eval_process": False,
    "envs": 1,
    "env_processes": True,
}


@pytest.mark.parametrize(
    ("method", "eta", "random_steps", "lambdas"),
    [("ds-td3", 0.05, 25_000, (7, 64)), ("ds-sac", 0.1, 10_000, (12, 80))],
)
def test_the_papers_numbers(method: str, eta: float, random_steps: int, lambdas: tuple[float, float]) -> None:
    config = RunConfig.resolve(method=method, task="HalfCheetah-v5")
    assert (config.eta, config.random_steps, config.lambdas) == (eta, random_steps, lambdas)
    assert RunConfig.resolve(method=method, task="Pendulum-v1").sparsity == 0.5
    assert METHODS[method].eta == eta


@pytest.mark.parametrize("n_act", [1, 3, 6])
def test_the_target_entropy_is_minus_the_number_of_actions(n_act: int) -> None:
    def agent(**options: float) -> SACAgent:
        box = ActionBox(-np.ones(n_act), np.ones(n_act))
        chosen = SACOptions(hidden=(4, 4), alpha="auto", **options)  # type: ignore[arg-type]
        return SACAgent(2, box, chosen, WiringOptions(rule=Dense()), np.random.default_rng(0))

    assert agent().target_entropy == -n_act
    assert agent(target_entropy=-0.5).target_entropy == -0.5


@pytest.mark.parametrize(("entropy", "rises"), [(-2.9, False), (-3.1, True)])
def test_the_temperature_rises_below_the_target_entropy_alone(entropy: float, rises: bool) -> None:
    box = ActionBox(-np.ones(3), np.ones(3))
    options = SACOptions(hidden=(4, 4), alpha="auto")
    agent = SACAgent(2, box, options, WiringOptions(rule=Dense()), np.random.default_rng(0))
    before = agent.alpha
    agent._update_temperature(-entropy)
    assert (agent.alpha > before) == rises
