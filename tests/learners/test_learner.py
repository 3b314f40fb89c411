"""TD3 and SAC from Python: learn, continue, predict, save, load, progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

import rewirl
from rewirl import SAC, SET, TD3, Dense, Policy, RigL, Static
from rewirl.errors import Refused
from rewirl.storage import inspect_run, resume, verify
from rewirl.topology import DropAndGrow

TINY = {"hidden": (16, 16), "batch": 8, "random_steps": 50, "eval_every": 0, "replay_size": 2000}
OBS = np.random.default_rng(0).standard_normal((20, 3), dtype=np.float32)


@pytest.mark.parametrize("algorithm", [TD3, SAC])
@pytest.mark.parametrize("wiring", [Dense(), Static(), SET(every=20), RigL(every=20)])
def test_learn_and_predict(algorithm, wiring):
    agent = algorithm("Pendulum-v1", wiring=wiring, seed=1, **TINY)
    assert agent.learn(120) is agent
    action, nothing = agent.predict(OBS[0], deterministic=True)
    assert action.shape == (1,)
    assert nothing is None
    assert np.abs(agent.predict(OBS)[0]).max() <= 2
    assert agent.config.method.endswith(agent.algorithm)
    assert (agent.run.costs.sparsity > 0.4) == wiring.sparse


def test_learning_goes_on_where_it_stopped():
    once = TD3("Pendulum-v1", wiring=SET(every=20), sparsity=0.5, seed=1, **TINY).learn(300)
    twice = TD3("Pendulum-v1", wiring=SET(every=20), sparsity=0.5, seed=1, **TINY).learn(130).learn(170)
    assert twice.step == 300
    np.testing.assert_array_equal(once.predict(OBS)[0], twice.predict(OBS)[0])


def test_predictions_follow_what_is_learned():
    agent = TD3("Pendulum-v1", seed=1, **TINY).learn(100)
    before = agent.predict(OBS)[0]
    assert not np.array_equal(before, agent.learn(50).predict(OBS)[0])


def test_sac_samples_and_td3_does_not():
    sac, td3 = SAC("Pendulum-v1", seed=1, **TINY), TD3("Pendulum-v1", seed=1, **TINY)
    assert not np.array_equal(*(sac.predict(OBS, deterministic=False)[0] for _ in range(2)))
    np.testing.assert_array_equal(*(td3.predict(OBS, deterministic=False)[0] for _ in range(2)))


def test_callback_sees_episodes_and_stops():
    seen = []

    def callback(agent, step):
        seen.append(step)
        assert agent.predict(OBS[0])[0].shape == (1,)
        return None if len(seen) < 2 else False

    agent = TD3("Pendulum-v1", seed=1, **TINY)
    agent.learn(2000, callback=callback)
    assert seen == [200, 400]
    assert 400 <= agent.step <= 401
    agent.learn(250)
    assert seen == [200, 400]


def test_environments_by_name_instance_and_factory():
    agents = [
        TD3(env, seed=1, **TINY).learn(100)
        for env in ("Pendulum-v1", gymnasium.make("Pendulum-v1"), lambda: gymnasium.make("Pendulum-v1"))
    ]
    assert {agent.config.task for agent in agents} == {"Pendulum-v1"}
    actions = [agent.predict(OBS)[0] for agent in agents]
    np.testing.assert_array_equal(actions[0], actions[1])
    np.testing.assert_array_equal(actions[0], actions[2])


def test_evaluations_come_with_learning():
    agent = TD3("Pendulum-v1", seed=1, **{**TINY, "eval_every": 50, "eval_episodes": 1}).learn(100)
    assert [row.step for row in agent.evaluations] == [0, 50, 100]
    assert agent.evaluate(episodes=1, seed=3).mean < 0


def test_the_papers_numbers_by_naming_the_rule():
    assert SAC("HalfCheetah-v5", wiring=SET).config.eta == 0.1
    assert SAC("HalfCheetah-v5", wiring=SET(eta=0.3)).config.eta == 0.3
    assert TD3("HalfCheetah-v5", wiring=SET).config.lambdas == (7, 64)


def test_a_rule_of_ones_own(tmp_path):
    @dataclass(frozen=True)
    class Largest(DropAndGrow):
        name: ClassVar[str] = "largest"
        calls: ClassVar[list[int]] = []

        def choose_drops(self, links, weights, count):
            self.calls.append(count)
            return super().choose_drops(links, -np.abs(weights), count)

    agent = TD3("Pendulum-v1", wiring=Largest(eta=0.5, every=10), sparsity=0.5, seed=1, **TINY).learn(100)
    assert Largest.calls
    assert agent.run.costs.sparsity > 0.4
    with pytest.raises(Refused, match="run folder cannot store your own rule"):
        TD3("Pendulum-v1", wiring=Largest(), run_dir=tmp_path / "run")


def test_run_folder_is_gone_on_with(tmp_path):
    whole = TD3("Pendulum-v1", wiring=SET(every=20), seed=1, **TINY).learn(450)
    options = {"wiring": SET(every=20), "seed": 1, "run_dir": tmp_path / "run", **TINY}
    with TD3("Pendulum-v1", **options) as agent:
        agent.learn(200)
    with TD3("Pendulum-v1", **options) as agent:
        agent.learn(250)
        assert agent.step == 450
        np.testing.assert_array_equal(agent.predict(OBS)[0], whole.predict(OBS)[0])
    policy = Policy.load(tmp_path / "run" / "policy.safetensors")
    np.testing.assert_array_equal(policy.predict(OBS)[0], whole.predict(OBS)[0])


def test_a_folder_of_so_many_steps_can_go_further(tmp_path):
    with TD3("Pendulum-v1", seed=1, run_dir=tmp_path / "run", steps=200, **TINY) as agent:
        assert agent.learn(200).learn(200).step == 400


def test_a_folder_is_as_long_as_what_was_learned(tmp_path):
    whole = TD3("Pendulum-v1", seed=1, **TINY).learn(500)
    options = {"seed": 1, "run_dir": tmp_path / "run", **TINY}
    with TD3("Pendulum-v1", **options) as agent:
        agent.predict(OBS)  # begins it, and says nothing about its length
        agent.learn(300)
        info = inspect_run(tmp_path / "run")
        assert (info.config.steps, info.step) == (300, 300)
        agent.learn(100)
    info = inspect_run(tmp_path / "run")
    assert (info.state, info.config.steps, info.step) == ("done", 400, 400)
    with TD3("Pendulum-v1", **options) as agent:
        agent.learn(100)
        np.testing.assert_array_equal(agent.predict(OBS)[0], whole.predict(OBS)[0])
    assert inspect_run(tmp_path / "run").config.steps == 500
    assert verify(tmp_path / "run") == []
    with TD3("Pendulum-v1", steps=200, **options) as agent:  # fewer than there are is no wish to have fewer
        assert agent.learn(10).step == 510


def test_a_folder_that_this_process_has_already(tmp_path):
    with TD3("Pendulum-v1", run_dir=tmp_path / "run", **TINY) as agent:
        agent.learn(50)
        with pytest.raises(Refused, match=r"in use by process .*, which is this process: close\(\)"):
            TD3("Pendulum-v1", run_dir=tmp_path / "run", **TINY).learn(50)


class Pendulum(PendulumEnv):
    """Has a name of Gymnasium's, and is another."""


