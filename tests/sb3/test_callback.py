"""Agents of Stable-Baselines3 that learn sparse: what holds while they do, when they are saved, and that they learn."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from rewirl.sb3 import SparseTraining
from rewirl.sb3.networks import agent_networks
from rewirl.topology import SET, RigL, Rule

torch.set_num_threads(1)

OFF_POLICY = {"learning_starts": 20, "batch_size": 16, "buffer_size": 500}
AGENTS = {
    "td3": (TD3, "Pendulum-v1", {**OFF_POLICY, "tau": 0.2}),
    "ddpg": (DDPG, "Pendulum-v1", {**OFF_POLICY, "tau": 0.2}),
    "sac": (SAC, "Pendulum-v1", {**OFF_POLICY, "tau": 0.2}),
    "dqn": (DQN, "CartPole-v1", {**OFF_POLICY, "train_freq": 1, "target_update_interval": 3, "tau": 0.2}),
    "a2c": (A2C, "CartPole-v1", {"n_steps": 4}),
    "ppo": (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
}
WANTED = {"sparsity": 0.6, "seed": 1}


def agent(name: str) -> BaseAlgorithm:
    kind, env, options = AGENTS[name]
    return kind("MlpPolicy", env, policy_kwargs={"net_arch": [24, 16]}, seed=0, device="cpu", **options)


class Watch(BaseCallback):
    """Looks at an agent after every step of its optimizers, and before every use of its targets."""

    def __init__(self, training: SparseTraining) -> None:
        super().__init__()
        self.training, self.steps, self.target_uses, self.followed_alone = training, 0, 0, 0

    def _on_training_start(self) -> None:
        # registered after those of the callback, so they run after them
        self.networks = agent_networks(self.model)
        for optimizer in {id(n.optimizer): n.optimizer for n in self.networks}.values():
            optimizer.register_step_post_hook(self._after_step)
        for network in self.networks:
            for part in network.target.values() if network.target else ():
                part.register_forward_pre_hook(lambda *_, network=network: self._on_target(network))

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self.steps += 1
        for network in self.networks:
            if network.optimizer is optimizer:
                for name, links in self.training.wirings[network.name].links.items():
                    weight = network.module.get_submodule(name).weight
                    absent = torch.ones(links.n_in, links.n_out, dtype=torch.bool)
                    absent[links.inputs, links.output_blocks] = False
                    state = [v for v in optimizer.state[weight].values() if v.ndim > 0]
                    for values in (weight, weight.grad, *state):
                        assert not values.reshape(links.n_out, links.n_in)[absent.T].any()

    def _on_target(self, network: object) -> None:
        self.target_uses += 1
        for name, links in self.training.wirings[network.name].links.items():
            target, online = network.target.get_submodule(name).weight, network.module.get_submodule(name).weight
            assert int(target.count_nonzero()) <= links.count
            self.followed_alone += int(((target != 0) & (online == 0)).sum() > 0)

    def _on_step(self) -> bool:
        for network in self.networks:  # as another callback would save it now
            if network.target is not None and not isinstance(self.model, DQN):  # whose targets follow between updates
                self._on_target(network)
        return True


@pytest.mark.parametrize("rule", [SET(eta=0.2, every=5), RigL(eta=0.2, every=5)], ids=["set", "rigl"])
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_stays_as_sparse_as_asked(name: str, rule: Rule) -> None:
    model, training = agent(name), SparseTraining(rule, **WANTED)
    watch = Watch(training)
    model.learn(90, callback=CallbackList([training, watch]))
    updates = model.sparse_training["updates"]
    assert watch.steps >= updates > 10
    for network in agent_networks(model):
        wiring = training.wirings[network.name]
        total = sum(p.numel() for p in network.module.parameters() if p.ndim == 2)
        assert sum(int(p.count_nonzero()) for p in network.module.parameters() if p.ndim == 2) <= round(0.4 * total)
        sparse = sum(links.n_places for links in wiring.links.values())
        assert wiring.statistics()["links"] == round(0.4 * total) - (total - sparse)
        assert wiring.adaptations == updates // 5
        assert wiring.replaced > 0
        for layer, links in wiring.links.items():
            if network.target is not None:
                assert int(network.target.get_submodule(layer).weight.count_nonzero()) <= links.count
    if name in ("td3", "ddpg", "sac", "dqn"):
        assert watch.target_uses > 20
        assert watch.followed_alone > 0, "targets must have had links of their own for this to say anything"


class Images(gym.Env):
    observation_space = spaces.Box(0, 255, (1, 36, 36), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        return self.observation_space.sample(), float(action), False, False, {}


def test_convolutions_and_their_targets() -> None:
    options = {"learning_starts": 4, "batch_size": 4, "buffer_size": 20, "train_freq": 1, "target_update_interval": 1}
    model = DQN("CnnPolicy", Images(), policy_kwargs={"net_arch": [16]}, seed=0, device="cpu", tau=0.2, **options)
    training = SparseTraining(SET(eta=0.2, every=3), sparsity=0.9, seed=0)
    watch = Watch(training)
    model.learn(16, callback=CallbackList([training, watch]))
    assert watch.followed_alone > 0
    features = training.wirings["q.features"]
    assert features.statistics()["sparsity"] == pytest.approx(0.9, abs=1e-4)
    assert features.replaced > 0
    extractors = (model.q_net.features_extractor, model.q_net_target.features_extractor)
    for layer, links in features.links.items():
        for extractor in extractors:
            assert int(extractor.get_submodule(layer.removeprefix("features.")).weight.count_nonzero()) <= links.count


def test_targets_start_as_copies() -> None:
    model, training = agent("td3"), SparseTraining(SET(), **WANTED)
    model.learn(10, callback=training)  # not one update
    for mine, theirs in zip(model.critic.parameters(), model.critic_target.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_an_actor_adapts_at_its_first_update_after_the_time() -> None:
    model, training = agent("td3"), SparseTraining(SET(eta=0.2, every=5), **WANTED)
    seen = {}

    class Adaptations(BaseCallback):
        def _on_rollout_start(self) -> None:
            seen[self.model.sparse_training["updates"]] = {n: w.adaptations for n, w in training.wirings.items()}

        def _on_step(self) -> bool:
            return True

    model.learn(40, callback=CallbackList([training, Adaptations()]))
    assert seen[5] == {"actor": 0, "critic1": 1, "critic2": 1}
    assert seen[6] == {"actor": 1, "critic1": 1, "critic2": 1}
    assert seen[10] == {"actor": 2, "critic1": 2, "critic2": 2}


def places(training: SparseTraining) -> dict[str, dict[str, list[int]]]:
    return {n: {layer: links.places.tolist() for layer, links in w.links.items()} for n, w in training.wirings.items()}


@pytest.mark.parametrize("name", AGENTS)
def test_saving_and_loading_keep_the_wiring(name: str, tmp_path: Path) -> None:
    model, training = agent(name), SparseTraining(SET(eta=0.2, every=5), **WANTED)
    model.learn(90, callback=training)
    model.save(tmp_path / "agent")
    loaded = type(model).load(tmp_path / "agent", env=model.get_env(), device="cpu")
    weights = {n: p.clone() for n, p in loaded.policy.state_dict().items()}
    assert all(torch.equal(p, weights[n]) for n, p in model.policy.state_dict().items())
    again = SparseTraining(SET(eta=0.2, every=5), **WANTED)
    again.init_callback(loaded)
    again.on_training_start({}, {})
    assert places(again) == places(training)
    assert [w.statistics() for w in again.wirings.values()] == [w.statistics() for w in training.wirings.values()]
    assert {n: w.rng.bit_generator.state for n, w in again.wirings.items()} == {
        n: w.rng.bit_generator.state for n, w in training.wirings.items()
    }
    assert all(torch.equal(p, weights[n]) for n, p in loaded.policy.state_dict().items()), "nothing was zeroed"
    again.on_training_end()
    loaded.learn(90, callback=again, reset_num_timesteps=False)
    assert places(again) != places(training)


def test_the_wiring_is_saved_as_plain_text(tmp_path: Path) -> None:
    model = agent("ppo").learn(64, callback=SparseTraining(SET(every=5), **WANTED))
    model.save(tmp_path / "agent.zip")
    with zipfile.ZipFile(tmp_path / "agent.zip") as file:
        record = json.loads(file.read("data"))["sparse_training"]
    assert set(record["networks"]) == {"actor", "value"}
    assert ":serialized:" not in json.dumps(record)


def test_learning_on_goes_on_with_the_same_wiring() -> None:
    """Two runs of 64 are one of 128: the wiring, its counts and its generator go from one to the next."""
    first, second, third = (SparseTraining(SET(eta=0.2, every=5), **WANTED) for _ in range(3))
    once = agent("ppo").learn(128, callback=first)  # an agent seeds all generators when it is made
    twice = agent("ppo").learn(64, callback=second).learn(64, callback=third, reset_num_timesteps=False)
    assert places(first) == places(third) != places(second)
    for mine, theirs in zip(once.policy.parameters(), twice.policy.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_after_a_run_that_broke_off() -> None:
    class Break(BaseCallback):
        def _on_step(self) -> bool:
            if self.n_calls > 40:
                raise KeyboardInterrupt
            return True

    model, training = agent("ppo"), SparseTraining(SET(eta=0.2, every=5), **WANTED)
    with pytest.raises(KeyboardInterrupt):
        model.learn(128, callback=CallbackList([training, Break()]))
    before = places(training)
    again = SparseTraining(SET(eta=0.2, every=5), **WANTED)
    model.learn(64, callback=again)
    assert again.wirings["actor"].updates == 12  # 4 of the first run and 8 more: no hook is there twice
    assert places(again) != before == places(training)


def test_the_agents_seed_decides_the_wiring() -> None:
    found = []
    for _ in range(2):
        training = SparseTraining(SET(), sparsity=0.5)
        agent("ppo").learn(32, callback=training)
        found.append(places(training))
    assert found[0] == found[1]


def test_lambdas_are_for_each_network() -> None:
    training = SparseTraining(SET(), lambdas=np.array([2, 3]), seed=0)
    model = agent("td3").learn(5, callback=training)
    model.learn(5, callback=SparseTraining(SET(), lambdas=[2.0, 3.0]))
    counts = {name: [links.count for links in w.links.values()] for name, w in training.wirings.items()}
    assert counts == {"actor": [54, 120], "critic1": [56, 120], "critic2": [56, 120]}


def test_statistics_are_logged() -> None:
    model, seen = agent("ppo"), {}

    class Log(BaseCallback):
        def _on_rollout_end(self) -> None:
            seen.update(self.logger.name_to_value)

        def _on_step(self) -> bool:
            return True

    training = SparseTraining(SET(eta=0.2, every=4), **WANTED)
    model.learn(96, callback=CallbackList([training, Log()]))
    assert seen["sparse/actor/links"] == training.wirings["actor"].statistics()["links"]
    assert seen["sparse/value/adaptations"] == 2
    assert seen["sparse/value/replaced"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sparsity": 0.5, "lambdas": (1, 2)}, "network 'actor': give one of lambdas, sparsity and links"),
        ({"lambdas": (1, 2, 3)}, "network 'actor': 3 lambdas for 2 sparse layers"),
        ({"sparsity": 0.9}, "network 'critic1': sparsity 0.9 leaves .* the largest sparsity possible"),
        ({"sparsity": 0.5, "block": 3}, "network 'actor': block must be"),
    ],
)
def test_refused_before_anything_changes(arguments: dict[str, object], message: str) -> None:
    model = TD3(
        "MlpPolicy",
        "Pendulum-v1",
        policy_kwargs={"net_arch": {"pi": [24, 16], "qf": [1, 1]}},
        device="cpu",
        **OFF_POLICY,
    )
    before = [p.clone() for p in model.policy.parameters()]
    with pytest.raises(ValueError, match=message):
        model.learn(5, callback=SparseTraining(SET(), **arguments))
    assert all(torch.equal(p, b) for p, b in zip(model.policy.parameters(), before, strict=True))
    assert not hasattr(model, "sparse_training")


def test_another_wish_than_the_agent_was_made_with_is_refused() -> None:
    model = agent("ppo").learn(32, callback=SparseTraining(SET(), sparsity=0.5))
    with pytest.raises(ValueError, match=r"with sparsity 0\.5, block 1: ask for the same, and not sparsity 0\.6"):
        model.learn(32, callback=SparseTraining(SET(), sparsity=0.6))


def test_a_sparse_agent_learns_cartpole() -> None:
    env = make_vec_env("CartPole-v1", n_envs=8, seed=2)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gae_lambda=0.8,
        gamma=0.98,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        seed=2,
        device="cpu",
    )
    training = SparseTraining(SET(eta=0.1, every=100), sparsity=0.5)
    model.learn(60_000, callback=training)  # after half as many, returns depend on the processor's last bits
    assert training.wirings["actor"].adaptations == 47
    weights = [p for name, p in model.policy.named_parameters() if p.ndim == 2]
    assert sum(int(w.count_nonzero()) for w in weights) <= 0.5 * sum(w.numel() for w in weights) + 1
    mean, _ = evaluate_policy(model, env, n_eval_episodes=16)
    assert mean > 300  # a random policy gets 22, the most is 500


SB3_NEEDS = "rewirl.sb3 needs Stable-Baselines3 and PyTorch: pip install 'rewirl[sb3]'"


@pytest.mark.parametrize(
    ("package", "lacks", "sentence"),
    [
        ("rewirl.torch", "torch", "rewirl.torch needs PyTorch: pip install 'rewirl[torch]'"),
        ("rewirl.sb3", "torch", SB3_NEEDS),
        ("rewirl.sb3", "stable_baselines3", SB3_NEEDS),
    ],
)
def test_what_is_not_installed_is_said_with_how_to_install_it(package, lacks, sentence):
    """None in sys.modules makes an import fail as if there were no such package."""
    program = f"import sys; sys.modules[{lacks!r}] = None; import {package}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == f"ModuleNotFoundError: {sentence}"


@pytest.mark.parametrize("rule", [SET, SET()])
def test_half_of_the_weights_by_default(rule: Rule) -> None:
    training = SparseTraining(rule)
    model = agent("ppo").learn(32, callback=training)
    assert training.wirings["actor"].statistics()["sparsity"] == pytest.approx(0.5, abs=0.15)
    model.learn(32, callback=SparseTraining(SET, sparsity=0.5))  # the same wish in other words
