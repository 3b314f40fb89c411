"""The peers themselves, one small class each, for `peers.py` alone; see there for how they are run.

All train agents of one shape on one task, and all but the paper's code dense ones: HalfCheetah-v5 (17 observations,
6 actions), two hidden layers of 256, two critics, τ = 0.005, γ = 0.99. TD3: batch 100, lr 1e-3, actor and targets
every second update. SAC: batch 256, lr 3e-4, temperature fixed at 0.2. Where a library differs, its class says so.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from peers import DELAY, Algorithm, Mode

Array = NDArray[np.float32]
Layer = tuple[Any, Any, Any, Any, Any]
Product = tuple[Any, Any, Any]

TASK = "HalfCheetah-v5"
OBSERVATIONS, ACTIONS, HIDDEN = 17, 6, 256
BATCH: dict[Algorithm, int] = {"td3": 100, "sac": 256}
LEARNING_RATE: dict[Algorithm, float] = {"td3": 1e-3, "sac": 3e-4}
TAU, GAMMA, ALPHA, EXPLORATION = 0.005, 0.99, 0.2, 0.1
REPLAY = 100_000


def build(name: str, algorithm: Algorithm, mode: Mode) -> Any:
    """The named peer, ready for the mode; raises if its library is missing or if it has no such mode."""
    if name == "rltools":
        return RLtools(algorithm, mode)
    if name in ("stable-baselines3", "sbx"):
        return Baselines(name.replace("-", "_"), algorithm)
    if name == "published-ds-td3":
        return PublishedDSTD3(algorithm)
    if mode == "loop" or (name == "dense-matmuls" and mode == "act"):
        raise ValueError(f"{name} has no mode {mode}")
    return {"dense-matmuls": DenseMatmuls, "torch-eager": TorchEager}[name](algorithm)


def transitions() -> tuple[Array, Array, Array, Array]:
    """Observations, actions, rewards and next observations of 10 000 random steps, none of them terminal."""
    env = gymnasium.make(TASK)
    env.action_space.seed(0)
    state, _ = env.reset(seed=0)
    rows = []
    for _ in range(10_000):
        action = env.action_space.sample()
        following, reward, _, truncated, _ = env.step(action)
        rows.append((state, action, [reward], following))
        state = env.reset()[0] if truncated else following
    states, actions, rewards, followings = (np.array(rows_, np.float32) for rows_ in zip(*rows, strict=True))
    return states, actions, rewards, followings


class DenseMatmuls:
    """The floor of any dense agent: the matrix products of an update by torch.mm and nothing else. No biases,
    activations, losses, sampling, Adam or targets, and only the products that some gradient needs."""

    def __init__(self, algorithm: Algorithm) -> None:
        torch, rows = import_module("torch"), BATCH[algorithm]
        torch.set_num_threads(1)

        def network(inputs: int, outputs: int) -> list[Layer]:
            """Per layer x, w, y, dw, dx; the gradient of y has its shape, so y stands for it."""
            sizes = pairwise((inputs, HIDDEN, HIDDEN, outputs))
            shapes = [((rows, i), (o, i), (rows, o), (o, i), (rows, i)) for i, o in sizes]
            return [(r(x), r(w), r(y), r(dw), r(dx)) for r in (torch.randn,) for x, w, y, dw, dx in shapes]

        def forward(layers: list[Layer]) -> list[Product]:
            return [(x, w.t(), y) for x, w, y, _, _ in layers]

        def input_gradients(layers: list[Layer]) -> list[Product]:
            return [(y, w, dx) for _, w, y, _, dx in reversed(layers)]

        def backward(layers: list[Layer]) -> list[Product]:
            weights = [(y.t(), x, dw) for x, _, y, dw, _ in reversed(layers)]
            return weights + input_gradients(layers[1:])

        td3 = algorithm == "td3"
        actor, target_actor = (network(OBSERVATIONS, ACTIONS if td3 else 2 * ACTIONS) for _ in range(2))
        critics, targets = ([network(OBSERVATIONS + ACTIONS, 1) for _ in range(2)] for _ in range(2))
        judges = critics[:1] if td3 else critics  # the critics inside the actor's loss
        first = forward(target_actor if td3 else actor)
        first += [p for layers in targets + critics for p in forward(layers)]
        first += [p for layers in critics for p in backward(layers)]
        second = forward(actor) + backward(actor)
        second += [p for layers in judges for p in forward(layers) + input_gradients(layers)]
        self._mm, self._updates = torch.mm, 0
        self._cycle = [first, first + second] if td3 else [first + second]

    def update(self) -> None:
        mm = self._mm
        for a, b, out in self._cycle[self._updates % len(self._cycle)]:
            mm(a, b, out=out)
        self._updates += 1


class TorchEager:
    """TD3 and SAC as one writes them in PyTorch: modules, autograd, torch.optim.Adam, a replay of tensors."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.torch: Any = import_module("torch")
        self.torch.set_num_threads(1)
        self.td3, self.batch, self.delay = algorithm == "td3", BATCH[algorithm], DELAY[algorithm]
        self.actor = self._mlp(OBSERVATIONS, ACTIONS if self.td3 else 2 * ACTIONS)
        self.critics = self.torch.nn.ModuleList(self._mlp(OBSERVATIONS + ACTIONS, 1) for _ in range(2))
        self.target_actor, self.target_critics = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        adam, lr = self.torch.optim.Adam, LEARNING_RATE[algorithm]
        self.actor_adam = adam(self.actor.parameters(), lr)
        self.critic_adam = adam(self.critics.parameters(), lr)
        rows = transitions()
        self.observations = rows[0]
        self.replay = [self.torch.from_numpy(column) for column in rows]
        self.updates = 0

    def update(self) -> None:
        torch = self.torch
        chosen = torch.randint(len(self.observations), (self.batch,))
        state, action, reward, following = (column[chosen] for column in self.replay)
        with torch.no_grad():
            next_action, bonus = self._smoothed(following, action) if self.td3 else self._sample(following)
            value = torch.minimum(*self._values(self.target_critics, following, next_action))
            target = reward + GAMMA * (value + bonus)
        mse = torch.nn.functional.mse_loss
        loss = sum(mse(value, target) for value in self._values(self.critics, state, action))
        self._descend(self.critic_adam, loss)
        self.updates += 1
        if self.updates % self.delay:
            return
        self.critics.requires_grad_(False)  # the actor needs gradients through the critics, not theirs
        if self.td3:
            value, bonus = self._values(self.critics[:1], state, torch.tanh(self.actor(state)))[0], 0.0
        else:
            action, bonus = self._sample(state)
            value = torch.minimum(*self._values(self.critics, state, action))
        self._descend(self.actor_adam, -(value + bonus).mean())
        self.critics.requires_grad_(True)
        self._polyak(self.critics, self.target_critics)
        if self.td3:
            self._polyak(self.actor, self.target_actor)

    def act(self, observation: Array) -> Array:
        with self.torch.inference_mode():
            output = self.actor(self.torch.from_numpy(observation))
            action: Array = self.torch.tanh(output[:ACTIONS]).numpy()
        return action

    def _mlp(self, inputs: int, outputs: int) -> Any:
        nn, sizes = self.torch.nn, pairwise((inputs, HIDDEN, HIDDEN, outputs))
        return nn.Sequential(*[part for i, o in sizes for part in (nn.Linear(i, o), nn.ReLU())][:-1])

    def _values(self, critics: Any, state: Any, action: Any) -> list[Any]:
        both = self.torch.cat([state, action], 1)
        return [critic(both) for critic in critics]

    def _smoothed(self, following: Any, action: Any) -> tuple[Any, float]:
        noise = (0.2 * self.torch.randn_like(action)).clamp(-0.5, 0.5)
        return (self.torch.tanh(self.target_actor(following)) + noise).clamp(-1, 1), 0.0

    def _sample(self, state: Any) -> tuple[Any, Any]:
        """A squashed Gaussian action and its entropy bonus, -α log π."""
        mean, log_std = self.actor(state).chunk(2, -1)
        normal = self.torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        raw = normal.rsample()
        action = self.torch.tanh(raw)
        log_probability = normal.log_prob(raw) - self.torch.log(1 - action**2 + 1e-6)
        return action, -ALPHA * log_probability.sum(-1, keepdim=True)

    def _descend(self, optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def _polyak(self, online: Any, target: Any) -> None:
        with self.torch.no_grad():
            for new, old in zip(online.parameters(), target.parameters(), strict=True):
                old.lerp_(new, TAU)


class PublishedDSTD3:
    """The paper's own code: masks over dense weights, targets pruned by sorting; here with λ = (7, 64).

    It comes from a clone of GhadaSokar/Dynamic-Sparse-Training-for-Deep-Reinforcement-Learning, whose folder the
    environment variable PUBLISHED_DS_TD3 names. The replay, which it takes from elsewhere, is one of tensors."""

    def __init__(self, algorithm: Algorithm) -> None:
        folder = os.environ.get("PUBLISHED_DS_TD3")
        if algorithm != "td3" or not folder:
            raise ValueError("it has no SAC" if folder else "--published names no clone of its repository")
        sys.path.insert(0, folder)
        self.torch: Any = import_module("torch")
        self.torch.set_num_threads(1)
        self.agent = import_module("DS_TD3").SETSparseTD3(OBSERVATIONS, ACTIONS, 1.0, epsilonHid1=7, epsilonHid2=64)
        states, actions, rewards, followings = transitions()
        self.observations = states
        columns = (states, actions, followings, rewards, np.ones_like(rewards))
        self.replay = [self.torch.from_numpy(column) for column in columns]
        self.env = gymnasium.make(TASK)
        self.state, self.at = self.env.reset(seed=1)[0], 0

    def sample(self, size: int) -> list[Any]:
        chosen = self.torch.randint(len(self.observations), (size,))
        return [column[chosen] for column in self.replay]

    def update(self) -> None:
        self.agent.train(self, BATCH["td3"])

    def act(self, observation: Array) -> Array:
        action: Array = self.agent.select_action(observation)
        return action

    def run(self, steps: int) -> None:
        for _ in range(steps):
            action = (self.act(self.state) + np.random.normal(0, EXPLORATION, ACTIONS)).clip(-1, 1)
            following, reward, _, truncated, _ = self.env.step(action)
            for column, value in zip(self.replay, (self.state, action, following, [reward]), strict=False):
                column[self.at % len(column)] = self.torch.as_tensor(value)
            self.at += 1
            self.state = self.env.reset()[0] if truncated else following
            self.update()


class Baselines:
    """Stable-Baselines3 and SBX, which share an interface: the library's own `train`, `learn`, `predict`.

    SBX differs a little: its TD3 moves the targets at every update and takes the smaller of both critics in
    the actor's loss. JAX compiles its updates, with and without the actor, during the warm-up."""

    def __init__(self, library: str, algorithm: Algorithm) -> None:
        module, torch = import_module(library), import_module("torch")
        torch.set_num_threads(1)
        noise = import_module("stable_baselines3.common.noise").NormalActionNoise
        self.batch = BATCH[algorithm]
        own: dict[str, Any] = {"ent_coef": ALPHA}
        if algorithm == "td3":
            own = {"action_noise": noise(np.zeros(ACTIONS), np.full(ACTIONS, EXPLORATION))}
        self.model = getattr(module, algorithm.upper())(
            "MlpPolicy",
            gymnasium.make(TASK),
            learning_rate=LEARNING_RATE[algorithm],
            buffer_size=REPLAY,
            learning_starts=0,
            batch_size=self.batch,
            tau=TAU,
            gamma=GAMMA,
            train_freq=1,
            gradient_steps=1,
            policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
            device="cpu",
            **own,
        )
        self.model.set_logger(import_module("stable_baselines3.common.logger").Logger(None, []))
        rows = transitions()
        self.observations = rows[0]
        for state, action, reward, following in zip(*rows, strict=True):
            self.model.replay_buffer.add(state, following, action, reward, np.zeros(1), [{}])

    def update(self) -> None:
        self.model.train(gradient_steps=1, batch_size=self.batch)

    def act(self, observation: Array) -> Array:
        action: Array = self.model.predict(observation, deterministic=True)[0]
        return action

    def run(self, steps: int) -> None:
        self.model.learn(steps, reset_num_timesteps=False)


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays recorded observations and rewards, whatever the action: an environment that costs about 1 µs."""

    def __init__(self, env: gymnasium.Env[Any, Any], states: Array, rewards: Array) -> None:
        super().__init__(env)
        self._rows = list(zip(states, rewards[:, 0].tolist(), strict=True))
        self._step = 0

    def reset(self, **_: Any) -> tuple[Array, dict[str, Any]]:
        return self._rows[0][0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self._step += 1
        state, reward = self._rows[self._step % len(self._rows)]
        return state, reward, False, False, {}


class RLtools:
    """RLtools' C++ loop, compiled for these sizes when first used and then cached, with MKL if it is there.

    Its Python package offers only whole steps of the loop. In the mode `update` the environment is therefore
    a recording, and an update's time holds one act, one store and one call into Python too: some 10 µs.
    It evaluates the targets once for each critic, twice in all; its Adam has ε = 1e-7."""

    def __init__(self, algorithm: Algorithm, mode: Mode) -> None:
        rltools = import_module("rltools")
        self.observations, _, rewards, _ = transitions()

        def environment() -> gymnasium.Env[Any, Any]:
            env = gymnasium.make(TASK)
            return env if mode == "loop" else Recorded(env, self.observations, rewards)

        sizes = {"BATCH_SIZE": BATCH[algorithm], "HIDDEN_DIM": HIDDEN, "NUM_LAYERS": 3, "POLYAK": 1 - TAU}
        own = {"ALPHA": ALPHA, "ADAPTIVE_ALPHA": False}
        if algorithm == "td3":
            own = {"EXPLORATION_NOISE": EXPLORATION}
        loop = getattr(rltools, algorithm.upper())(
            environment,
            enable_evaluation=False,
            interface_name="rewirl_peer",
            GAMMA=GAMMA,
            OPTIMIZER_ALPHA=LEARNING_RATE[algorithm],
            STEP_LIMIT=1_000_000_000,
            REPLAY_BUFFER_CAP=REPLAY,
            **{f"{who}_{what}": value for who in ("ACTOR", "CRITIC") for what, value in sizes.items()},
            **own,
        )
        state = loop.State(0)
        self.update: Callable[[], bool] = state.step
        self.act: Callable[[Array], Array] = state.action
        self.run(1000)  # past its random phase, which is one batch long

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.update()
