"""Progress of an agent: a live line on terminals, otherwise nothing, or plain lines if requested."""

from __future__ import annotations

import io
import re
import warnings

import pytest
from rich.console import Console

from rewirl import TD3
from rewirl.learners import learner
from rewirl.learners.progress import progress_of

TINY = {"hidden": (8, 8), "batch": 8, "random_steps": 50, "eval_every": 100, "eval_episodes": 1, "replay_size": 2000}


def shown(monkeypatch, progress, terminal, **options):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, highlight=False)
    monkeypatch.setattr(learner, "progress_of", lambda wanted: progress_of(wanted, console))
    TD3("Pendulum-v1", **TINY, **options).learn(250, progress=progress)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("progress", "terminal", "verbose", "something"),
    [
        (None, True, None, True),
        (None, False, None, False),
        (True, False, None, True),
        (False, True, None, False),
        (None, False, 1, True),
        (None, True, 0, False),
        (True, True, 0, True),
    ],
)
def test_where_it_is_shown(monkeypatch, progress, terminal, verbose, something):
    options = {} if verbose is None else {"verbose": verbose}
    assert bool(shown(monkeypatch, progress, terminal, **options)) == something


def test_what_it_says(monkeypatch):
    last = shown(monkeypatch, True, False).splitlines()[-1]
    assert re.fullmatch(
        r"td3 on Pendulum-v1  250/250 steps \(100%\)  [\d,]+ steps/s  ETA \S+  episode -[\d,.]+  "
        r"evaluation -[\d,.]+ at step 250",
        last,
    )


def test_short_runs_learn_by_default():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = TD3("Pendulum-v1", hidden=(8, 8), eval_every=0)
        agent.predict([1, 0, 0])  # begins it before anyone knows how long it will be
        agent.learn(2000)
    assert (agent.config.random_steps, agent.run.agent.updates) == (200, 1800)
    agent.learn(100)
    assert (agent.config.random_steps, agent.run.agent.updates) == (200, 1900)


def test_the_papers_random_steps_at_the_papers_length():
    agent = TD3("Pendulum-v1", hidden=(8, 8), eval_every=0)
    assert agent.config.of_length(1_000_000).random_steps == 25_000


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (90, "all 90 steps are random actions, so the agent does not learn: give a smaller random_steps than 100"),
        (150, "100 of 150 steps are random actions, which leaves 50 to learn in"),
    ],
)
def test_a_random_phase_that_leaves_nothing_is_told(steps, says):
    with pytest.warns(UserWarning, match=says):
        TD3("Pendulum-v1", hidden=(8, 8), eval_every=0).learn(steps)


def test_a_folder_keeps_the_random_steps_that_it_was_begun_with(tmp_path):
    options = {"hidden": (8, 8), "eval_every": 0, "run_dir": tmp_path / "run"}
    with TD3("Pendulum-v1", **options) as agent:
        agent.learn(2000)
    with TD3("Pendulum-v1", **options) as agent:
        assert agent.step == 2000
        agent.learn(3000)
        assert agent.config.random_steps == 200


def test_agents_and_policies_in_a_line():
    agent = TD3("Pendulum-v1", **TINY)
    assert repr(agent) == "TD3(Pendulum-v1, td3, 8-8 hidden, step 0)"
    agent.learn(100)
    last = f"{agent.evaluations[-1].return_mean:,.1f}"
    assert repr(agent) == f"TD3(Pendulum-v1, td3, 8-8 hidden, 304 links, step 100, return {last})"
    assert repr(agent.policy()).startswith("Policy(Pendulum-v1, td3, 3-8-8-1, 96 links, 0% sparse, step 100, return -")
