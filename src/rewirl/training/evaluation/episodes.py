"""Evaluation: returns of some episodes without noise, in a separate environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rewirl.agents import Actions, Agent, Choices
from rewirl.envs.creation import EnvLike, Source, close
from rewirl.envs.environment import Environment, Floats, Misbehaved
from rewirl.errors import Failed, Refused
from rewirl.nn import BatchNorm, Network
from rewirl.policies.policy import Policy, PolicyLayer
from rewirl.policies.scaling import Scaling
from rewirl.training.evaluation.critic_bias import Critic, Visit, Visits, rebuilt


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of the episodes.

    >>> Evaluation((1.0, 3.0), (10, 20)).mean
    2.0
    """

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    q_bias: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Critic bias by the critic's name, where critics were given."""

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        return float(np.std(self.returns))

    @property
    def min(self) -> float:
        return min(self.returns)

    @property
    def max(self) -> float:
        return max(self.returns)

    @property
    def steps(self) -> int:
        """Total steps of all episodes."""
        return sum(self.lengths)


def evaluate(
    act: Callable[[Floats], Floats], env: Environment, episodes: int, seed: int, visits: Visits | None = None
) -> Evaluation:
    """Depends only on the seed, not on earlier evaluations. `visits` receives the episodes."""
    returns, lengths = [], []
    step = env.step
    for episode in range(episodes):
        obs = env.reset(seed if episode == 0 else None)
        total, length, ended = 0.0, 0, False
        taken: list[Visit] = []
        with np.errstate(over="ignore", invalid="ignore"):
            while not ended:
                action = act(obs)
                following, reward, terminated, truncated = step(action)
                if visits:
                    taken.append(Visit(obs, action, reward))
                obs = following
                total += reward
                length += 1
                ended = terminated or truncated
        if visits:
            visits.add_episode(taken, None if terminated else (obs, act(obs)))
        returns.append(total)
        lengths.append(length)
    return Evaluation(tuple(returns), tuple(lengths))


def check_fits(policy: Policy, env: Environment) -> None:
    """Refuses a policy for other observations or actions."""
    discrete = isinstance(env.actions, Choices)
    if (env.n_obs, env.actions.size) != (policy.n_obs, policy.n_act) or discrete != policy.is_discrete:
        theirs = f"{policy.n_act} {'discrete' if policy.is_discrete else 'continuous'} actions"
        raise Refused(
            f"the policy is for {policy.n_obs} observations and {theirs}, {env.task} has {env.n_obs} and "
            f"{env.actions.phrase}: it was trained for {policy.task or 'another task'}"
        )


def evaluate_policy(policy: Policy, task: EnvLike, *, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Evaluates a policy, e.g. one loaded from a file."""
    if episodes < 1:
        raise Refused(f"an evaluation needs at least 1 episode, not {episodes}")
    name = task if isinstance(task, str) else policy.task or "the environment"
    made = Source(name, task).make()
    try:
        env = Environment(made, name, scaled=True)
        check_fits(policy, env)
        return evaluate(policy, env, episodes, seed)
    except Misbehaved as error:
        raise Failed(f"{error} during an evaluation, seed {seed}") from error
    finally:
        if made is not task:
            close(made)


@dataclass(frozen=True)
class Snapshot:
    """A copy of the acting network at some step, to be evaluated in this or another process while the agent learns."""

    step: int
    kind: str
    """How its outputs are read: the agent's `policy_kind`."""
    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    state: Mapping[str, NDArray[np.generic]]
    critics: Mapping[str, Critic] = field(default_factory=dict)
    """Critics of the same step, by name, for measuring their bias."""
    gamma: float = 0.0
    """Discount of the critics."""
    scaling: Scaling = field(default_factory=Scaling)
    """Of observations and rewards, at the same step."""
    batch_norm: BatchNorm | None = None
    """Of the acting network."""

    @classmethod
    def of(cls, agent: Agent, step: int) -> Snapshot:
        return cls.with_state(agent, step, agent.acting.state(), agent.normaliser.scaling)

    def with_critics(self, agent: Agent, critics: Mapping[str, Critic]) -> Snapshot:
        """The same snapshot with these critics of the agent."""
        return replace(self, critics=critics, gamma=agent.options.gamma)

    @classmethod
    def with_state(
        cls, agent: Agent, step: int, state: Mapping[str, NDArray[np.generic]], scaling: Scaling
    ) -> Snapshot:
        acting = agent.acting
        blocks = tuple(acting.links(layer).block for layer in range(acting.layers))
        return cls(step, agent.policy_kind, acting.sizes, blocks, state, scaling=scaling, batch_norm=acting.batch_norm)

    def network(self) -> Network:
        """A network with this state; ValueError if the state does not fit."""
        return rebuilt(self.sizes, self.blocks, self.state, batch_norm=self.batch_norm)

    def acting(self, actions: Actions) -> Callable[[Floats], Floats]:
        """The deterministic action for an observation, in units of the policy: TD3's output, SAC's mean, DQN's best."""
        outputs, n_act, seen = self.network().act, actions.size, self.scaling.observation
        if isinstance(actions, Choices):
            return lambda obs: actions.one_hot(outputs(seen(obs)).argmax())
        return lambda obs: np.tanh(outputs(seen(obs))[:n_act])

    def policy(self, actions: Actions, task: str, metadata: Mapping[str, str]) -> Policy:
        """The snapshot as arrays and texts, for a file."""
        network = self.network()
        layers = [PolicyLayer.from_network(network, layer) for layer in range(network.layers)]
        return Policy(
            layers=layers,
            **actions.bounds(),
            obs_mean=self.scaling.mean,
            obs_std=self.scaling.std,
            algorithm=self.kind,
            task=task,
            metadata=dict(metadata),
        )


def evaluation_seed(seed: int, step: int) -> int:
    """Seed of the evaluation at a step: each evaluation has different episodes."""
    return int(np.random.SeedSequence(seed, spawn_key=(3, step)).generate_state(1)[0])
