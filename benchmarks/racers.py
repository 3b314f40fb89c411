"""The contenders of `race.py`: whole training runs of several libraries with the same hyper-parameters, one a process.

TD3 with the settings of the paper: two hidden layers of 256, batch 100, learning rate 1e-3, γ = 0.99, τ = 0.005, actor
and targets at every second update, 25 000 random steps, replay of a million transitions. Where a library differs, its
class says so.

    python benchmarks/racers.py stable-baselines3 HalfCheetah-v5 --seed 1 --steps 300000 --core 1 --out sb3.csv
"""

from __future__ import annotations

import argparse
import copy
import csv
import os
import sys
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from peers import ONE_THREAD

Array = NDArray[np.float32]

EVAL_EVERY, EVAL_EPISODES, RANDOM_STEPS, REPLAY = 5_000, 5, 25_000, 1_000_000
OURS: dict[str, dict[str, Any]] = {
    "rewirl td3": {"method": "td3"},
    "rewirl ds-td3": {"method": "ds-td3"},
    "rewirl lean-td3": {"method": "lean-td3"},
}
PEERS = ("stable-baselines3", "sbx", "torch", "published-ds-td3")
COLUMNS = ("step", "seconds", "return_mean")


class Racer(ABC):
    """An agent that trains on a task."""

    @abstractmethod
    def advance(self, steps: int) -> None:
        """Trains for so many more steps of the environment."""

    @abstractmethod
    def act(self, observation: Array) -> Array:
        """The action that it holds to be best, in units of the environment."""


class Rewirl(Racer):
    """This library, as `rewirl train` runs it, in memory."""

    def __init__(self, task: str, seed: int, steps: int, options: dict[str, Any]) -> None:
        from rewirl.agents import ActionBox
        from rewirl.storage import start
        from rewirl.training import RunConfig

        options = {**options, "eval_every": 0, "random_steps": RANDOM_STEPS, "replay_size": min(REPLAY, steps)}
        box = gymnasium.make(task).action_space
        assert isinstance(box, gymnasium.spaces.Box)
        self._actions = ActionBox(box.low, box.high)
        self._run = start(RunConfig.resolve(task=task, seed=seed, steps=steps, **options))

    def advance(self, steps: int) -> None:
        self._run.train(self._run.step + steps)

    def act(self, observation: Array) -> Array:
        return self._actions.to_env(self._run.agent.act(observation))


class Baselines(Racer):
    """Stable-Baselines3 and SBX, without weight decay. SBX moves its targets at every update and takes the smaller
    critic in the actor's loss."""

    def __init__(self, library: str, task: str, seed: int, steps: int) -> None:
        module, torch = import_module(library), import_module("torch")
        torch.set_num_threads(1)
        noise = import_module("stable_baselines3.common.noise").NormalActionNoise
        env = gymnasium.make(task)
        size = env.action_space.sample().shape
        self._model = module.TD3(
            "MlpPolicy",
            env,
            learning_rate=1e-3,
            buffer_size=min(REPLAY, steps),
            learning_starts=RANDOM_STEPS,
            batch_size=100,
            train_freq=1,
            gradient_steps=1,
            action_noise=noise(np.zeros(size), np.full(size, 0.1)),
            policy_kwargs={"net_arch": [256, 256]},
            seed=seed,
            device="cpu",
        )
        self._model.set_logger(import_module("stable_baselines3.common.logger").Logger(None, []))
        self._begun = False

    def advance(self, steps: int) -> None:
        self._model.learn(steps, reset_num_timesteps=not self._begun)
        self._begun = True

    def act(self, observation: Array) -> Array:
        action: Array = self._model.predict(observation, deterministic=True)[0]
        return action


class Looped(Racer):
    """What acts, stores and learns step by step around an agent that has only an update."""

    def __init__(self, task: str, seed: int, steps: int) -> None:
        self.torch: Any = import_module("torch")
        self.torch.set_num_threads(1)
        self.torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.env = gymnasium.make(task)
        self.env.action_space.seed(seed)
        self.n_obs, self.n_act = self.env.observation_space.shape[0], self.env.action_space.shape[0]  # type: ignore[index]
        self.limit = float(self.env.action_space.high[0])  # type: ignore[attr-defined]
        sizes = (self.n_obs, self.n_act, self.n_obs, 1, 1)
        self._columns = [self.torch.zeros(min(REPLAY, steps), size) for size in sizes]
        """Observations, actions, next observations, rewards, and 1 where something follows."""
        self._obs, self._step = self.env.reset(seed=seed)[0], 0

    @abstractmethod
    def update(self) -> None:
        """Learns from `sample`."""

    def sample(self, size: int) -> list[Any]:
        """Transitions drawn uniformly."""
        chosen = self.torch.randint(min(self._step, len(self._columns[0])), (size,))
        return [column[chosen] for column in self._columns]

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            if self._step < RANDOM_STEPS:
                action = self.env.action_space.sample()
            else:
                noise = self.rng.normal(0, 0.1 * self.limit, self.n_act)
                action = (self.act(self._obs) + noise).clip(-self.limit, self.limit)
            following, reward, terminated, truncated, _ = self.env.step(action)
            values = (self._obs, action, following, float(reward), float(not terminated))
            for column, value in zip(self._columns, values, strict=True):
                column[self._step % len(column)] = self.torch.as_tensor(value)
            self._step += 1
            self._obs = self.env.reset()[0] if terminated or truncated else following
            if self._step > RANDOM_STEPS:
                self.update()


