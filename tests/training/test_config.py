"""What a run is: presets of the paper, files in and out, and what is refused."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from rewirl.agents.methods import METHODS
from rewirl.agents.options import SACOptions, TD3Options
from rewirl.storage import start
from rewirl.training.config import RunConfig, meanings_of, overlay, parse_toml


def resolve(method: str = "ds-td3", task: str = "HalfCheetah-v5", **given: object) -> RunConfig:
    return RunConfig.resolve(method=method, task=task, **given)


@pytest.mark.parametrize(
    ("method", "task", "lambdas", "sparsity"),
    [
        ("ds-td3", "HalfCheetah-v5", (7, 64), None),
        ("static-td3", "Ant-v5", (40, 64), None),
        ("ds-td3", "Humanoid-v4", (61, 64), None),
        ("ds-sac", "HalfCheetah-v5", (12, 80), None),
        ("rigl-sac", "Hopper-v5", (7, 20), None),
        ("ds-td3", "Pendulum-v1", None, 0.5),
        ("td3", "HalfCheetah-v5", None, None),
    ],
)
def test_wiring_is_the_papers_where_it_has_one(method, task, lambdas, sparsity):
    config = resolve(method, task)
    assert (config.lambdas, config.sparsity) == (lambdas, sparsity)


@pytest.mark.parametrize(("method", "eta", "random_steps"), [("ds-td3", 0.05, 25_000), ("ds-sac", 0.1, 10_000)])
def test_numbers_that_follow_the_algorithm(method, eta, random_steps):
    config = resolve(method)
    assert (config.eta, config.random_steps) == (eta, random_steps)
    assert config.wiring().rule.eta == eta


def test_other_widths_than_the_papers_do_not_take_its_lambdas():
    assert resolve(hidden=(64, 64)).sparsity == 0.5
    assert resolve(hidden=(64, 64), lambdas=(1, 2)).lambdas == (1, 2)


def test_options_by_their_own_name():
    config = resolve("ds-sac", lr=1e-2, alpha="auto", hidden=[32, 16], adapt_every=10, block=4)
    assert (config.options.lr, config.options.alpha, config.options.hidden) == (1e-2, "auto", (32, 16))
    assert (config.wiring().rule.every, config.wiring().block) == (10, 4)


@pytest.mark.parametrize("method", METHODS)
def test_toml_round_trip(method):
    config = resolve(method, "Ant-v5", seed=7, gamma=0.1 + 0.2, steps=123)
    assert RunConfig.from_toml(config.to_toml()) == config


@settings(max_examples=25)
@given(st.text())
def test_task_names_are_text_in_toml(task):
    try:
        config = resolve(task=task)
    except ValueError:
        return
    assert RunConfig.from_toml(config.to_toml()).task == task


def test_every_field_says_what_it_means():
    for kind in (RunConfig, TD3Options, SACOptions):
        meanings = meanings_of(kind)
        assert all(len(meanings[f.name]) > 5 for f in fields(kind))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"seed": -1}, "seed must be from 0 to 4294967295, not -1"),
        ({"seed": 2**64}, "seed must be from 0 to 4294967295, not 18446744073709551616"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"seed": "1"}, "seed must be a whole number, not '1'"),
        ({"seed": True}, "seed must be a whole number"),
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"random_steps": -1}, "random_steps must not be negative"),
        ({"eval_every": -1}, "eval_every must not be negative"),
        ({"sparsity": 1}, "sparsity must be from 0 (dense) to below 1, not 1"),
        ({"sparsity": -0.1}, "sparsity must be from 0 (dense) to below 1, not -0.1"),
        ({"sparsity": math.nan}, "sparsity must be a finite number"),
        ({"sparsity": 0.5, "lambdas": (7, 64)}, "either sparsity or lambdas"),
        ({"lambdas": (7,)}, "1 lambdas for 2 sparse layers"),
        ({"lambdas": (7, math.nan)}, "finite number"),
        ({"lambdas": "7 64"}, "lambdas must be numbers such as"),
        ({"eta": 1.5}, "eta must be from 0 to 1"),
        ({"block": 3}, "block must be"),
        ({"recycle": -0.1}, "recycle must not be negative, and is -0.1"),
        ({"recycle": math.inf}, "recycle must be a finite number"),
        ({"recycle": "0"}, "recycle must be a number, not '0'"),
        ({"min_links": -1}, "min_links must not be negative, got -1"),
        ({"min_links": 1.5}, "min_links must be a whole number, not 1.5"),
        ({"method": "static-td3", "min_links": 2}, "static-td3 never rewires"),
        ({"gamma": 2.0}, "gamma must be from 0 to 1"),
        ({"keep_replay": 1}, "keep_replay must be true or false"),
        ({"lrr": 1.0}, "there is no option 'lrr', did you mean lr?"),
        ({"adapt_evry": 5}, "did you mean adapt_every?"),
        ({"alpha": 0.2}, "alpha is an option of SAC, which ds-td3 is not"),
        ({"task": "../x"}, "is not a task"),
        ({"task": ""}, "is not a task"),
        ({"method": "ds-tdd"}, "there is no method 'ds-tdd', did you mean ds-td3?"),
        (
            {"method": "td3", "sparsity": 0.5},
            "td3 is dense: for sparsity, lambdas, actor_sparsity, critic_sparsity or block use ds-td3",
        ),
        ({"method": "static-td3", "eta": 0.5}, "static-td3 never rewires"),
        ({"method": "ds-sac", "alpha": "aut"}, "alpha must be a number or 'auto'"),
    ],
)
def test_refusals(given, says):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        resolve(**given)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_sparsity_zero_is_dense_and_a_large_lambda_is_capped():
    assert sum(resolve(sparsity=0).wiring().counts((17, 256, 256, 6))) == 17 * 256 + 256**2 + 256 * 6
    assert resolve(lambdas=(1000, 1000)).wiring().counts((17, 256, 256, 6)) == [17 * 256, 256**2, 256 * 6]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("method = 'ds-td3'", "the config has no task"),
        ("method = 'ds-td3'\ntask = 'A'\nsedd = 3", "there is no option 'sedd', did you mean seed?"),
        ("seed = !!python/object:os.system", "is not TOML"),
        ("method = 3\ntask = 'A'", "method must be a string"),
        ("method = 'ds-td3'\ntask = 'A'\n[options]\nlr = 1.0", "there is no option 'options'"),
        ("method = 'ds-td3'\ntask = 'A'\nseed = '__import__(\"os\").getpid()'", "seed must be a whole number"),
    ],
)
def test_files_that_are_refused(text, says):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        RunConfig.from_toml(text)
    assert says in str(refusal.value)


def test_flags_win_over_the_file():
    file = parse_toml("method = 'ds-td3'\ntask = 'Ant-v5'\nseed = 3\nlambdas = [1, 2]")
    config = RunConfig.resolve(**overlay(file, {"seed": 4, "sparsity": 0.9}))
    assert (config.seed, config.sparsity, config.lambdas) == (4, 0.9, None)


def test_differences_name_what_makes_it_another_run():
    config = resolve()
    assert config.differences(replace(config, steps=5, threads=2, checkpoint_every=7, eval_process=True)) == []
    other = resolve(seed=2, lr=0.5, sparsity=0.5)
    assert config.differences(other) == [
        "seed: 0 is now 2",
        "lambdas: [7.0, 64.0] is now not set",
        "lr: 0.001 is now 0.5",
        "sparsity: not set is now 0.5",
    ]


def test_options_of_older_versions_that_changed_nothing_are_read():
    text = RunConfig.resolve(method="ds-td3", task="Hopper-v5").to_toml()
    assert RunConfig.from_toml(text + "mean_moments = false\n") == RunConfig.from_toml(text)
    with pytest.raises(ValueError, match="there is no option 'mean_moments'"):
        RunConfig.from_toml(text + "mean_moments = true\n")


def test_eta_is_annealed_over_most_of_the_updates_unless_told_until_when():
    def until(**given):
        return RunConfig.resolve(method="ds-td3", task="Hopper-v5", **given).adapt_until

    assert until() is None
    assert until(anneal_eta=True) == 780_000  # 80% of 975 000
    assert until(anneal_eta=True, steps=100_000, random_steps=20_000, updates_per_step=2) == 128_000
    assert until(anneal_eta=True, adapt_until=5) == 5
    rule = RunConfig.resolve(method="rigl-td3", task="Hopper-v5", eta=0.3, anneal_eta=True).wiring().rule
    assert rule.due(780_000)
    assert not rule.due(781_000)
    assert rule.at(390_000).eta == pytest.approx(0.15)


def test_actor_and_critics_may_differ_in_sparsity():
    both = RunConfig.resolve(method="ds-td3", task="Hopper-v5", actor_sparsity=0.5, critic_sparsity=0.9)
    assert (both.sparsity, both.lambdas) == (None, None)
    one = RunConfig.resolve(method="ds-td3", task="Hopper-v5", critic_sparsity=0.9)
    assert one.lambdas == (7, 64)
    sizes = (14, 256, 256, 1)
    assert sum(one.wiring().actor.counts(sizes)) > 3 * sum(one.wiring().critic.counts(sizes))
    assert both.wiring().critic.counts(sizes) == one.wiring().critic.counts(sizes)


@pytest.mark.parametrize("given", [{"critic_sparsity": 0.5}, {"block": 4}])
def test_a_dense_method_has_no_options_of_links(given):
    with pytest.raises(ValueError, match=r"td3 is dense: for sparsity, .* or block use ds-td3"):
        RunConfig.resolve(method="td3", task="Hopper-v5", **given)


@pytest.mark.parametrize(
    "given",
    [
        {"adapt_until": 5},
        {"anneal_eta": True},
        {"eta": 0.2},
        {"min_links": 3},
        {"adapt_every": 5},
        {"min_links": 3, "recycle": 0},
        {"eta": 0.2, "recycle": 0},
    ],
)
def test_a_static_method_has_no_options_of_rewiring(given):
    with pytest.raises(ValueError, match=r"static-td3 never rewires: for eta, .* use ds-td3"):
        RunConfig.resolve(method="static-td3", task="Hopper-v5", **given)


@pytest.mark.parametrize("method", ["td3", "static-td3", "ds-td3", "rigl-sac"])
def test_recycling(method):
    """Networks that are not rewired recycle every adapt_every updates, others when they are rewired."""
    config = RunConfig.resolve(method=method, task="Hopper-v5", recycle=0.1, adapt_every=50)
    wiring = config.wiring()
    assert wiring.recycle == 0.1
    assert [update for update in range(200) if wiring.due(update)] == [50, 100, 150]
    assert RunConfig.from_toml(config.to_toml()) == config
    assert config.items()["adapt_every"] == 50
    off = RunConfig.resolve(method=method, task="Hopper-v5")
    assert "recycle" not in off.items()
    assert off.wiring().recycle is None
    assert off.wiring().due(1000) == (method in ("ds-td3", "rigl-sac"))
    if method in ("ds-td3", "rigl-sac"):
        assert wiring.rule.min_links == 1
        assert off.wiring().rule.min_links == 0
        more = RunConfig.resolve(method=method, task="Hopper-v5", recycle=0, min_links=4, adapt_until=2000)
        assert more.wiring().rule.min_links == 4
        assert not more.wiring().due(3000)


def test_updates_of_a_run():
    config = RunConfig.resolve(method="td3", task="Hopper-v5", steps=1000, random_steps=100, updates_per_step=3)
    assert config.updates == 2700
    assert "anneal_eta" not in config.items()


@pytest.mark.parametrize("per_step", [0.4, 1, 2.5])
def test_updates_per_step_need_not_be_whole(per_step: float) -> None:
    with start(tiny.config(steps=207, random_steps=57, updates_per_step=per_step, eval_every=0)) as run:
        run.train()
        assert run.agent.updates == run.config.updates == int(207 * per_step) - int(57 * per_step)
