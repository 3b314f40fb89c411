"""Agents that go from Stable-Baselines3 to the engine, or back, and do the same there."""

from __future__ import annotations

import copy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, PPO, SAC, TD3

from rewirl.agents import ActionBox, SACAgent, SACOptions, TD3Agent, TD3Options, Transitions, WiringOptions
from rewirl.nn import batch_of
from rewirl.policies import Policy
from rewirl.sb3 import SparseTraining, agent_from_sb3, from_sb3, to_sb3
from rewirl.sb3.stacks import stacks_of
from rewirl.topology import SET, Dense, RigL

torch.set_num_threads(1)


class Toy(gym.Env):
    """Five numbers to see, and an action box that is neither symmetric nor the same in its dimensions."""

    observation_space = spaces.Box(-np.inf, np.inf, (5,), np.float32)
    action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([3, 10], np.float32))

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self.np_random.standard_normal(5, dtype=np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        ends = self.np_random.random() < 0.05
        return self.np_random.standard_normal(5, dtype=np.float32), float(action[0]), ends, False, {}


OPTIONS = {"learning_starts": 20, "batch_size": 16, "buffer_size": 500, "seed": 0, "device": "cpu", "tau": 0.2}
OBSERVATIONS = np.random.default_rng(0).standard_normal((200, 5)).astype(np.float32) * 3


def trained(kind: type[TD3 | SAC], sparse: bool, **options: object) -> TD3 | SAC:
    model = kind("MlpPolicy", Toy(), policy_kwargs={"net_arch": [24, 16]}, **OPTIONS, **options)
    callback = SparseTraining(SET(eta=0.2, every=7), sparsity=0.6, seed=1) if sparse else None
    return model.learn(80, callback=callback)


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("kind", [TD3, DDPG, SAC])
def test_a_policy_does_what_the_agent_did(kind: type[TD3 | SAC], sparse: bool, tmp_path: Path) -> None:
    model = trained(kind, sparse)
    from_sb3(model, task="Toy").save(tmp_path / "policy.safetensors")
    policy = Policy.load(tmp_path / "policy.safetensors")
    assert (policy.task, policy.algorithm) == ("Toy", "sac" if kind is SAC else "td3")
    total = sum(n_in * n_out for n_in, n_out in zip(policy.sizes, policy.sizes[1:], strict=False))
    assert sum(policy.links) == (round(0.4 * total) if sparse else total)
    expected, _ = model.predict(OBSERVATIONS, deterministic=True)
    np.testing.assert_allclose(policy.predict(OBSERVATIONS)[0], expected, rtol=0, atol=1e-5)


def values(model: TD3 | SAC, agent: TD3Agent | SACAgent, *, targets: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """What critics say of the same states and actions, there and here."""
    actions = np.tanh(OBSERVATIONS[:, :2])
    critic = model.critic_target if targets else model.critic
    with torch.no_grad():
        theirs = critic(torch.from_numpy(OBSERVATIONS), torch.from_numpy(actions))
    ours = agent.targets if targets else agent.networks
    x = batch_of(np.ascontiguousarray(np.concatenate([OBSERVATIONS, actions], 1).T))
    return [(q.numpy()[:, 0], ours[f"critic{i}"].forward(x).array[0].copy()) for i, q in enumerate(theirs, start=1)]


def assert_same(model: TD3 | SAC, agent: TD3Agent | SACAgent) -> None:
    expected, _ = model.predict(OBSERVATIONS, deterministic=True)
    actual = np.stack([agent.box.to_env(agent.act(observation)) for observation in OBSERVATIONS])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
    for targets in (False, True):
        for theirs, mine in values(model, agent, targets=targets):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    for name, stack in stacks_of(model, targets=True).items():
        for layer in range(3):
            np.testing.assert_array_equal(agent.targets[name].dense(layer), stack.weight(layer))


def transitions() -> Transitions:
    rng = np.random.default_rng(2)
    records = rng.standard_normal((16, Transitions.width(5, 2))).astype(np.float32)
    batch = Transitions(5, 2, 16)
    batch.fill(records, np.arange(16))
    return batch


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("kind", [TD3, SAC])
def test_an_agent_of_the_engine_goes_on_from_there(kind: type[TD3 | SAC], sparse: bool) -> None:
    model = trained(kind, sparse)
    agent = agent_from_sb3(model, SET(eta=0.2, every=1) if sparse else Dense(), np.random.default_rng(0))
    assert_same(model, agent)
    assert agent.updates == model._n_updates
    assert (agent.options.batch, agent.options.tau, agent.options.hidden) == (16, 0.2, (24, 16))
    if isinstance(agent, SACAgent):
        assert agent.alpha == pytest.approx(model.log_ent_coef.exp().item(), rel=1e-5)
    before = agent.networks["critic1"].links(0)
    agent.update(transitions())
    assert (agent.networks["critic1"].links(0) != before) == sparse


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("alpha", [0.1, "auto"])
@pytest.mark.parametrize("kind", [TD3Agent, SACAgent])
def test_and_back(kind: type[TD3Agent | SACAgent], sparse: bool, block: int, alpha: float | str) -> None:
    wiring = WiringOptions(rule=RigL(eta=0.2, every=3), lambdas=(3, 4), block=block) if sparse else WiringOptions()
    common = {"hidden": (24, 16), "batch": 16, "tau": 0.3, "beta1": 0.8, "adam_eps": 1e-7}
    options = TD3Options(**common) if kind is TD3Agent else SACOptions(**common, alpha=alpha)
    agent = kind(5, ActionBox([-1, 0], [3, 10]), options, wiring, np.random.default_rng(0))
    batch = transitions()
    for _ in range(10):
        agent.update(batch)
    model = to_sb3(agent, Toy())
    assert_same(model, agent)
    if isinstance(agent, SACAgent) and alpha == "auto":
        assert model.log_ent_coef.exp().item() == pytest.approx(agent.alpha, rel=1e-5)
    assert_same(to_sb3(agent), agent)
    again = agent_from_sb3(model, wiring.rule, copy.deepcopy(agent.rng))
    assert_same(model, again)
    assert again.options == agent.options or kind is SACAgent  # whose target entropy is spelled out by now
    for name, network in agent.networks.items():
        for layer in range(3):
            assert again.networks[name].links(layer) == network.links(layer)
    if sparse:
        training = SparseTraining(RigL(eta=0.2, every=3), lambdas=(3, 4), block=block)
        training.init_callback(model)
        training.on_training_start({}, {})
        for name, wiring_there in training.wirings.items():
            assert list(wiring_there.links.values()) == [agent.networks[name].links(layer) for layer in range(2)]
            assert wiring_there.updates == 10
        training.on_training_end()
        assert_same(model, agent)
        model.learn(30, callback=training)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PPO("MlpPolicy", Toy(), device="cpu"), "PPO cannot be converted: TD3, DDPG and SAC can"),
        (lambda: SAC("MlpPolicy", Toy(), use_sde=True, buffer_size=1, device="cpu"), "no state-dependent exploration"),
        (
            lambda: TD3(
                "MlpPolicy", Toy(), policy_kwargs={"activation_fn": torch.nn.Tanh}, buffer_size=1, device="cpu"
            ),
            "Linear layers with ReLU between them, this one is Linear, Tanh, Linear",
        ),
    ],
)
def test_refused(make: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        from_sb3(make())


def test_refused_as_an_agent() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"this agent is dense: give Dense\(\), not SET"):
        agent_from_sb3(trained(TD3, sparse=False), SET(), rng)
    with pytest.raises(ValueError, match=r"this agent is sparse: give a sparse rule, not Dense\(\)"):
        agent_from_sb3(trained(TD3, sparse=True), Dense(), rng)
    with pytest.raises(ValueError, match="two critics with hidden layers like the actor's"):
        agent_from_sb3(trained(DDPG, sparse=False), Dense(), rng)
    model = TD3("MlpPolicy", Toy(), policy_kwargs={"optimizer_class": torch.optim.AdamW}, **OPTIONS)
    with pytest.raises(ValueError, match="the engine learns by Adam, and this agent by AdamW"):
        agent_from_sb3(model, Dense(), rng)


