"""Grids: what a file multiplies to, what is left when it is narrowed, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewirl.errors import Refused
from rewirl.experiments import load_grid, parse_grid, preset_names
from rewirl.training.config import RunConfig

TASKS = ["HalfCheetah-v5", "Walker2d-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5"]
GRID = """
about = "two variants"
tasks = ["Pendulum-v1", "Reacher-v5"]
methods = ["td3", "ds-td3"]
seeds = [1, 2]
steps = 1000
random_steps = 100

[[variant]]
label = "source"
tasks = ["Pendulum-v1"]
methods = ["sac"]
seeds = [9]
steps = 500
lr = 0.01

[[variant]]
label = "learner"
tasks = ["Pendulum-v1"]
initial_samples = { of = "source" }
"""


def names(text: str, **narrowing: object) -> list[str]:
    return [str(run) for run in parse_grid(text, "mine").narrowed(**narrowing).runs()]  # type: ignore[arg-type]


def test_the_papers_experiments() -> None:
    expected = {
        "paper/td3": (5 * 4 * 5, {"td3", "static-td3", "ds-td3", "sac"}, TASKS),
        "paper/sac": (5 * 2 * 5, {"sac", "ds-sac"}, TASKS),
        "paper/schedule": ((4 + 1) * 5, {"td3", "ds-td3"}, TASKS[:1]),
        "paper/sparsity": ((3 + 1) * 5, {"td3", "ds-td3"}, TASKS[:1]),
        "paper/initial-samples": (2 * 2 + 2 * 3 * 5, {"td3", "ds-td3"}, TASKS[:1]),
        "paper/costs": (5 * 4, {"td3", "ds-td3", "sac", "ds-sac"}, TASKS),
    }
    assert preset_names() == sorted(expected)
    for preset, (count, methods, tasks) in expected.items():
        runs = load_grid(preset).runs()
        assert len(runs) == count, preset
        assert {run.config.method for run in runs} == methods
        assert list(dict.fromkeys(run.config.task for run in runs)) == tasks
        assert load_grid(preset).trains == (preset != "paper/costs")


def test_the_papers_numbers() -> None:
    hard = [run.config for run in load_grid("paper/sac").runs()]
    assert {(config.options.tau, config.options.target_interval) for config in hard} == {(1.0, 1000)}  # type: ignore[union-attr]
    every = [run.config.adapt_every for run in load_grid("paper/schedule").runs() if run.config.method == "ds-td3"]
    assert sorted(set(every)) == [200, 500, 1000, 2000]
    levels = [run.config.sparsity for run in load_grid("paper/sparsity").runs() if run.config.method == "ds-td3"]
    assert sorted(set(levels)) == [0.25, 0.5, 0.8]
    plain = [run.config for run in load_grid("paper/td3").runs()]
    assert all(
        config == RunConfig.resolve(method=config.method, task=config.task, seed=config.seed) for config in plain
    )


def test_learned_policies_of_the_same_method_and_their_length() -> None:
    runs = load_grid("paper/initial-samples").runs()
    begun = [(run, run.source) for run in runs if run.source is not None]
    assert len(begun) == 20
    for run, source in begun:
        assert source.config.method == run.config.method
        assert source.config.steps == {"from500k": 500_000, "from700k": 700_000}[run.label]
        assert runs.index(source) < runs.index(run)


def test_a_source_is_the_run_of_the_same_kind_or_the_only_one() -> None:
    runs = parse_grid(GRID, "mine").runs()
    assert [str(run) for run in runs] == [
        "Pendulum-v1 sac seed 9 source",
        "Pendulum-v1 td3 seed 1 learner",
        "Pendulum-v1 ds-td3 seed 1 learner",
        "Pendulum-v1 td3 seed 2 learner",
        "Pendulum-v1 ds-td3 seed 2 learner",
    ]
    assert {run.source for run in runs[1:]} == {runs[0]}
    assert (runs[0].config.options.lr, runs[1].config.options.lr) == (0.01, 0.001)


def test_narrowed_but_what_others_begin_with_stays() -> None:
    narrow = {"methods": ["ds-td3"], "seeds": [2]}
    assert names(GRID, **narrow) == ["Pendulum-v1 sac seed 9 source", "Pendulum-v1 ds-td3 seed 2 learner"]
    assert names(GRID, seeds=[7])[-1] == "Pendulum-v1 ds-td3 seed 7 learner", "seeds may be others than the grid's"
    assert names(GRID, methods=["sac"], seeds=[9]) == ["Pendulum-v1 sac seed 9 source"]


def test_seeds_are_those_of_variants_with_their_own_too() -> None:
    text = BASE + '[[variant]]\nlabel = "a"\n[[variant]]\nlabel = "b"\neta = 0.2\nseeds = [1, 2]\n'
    assert names(text, seeds=[5]) == ["Pendulum-v1 ds-td3 seed 5 a", "Pendulum-v1 ds-td3 seed 5 b"]


def test_steps_are_shortened_alike() -> None:
    runs = parse_grid(GRID, "mine").narrowed(steps=300).runs()
    assert [run.config.steps for run in runs] == [150, 300, 300, 300, 300]
    assert runs[1].source == runs[0]


def test_two_variants_that_describe_one_run_are_one() -> None:
    text = 'tasks = ["Pendulum-v1"]\nmethods = ["ds-td3"]\nseeds = [1]\n'
    text += (
        '[[variant]]\nlabel = "a"\n[[variant]]\nlabel = "b"\nadapt_every = 1000\n[[variant]]\nlabel = "c"\neta = 0.2'
    )
    assert names(text) == ["Pendulum-v1 ds-td3 seed 1 a", "Pendulum-v1 ds-td3 seed 1 c"]


def test_seed_by_seed() -> None:
    text = 'tasks = ["A-v0", "B-v0"]\nmethods = ["td3"]\nseeds = [3, 1]'
    assert names(text) == ["A-v0 td3 seed 3", "B-v0 td3 seed 3", "A-v0 td3 seed 1", "B-v0 td3 seed 1"]


BASE = 'tasks = ["Pendulum-v1"]\nmethods = ["ds-td3"]\nseeds = [1]\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BASE.replace("[1]", "[]"), "mine is an empty grid: its seeds are an empty list"),
        (BASE + '[[variant]]\nlabel="a"\ntasks = []', "mine is an empty grid: its tasks are an empty list"),
        ('tasks = ["Pendulum-v1"]\nmethods = ["ds-td3"]', 'mine has no seeds: add a line such as seeds = [1, 2, 3]'),
        (BASE.replace("ds-td3", "ds-tdd"), "mine: there is no method 'ds-tdd', did you mean ds-td3?"),
        (BASE + "steeps = 3", "mine: there is no option 'steeps', did you mean steps?"),
        (BASE + "seed = 3", "mine: there is no option 'seed', did you mean seeds?"),
        (BASE + "eta = 2.0", "eta"),
        (BASE + "target_interval = 2", "mine: target_interval is an option of SAC, which ds-td3 is not"),
        (BASE.replace("[1]", '["1"]'), "mine: seeds must be a list such as [1, 2, 3], not ['1']"),
        (BASE.replace("[1]", "1"), "mine: seeds must be a list such as [1, 2, 3], not 1"),
        (BASE.replace("[1]", "[-1]"), "mine: seed must be from 0"),
        (BASE + "[[variant]]\n[[variant]]", "mine, variant 1: give it a unique label"),
        (BASE + '[[variant]]\nlabel="a"\n[[variant]]\nlabel="a"', "mine, variant 2: give it a unique label"),
        (BASE + '[[variant]]\nlabel = "../a"', "mine, variant 1: a label must be one word that can name a folder"),
        (BASE + '[[variant]]\nlabel = "a"\nabout = "x"', "mine, variant 1: there is no option 'about'"),
        (BASE + '[variant]\nlabel = "a"', "mine: a variant starts with a line [[variant]]"),
        (BASE + 'train = "no"', "mine: about must be a string, and train true or false"),
        (
            BASE + '[[variant]]\nlabel="old"\n[[variant]]\nlabel="a"\ninitial_samples = { of = "odl" }',
            "mine, variant a: initial_samples names 'odl', which is not a variant before it, did you mean old?",
        ),
        (BASE + "initial_samples = { off = 3 }", 'initial_samples must be the path of a run, or { of = "LABEL" }'),
        (BASE + 'initial_samples = { of = "a" }', "belong in a [[variant]]"),
        (
            BASE + '[[variant]]\nlabel="a"\nseeds=[4, 5]\n[[variant]]\nlabel="b"\ninitial_samples = { of = "a" }',
            "mine: the variant a has no run that b can start from: it has several seeds, and none is 1",
        ),
        ("tasks = [", "mine is not TOML"),
    ],
)  # fmt: skip
def test_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_grid(text, "mine").runs()
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tasks": ["Pendulum"]}, "mine has no task 'Pendulum', did you mean Pendulum-v1? (tasks: Pendulum-v1)"),
        ({"methods": ["sac"]}, "mine has no method 'sac'"),
    ],
)
def test_narrowed_to_what_it_does_not_have(given: dict[str, list[str]], says: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_grid(BASE, "mine").narrowed(**given)  # type: ignore[arg-type]
    assert says in str(refused.value)


def test_narrowed_to_nothing() -> None:
    with pytest.raises(Refused, match="the grid mine has no runs with methods: sac; seeds: 1"):
        parse_grid(GRID, "mine").narrowed(methods=["sac"], seeds=[1]).runs()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("paper/tdd3", "there is no preset 'paper/tdd3', did you mean paper/td3?"),
        ("schedule", "there is no preset 'schedule', did you mean paper/schedule?"),
        ("../../etc/passwd", "there is no preset"),
        ("none.toml", "cannot read the grid none.toml: No such file or directory"),
    ],
)
def test_unknown_presets(name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused) as refused:
        load_grid(name)
    assert says in str(refused.value)


def test_a_grid_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GRID)
    assert len(load_grid(tmp_path / "own.toml").runs()) == 5
    assert load_grid(str(tmp_path / "own.toml")).about == "two variants"
    (tmp_path / "own.toml").write_bytes(b"\xff")
    with pytest.raises(Refused, match="it is not UTF-8 text"):
        load_grid(tmp_path / "own.toml")


def test_the_grid_in_the_docs_is_one() -> None:
    docs = Path(__file__).parents[3] / "docs" / "experiments.md"
    text = docs.read_text("utf-8").split("```toml\n")[1].split("```")[0]
    runs = [str(run) for run in parse_grid(text, "blocks.toml").runs()]
    assert len(runs) == 18
    assert "HalfCheetah-v5 ds-td3 seed 1 blocks" in runs