def test_an_environment_of_ones_own_goes_on_from_python(tmp_path):
    with TD3(Pendulum, run_dir=tmp_path / "run", **TINY) as agent:
        assert agent.learn(50).config.task == f"{__name__}.Pendulum"
    with pytest.raises(
        Refused, match=r"there is no task .*started from Python.*TD3\(env, run_dir='.*/run', …\)\.learn"
    ):
        resume(tmp_path / "run")
    with TD3(Pendulum, run_dir=tmp_path / "run", **TINY) as agent:
        assert agent.learn(50).step == 100


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TD3("Pendulum-v1", sparcity=0.5), "there is no option 'sparcity', did you mean sparsity?"),
        (lambda: TD3("Pendulum-v1", alpha=0.5), "alpha is an option of SAC"),
        (lambda: TD3("Pendulum-v1", seed=-1), "seed must be from 0 to 4294967295"),
        (lambda: TD3("Pendulum-v1", wiring="set"), "wiring must be a rule such as SET"),
        (lambda: TD3("Pendulum-v1", wiring=SET(), eta=0.5), "eta is given twice"),
        (lambda: TD3("Pendulum-v1", wiring=SET, sparsity=0.999, hidden=(8, 8)).learn(5), "largest sparsity possible"),
        (lambda: TD3("Pendulun-v1").learn(5), "did you mean Pendulum-v1?"),
        (lambda: TD3("CartPole-v1").learn(5), "td3 cannot learn a task with 2 discrete actions: use dqn"),
        (lambda: TD3("Pendulum-v1").learn(0), "steps must be at least 1"),
        (lambda: TD3(3), "gymnasium"),
    ],
)
def test_refusals(make, says):
    with pytest.raises(Refused) as refusal:
        make()
    assert says in str(refusal.value)


def test_the_package_offers_its_names():
    assert set(rewirl.__all__) <= set(dir(rewirl))
    assert all(getattr(rewirl, name) is not None for name in rewirl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'PPO'"):
        _ = rewirl.PPO


def test_so_many_steps(tmp_path):
    with TD3("Pendulum-v1", seed=1, run_dir=tmp_path / "run", **TINY) as agent:
        assert agent.learn(1e2).learn(np.int64(100)).step == 200
    assert inspect_run(tmp_path / "run").config.steps == 200
    for wrong, says in ((0, "at least 1, not 0"), (1.5, "a whole number, not 1.5"), ("9", "a whole number, not '9'")):
        with pytest.raises(Refused, match=f"steps must be {says}"):
            TD3("Pendulum-v1", **TINY).learn(wrong)


def test_learning_after_the_end(tmp_path):
    with TD3("Pendulum-v1", seed=1, run_dir=tmp_path / "run", **{**TINY, "eval_every": 100}) as agent:
        agent.learn(100)
    agent.learn(100)  # its folder is opened again
    agent.close()
    assert verify(tmp_path / "run") == []
    assert [row.step for row in agent.evaluations] == [0, 100, 200]
    assert len((tmp_path / "run" / "evaluations.csv").read_text().splitlines()) == 4
    with TD3("Pendulum-v1", **TINY) as agent:
        agent.learn(60)
    agent.predict(OBS)
    with pytest.raises(Refused, match="this agent was closed"):
        agent.learn(60)