def test_another_environment_is_refused() -> None:
    agent = TD3Agent(5, ActionBox([-1, 0], [3, 11]), TD3Options(), WiringOptions(), np.random.default_rng(0))
    with pytest.raises(ValueError, match="the agent is for 5 numbers as observation and Box"):
        to_sb3(agent, Toy())


def test_targets_that_follow_now_and_then_are_refused() -> None:
    """The engine counts the interval over all updates, Stable-Baselines3 from the start of each call of `train`."""
    box, options = ActionBox([-1.0], [1.0]), SACOptions(hidden=(8, 8), tau=1.0, target_interval=1000)
    agent = SACAgent(3, box, options, WiringOptions(rule=Dense()), np.random.default_rng(0))
    with pytest.raises(ValueError, match="target_interval must be 1, not 1000"):
        to_sb3(agent)
    model = SAC("MlpPolicy", Toy(), target_update_interval=2, **OPTIONS)
    with pytest.raises(ValueError, match="target_update_interval must be 1, not 2"):
        agent_from_sb3(model, Dense(), np.random.default_rng(0))


def test_an_agent_that_learned_without_the_callback_since_is_refused() -> None:
    model = trained(TD3, sparse=True)
    model.learn(60)
    for convert in (from_sb3, lambda model: agent_from_sb3(model, SET(), np.random.default_rng(0))):
        with pytest.raises(ValueError, match="this agent has learned without SparseTraining since"):
            convert(model)


def test_a_box_of_doubles_is_the_same_box() -> None:
    class Doubles(Toy):
        action_space = spaces.Box(-0.1, 0.1, (2,), np.float64)

    env = Doubles()
    box = ActionBox(env.action_space.low, env.action_space.high)
    agent = TD3Agent(5, box, TD3Options(hidden=(8, 8)), WiringOptions(), np.random.default_rng(0))
    assert to_sb3(agent, env).n_envs == 1