class SingleFile(Looped):
    """TD3 as one writes it in a single file of PyTorch: modules, autograd, torch.optim.Adam."""

    def __init__(self, task: str, seed: int, steps: int) -> None:
        super().__init__(task, seed, steps)
        nn, torch = self.torch.nn, self.torch

        def mlp(inputs: int, outputs: int) -> Any:
            return nn.Sequential(
                nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, outputs)
            )

        self.actor = mlp(self.n_obs, self.n_act)
        self.critics = nn.ModuleList(mlp(self.n_obs + self.n_act, 1) for _ in range(2))
        self.targets = copy.deepcopy(nn.ModuleList([self.actor, *self.critics]))
        self._actor_adam = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self._critic_adam = torch.optim.Adam(self.critics.parameters(), lr=1e-3)
        self._updates = 0

    def act(self, observation: Array) -> Array:
        with self.torch.inference_mode():
            out = self.limit * self.torch.tanh(self.actor(self.torch.as_tensor(observation, dtype=self.torch.float32)))
        action: Array = out.numpy()
        return action

    def update(self) -> None:
        torch, mse = self.torch, self.torch.nn.functional.mse_loss
        obs, action, following, reward, goes_on = self.sample(100)
        action = action / self.limit
        actor_target, *critic_targets = self.targets
        with torch.no_grad():
            noise = (0.2 * torch.randn_like(action)).clamp(-0.5, 0.5)
            ahead = torch.cat([following, (torch.tanh(actor_target(following)) + noise).clamp(-1, 1)], 1)
            y = reward + 0.99 * goes_on * torch.minimum(*(target(ahead) for target in critic_targets))
        here = torch.cat([obs, action], 1)
        self._descend(self._critic_adam, sum(mse(critic(here), y) for critic in self.critics))
        self._updates += 1
        if self._updates % 2:
            return
        self._descend(self._actor_adam, -self.critics[0](torch.cat([obs, torch.tanh(self.actor(obs))], 1)).mean())
        with torch.no_grad():
            online = [*self.actor.parameters(), *self.critics.parameters()]
            for new, old in zip(online, self.targets.parameters(), strict=True):
                old.lerp_(new, 0.005)

    def _descend(self, optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Published(Looped):
    """The paper's own DS-TD3, from the clone of its repository that PUBLISHED_DS_TD3 names; λ = (7, 64)."""

    def __init__(self, task: str, seed: int, steps: int) -> None:
        super().__init__(task, seed, steps)
        folder = os.environ.get("PUBLISHED_DS_TD3")
        if not folder:
            raise ValueError("--published names no clone of its repository")
        sys.path.insert(0, folder)
        made = import_module("DS_TD3").SETSparseTD3
        self._agent = made(self.n_obs, self.n_act, self.limit, epsilonHid1=7, epsilonHid2=64)

    def act(self, observation: Array) -> Array:
        action: Array = self._agent.select_action(np.asarray(observation))
        return action

    def update(self) -> None:
        self._agent.train(self, 100)


def racer(name: str, task: str, seed: int, steps: int) -> Racer:
    """The contender of that name."""
    if name in OURS:
        return Rewirl(task, seed, steps, OURS[name])
    if name in ("stable-baselines3", "sbx"):
        return Baselines(name.replace("-", "_"), task, seed, steps)
    return {"torch": SingleFile, "published-ds-td3": Published}[name](task, seed, steps)


def mean_return(contender: Racer, env: gymnasium.Env[Any, Any]) -> float:
    """Mean return of some episodes without exploration."""
    total = 0.0
    for _ in range(EVAL_EPISODES):
        obs, ended = env.reset()[0], False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(contender.act(np.asarray(obs, np.float32)))
            total += float(reward)
            ended = terminated or truncated
    return total / EVAL_EPISODES


def run(contender: Racer, task: str, seed: int, steps: int, out: Path) -> None:
    """Trains and evaluates in turn. The clock stands still during evaluations."""
    env = gymnasium.make(task)
    env.reset(seed=10_000 + seed)
    seconds = 0.0
    with out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for step in range(EVAL_EVERY, steps + 1, EVAL_EVERY):
            begin = perf_counter()
            contender.advance(EVAL_EVERY)
            seconds += perf_counter() - begin
            table.writerow((step, f"{seconds:.3f}", f"{mean_return(contender, env):.2f}"))
            file.flush()


def main() -> None:
    """One contender, from its first step to its last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("racer", choices=[*OURS, *PEERS])
    parser.add_argument("task")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--core", type=int, default=1, help="the one core to run on")
    parser.add_argument("--out", type=Path, required=True, help="CSV file for its evaluations")
    args = parser.parse_args()
    os.environ.update(ONE_THREAD)  # before anything heavy is imported: most libraries read these only once
    os.sched_setaffinity(0, {args.core})
    try:
        contender = racer(args.racer, args.task, args.seed, args.steps)
    except (ImportError, ValueError) as error:
        sys.exit(f"{args.racer} is absent: {error}")
    run(contender, args.task, args.seed, args.steps, args.out)


if __name__ == "__main__":
    main()
