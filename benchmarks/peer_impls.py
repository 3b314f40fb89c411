"""The peers themselves, one small class each, for `peers.py` alone; see there for how they are run.

All train dense agents of the same shape on the same task: HalfCheetah-v5 (17 observations, 6 actions), two hidden layers
of 256, two critics, τ = 0.005, γ = 0.99; TD3 with batch 100, lr 1e-3, actor and targets every second update; SAC with
batch 256, lr 3e-4, temperature fixed at 0.2. Where a library's own algorithm differs, its class says so.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from peers import DELAY, Algorithm, Mode

Array = NDArray[np.float32]

TASK = "HalfCheetah-v5"
OBSERVATIONS, ACTIONS, HIDDEN = 17, 6, 256
BATCH: dict[Algorithm, int] = {"td3": 100, "sac": 256}
LEARNING_RATE: dict[Algorithm, float] = {"td3": 1e-3, "sac": 3e-4}
TAU, GAMMA, ALPHA = 0.005, 0.99, 0.2
REPLAY = 100_000


def build(name: str, algorithm: Algorithm, mode: Mode) -> Any:
    """The named peer, ready for the mode; raises if its library is missing or it has no such mode."""
    if name == "dense-matmuls":
        if mode != "update":
            raise ValueError("matrix products alone neither act nor loop")
        return DenseMatmuls(algorithm)
    if name == "torch-eager":
        return TorchEager(algorithm)
    if name == "rltools":
        return RLtools(algorithm, mode)
    return Baselines({"stable-baselines3": "stable_baselines3", "sbx": "sbx"}[name], algorithm)


def transitions(count: int = 10_000) -> tuple[Array, Array, Array, Array]:
    """Observations, actions, rewards and next observations of random actions. HalfCheetah never terminates."""
    env = gymnasium.make(TASK)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    rows = []
    for _ in range(count):
        action = env.action_space.sample()
        following, reward, _, truncated, _ = env.step(action)
        rows.append((observation, action, [reward], following))
        observation = env.reset()[0] if truncated else following
    observations, actions, rewards, followings = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    return observations, actions, rewards, followings


class DenseMatmuls:
    """The floor of any dense agent: the matrix products of an update by torch.mm, and nothing else. Outputs are
    preallocated; no biases, activations, losses, sampling, Adam or targets. Products that no gradient needs are left out."""

    def __init__(self, algorithm: Algorithm) -> None:
        torch = import_module("torch")
        torch.set_num_threads(1)
        outputs = {"td3": ACTIONS, "sac": 2 * ACTIONS}[algorithm]
        actor, target_actor = ([self._layers(torch, OBSERVATIONS, outputs, algorithm)] for _ in range(2))
        critics, target_critics = (
            [self._layers(torch, OBSERVATIONS + ACTIONS, 1, algorithm) for _ in range(2)] for _ in range(2)
        )
        judges = critics[:1] if algorithm == "td3" else critics  # the critics inside the actor's loss
        critic_part = [
            *self._forward(target_actor if algorithm == "td3" else actor),
            *self._forward(target_critics),
            *self._forward(critics),
            *self._weight_gradients(critics),
            *self._input_gradients(critics, first=1),
        ]
        actor_part = [
            *self._forward(actor),
            *self._forward(judges),
            *self._input_gradients(judges, first=0),
            *self._weight_gradients(actor),
            *self._input_gradients(actor, first=1),
        ]
        both = critic_part + actor_part
        self._mm, self._updates, self._delay = torch.mm, 0, DELAY[algorithm]
        self._cycle = [both] if self._delay == 1 else [critic_part, both]

    def update(self) -> None:
        mm = self._mm
        for a, b, out in self._cycle[self._updates % self._delay]:
            mm(a, b, out=out)
        self._updates += 1

    @staticmethod
    def _layers(torch: Any, inputs: int, outputs: int, algorithm: Algorithm) -> list[tuple[Any, ...]]:
        """Per layer x, w, y, dw, dx: dy has the shape of y, so y stands for it."""
        rows, widths = BATCH[algorithm], [inputs, HIDDEN, HIDDEN, outputs]
        shapes = [((rows, i), (o, i), (rows, o), (o, i), (rows, i)) for i, o in zip(widths, widths[1:], strict=False)]
        return [tuple(torch.randn(shape) for shape in layer) for layer in shapes]

    @staticmethod
    def _forward(networks: list[list[tuple[Any, ...]]]) -> list[tuple[Any, Any, Any]]:
        return [(x, w.t(), y) for layers in networks for x, w, y, _, _ in layers]

    @staticmethod
    def _weight_gradients(networks: list[list[tuple[Any, ...]]]) -> list[tuple[Any, Any, Any]]:
        return [(y.t(), x, dw) for layers in networks for x, _, y, dw, _ in reversed(layers)]

    @staticmethod
    def _input_gradients(networks: list[list[tuple[Any, ...]]], first: int) -> list[tuple[Any, Any, Any]]:
        return [(y, w, dx) for layers in networks for _, w, y, _, dx in reversed(layers[first:])]


class TorchEager:
    """TD3 and SAC as one writes them in PyTorch: modules, autograd, torch.optim.Adam, a replay of tensors."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.torch: Any = import_module("torch")
        self.torch.set_num_threads(1)
        self.torch.manual_seed(0)
        self.td3, self.batch, self.delay = algorithm == "td3", BATCH[algorithm], DELAY[algorithm]
        self.actor = self._mlp(OBSERVATIONS, ACTIONS if self.td3 else 2 * ACTIONS)
        self.critics = self.torch.nn.ModuleList(self._mlp(OBSERVATIONS + ACTIONS, 1) for _ in range(2))
        self.target_actor, self.target_critics = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        adam, lr = self.torch.optim.Adam, LEARNING_RATE[algorithm]
        self.actor_adam, self.critic_adam = adam(self.actor.parameters(), lr), adam(self.critics.parameters(), lr)
        rows = transitions()
        self.observations = rows[0]
        self.replay = [self.torch.zeros(REPLAY, column.shape[1]) for column in rows]
        self.stored = len(rows[0])
        for column, values in zip(self.replay, rows, strict=True):
            column[: self.stored] = self.torch.from_numpy(values)
        self.updates = 0
        self.env = gymnasium.make(TASK)
        self.observation = self.env.reset(seed=1)[0]

    def update(self) -> None:
        torch = self.torch
        chosen = torch.randint(min(self.stored, REPLAY), (self.batch,))
        state, action, reward, following = (column[chosen] for column in self.replay)
        with torch.no_grad():
            next_action, entropy = self._smoothed(following, action) if self.td3 else self._sample(following)
            target = reward + GAMMA * (torch.minimum(*self._values(self.target_critics, following, next_action)) + entropy)
        mse = torch.nn.functional.mse_loss
        critic_loss = sum(mse(value, target) for value in self._values(self.critics, state, action))
        self._descend(self.critic_adam, critic_loss)
        self.updates += 1
        if self.updates % self.delay:
            return
        self.critics.requires_grad_(False)  # the actor's loss needs gradients through the critics, not of them
        if self.td3:
            actor_loss = -self._values(self.critics[:1], state, torch.tanh(self.actor(state)))[0].mean()
        else:
            new_action, entropy = self._sample(state)
            actor_loss = -(torch.minimum(*self._values(self.critics, state, new_action)) + entropy).mean()
        self._descend(self.actor_adam, actor_loss)
        self.critics.requires_grad_(True)
        self._polyak(self.critics, self.target_critics)
        if self.td3:
            self._polyak(self.actor, self.target_actor)

    def act(self, observation: Array) -> Array:
        with self.torch.inference_mode():
            output = self.actor(self.torch.from_numpy(observation))
            action: Array = self.torch.tanh(output[:ACTIONS]).numpy()
        return action

    def run(self, steps: int) -> None:
        torch = self.torch
        for _ in range(steps):
            state = torch.as_tensor(self.observation, dtype=torch.float32)
            with torch.no_grad():
                if self.td3:
                    action = (torch.tanh(self.actor(state)) + 0.1 * torch.randn(ACTIONS)).clamp(-1, 1)
                else:
                    action = self._sample(state)[0]
            following, reward, _, truncated, _ = self.env.step(action.numpy())
            row = (state, action, torch.tensor([reward]), torch.as_tensor(following, dtype=torch.float32))
            for column, value in zip(self.replay, row, strict=True):
                column[self.stored % REPLAY] = value
            self.stored += 1
            self.observation = self.env.reset()[0] if truncated else following
            self.update()

    def _mlp(self, inputs: int, outputs: int) -> Any:
        nn, widths = self.torch.nn, (inputs, HIDDEN, HIDDEN, outputs)
        layers = [m for i, o in zip(widths, widths[1:], strict=False) for m in (nn.Linear(i, o), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    def _values(self, critics: Any, state: Any, action: Any) -> list[Any]:
        both = self.torch.cat([state, action], 1)
        return [critic(both) for critic in critics]

    def _smoothed(self, following: Any, action: Any) -> tuple[Any, float]:
        noise = (0.2 * self.torch.randn_like(action)).clamp(-0.5, 0.5)
        return (self.torch.tanh(self.target_actor(following)) + noise).clamp(-1, 1), 0.0

    def _sample(self, state: Any) -> tuple[Any, Any]:
        """A squashed Gaussian action and its entropy bonus -α log π."""
        torch = self.torch
        mean, log_std = self.actor(state).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_probability = (normal.log_prob(raw) - torch.log(1 - action**2 + 1e-6)).sum(-1, keepdim=True)
        return action, -ALPHA * log_probability

    def _descend(self, optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def _polyak(self, online: Any, target: Any) -> None:
        with self.torch.no_grad():
            for new, old in zip(online.parameters(), target.parameters(), strict=True):
                old.lerp_(new, TAU)


class Baselines:
    """Stable-Baselines3 and SBX, which share their interface: the library's own `train`, `learn` and `predict`.

    SBX differs a little: its TD3 moves the targets at every update and takes the smaller of both critics in the
    actor's loss. Its updates are compiled by JAX; the warm-up compiles them, with and without the actor."""

    def __init__(self, library: str, algorithm: Algorithm) -> None:
        module = import_module(library)
        torch, noise, logger = (
            import_module(part)
            for part in ("torch", "stable_baselines3.common.noise", "stable_baselines3.common.logger")
        )
        torch.set_num_threads(1)
        self.batch = BATCH[algorithm]
        own: dict[str, Any] = {
            "td3": {"policy_delay": 2, "action_noise": noise.NormalActionNoise(np.zeros(ACTIONS), np.full(ACTIONS, 0.1))},
            "sac": {"ent_coef": ALPHA},
        }[algorithm]
        self.model = getattr(module, algorithm.upper())(
            "MlpPolicy",
            gymnasium.make(TASK),
            learning_rate=LEARNING_RATE[algorithm],
            buffer_size=REPLAY,
            learning_starts=0,
            batch_size=self.batch,
            tau=TAU,
            gamma=GAMMA,
            policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
            seed=0,
            device="cpu",
            **own,
        )
        self.model.set_logger(logger.Logger(None, []))
        self.observations, actions, rewards, followings = transitions()
        for state, action, reward, following in zip(self.observations, actions, rewards, followings, strict=True):
            self.model.replay_buffer.add(state, following, action, reward, np.zeros(1), [{}])

    def update(self) -> None:
        self.model.train(gradient_steps=1, batch_size=self.batch)

    def act(self, observation: Array) -> Array:
        action: Array = self.model.predict(observation, deterministic=True)[0]
        return action

    def run(self, steps: int) -> None:
        self.model.learn(steps, reset_num_timesteps=False)


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays back recorded transitions whatever the action: an environment that costs next to nothing."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        observations, _, rewards, _ = transitions()
        self._start = observations[0]
        self._answers = [(o, float(r[0]), False, False, {}) for o, r in zip(observations, rewards, strict=True)]
        self._step = 0

    def reset(self, **_: Any) -> tuple[Array, dict[str, Any]]:
        return self._start, {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return self._answers[self._step % len(self._answers)]


class RLtools:
    """RLtools' C++ training loop, compiled for these sizes when first used (about a minute, then cached), with MKL if
    its `[mkl]` extra is there.

    Its Python package offers whole steps of the loop only. In the mode `update` the environment is therefore a
    recording: an update's time holds one act on a single observation, one store and the call into Python as well,
    some ten µs in all. It evaluates the target networks once for each critic; Adam's ε is 1e-7."""

    def __init__(self, algorithm: Algorithm, mode: Mode) -> None:
        rltools = import_module("rltools")
        batch, polyak = BATCH[algorithm], 1 - TAU
        own: dict[str, Any] = {"td3": {"EXPLORATION_NOISE": 0.1}, "sac": {"ALPHA": ALPHA, "ADAPTIVE_ALPHA": False}}[algorithm]

        def environment() -> gymnasium.Env[Any, Any]:
            env = gymnasium.make(TASK)
            return env if mode == "loop" else Recorded(env)

        loop = getattr(rltools, algorithm.upper())(
            environment,
            enable_evaluation=False,
            interface_name="rewirl_peer",
            ACTOR_BATCH_SIZE=batch,
            CRITIC_BATCH_SIZE=batch,
            ACTOR_HIDDEN_DIM=HIDDEN,
            CRITIC_HIDDEN_DIM=HIDDEN,
            ACTOR_POLYAK=polyak,
            CRITIC_POLYAK=polyak,
            GAMMA=GAMMA,
            OPTIMIZER_ALPHA=LEARNING_RATE[algorithm],
            STEP_LIMIT=1_000_000_000,
            REPLAY_BUFFER_CAP=REPLAY,
            **own,
        )
        self.observations = transitions(1000)[0]
        state = loop.State(0)
        self.update: Callable[[], bool] = state.step
        self.act: Callable[[Array], Array] = state.action
        self.run(1000)  # past its random phase of one batch

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.update()
