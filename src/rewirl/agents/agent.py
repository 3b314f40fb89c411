"""The interface of an agent, as a run sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.actions import Actions
from rewirl.agents.costs import Costs
from rewirl.agents.normaliser import Normaliser
from rewirl.agents.options import Options, WiringOptions
from rewirl.agents.transitions import Transitions
from rewirl.nn import Network, Target
from rewirl.policies.policy import Policy, PolicyLayer

Floats = NDArray[np.float32]
State = dict[str, NDArray[np.generic]]


class Diverged(RuntimeError):
    """A loss or a weight is not finite any more."""


class Agent(ABC):
    """Networks that act and learn. `WiredAgent` implements most of this interface for any networks; `ActorCritic` is
    the base of agents with an actor and two critics."""

    algorithm: ClassVar[str]
    """Its short name, as in the names of methods: td3."""
    title: ClassVar[str] = ""
    """Its name in texts, and that of its class for Python users; `algorithm` in capitals unless given."""
    policy_kind: ClassVar[str]
    """How its policy's outputs are read (`policies.file_header.ALGORITHMS`): deterministic as TD3's, Gaussian as SAC's
    or one value for each action as DQN's."""
    actions_class: ClassVar[type[Actions]]
    """The actions that it learns to choose: `ActionBox` or `Choices`."""
    options_class: ClassVar[type[Options]]
    """Its hyper-parameters: each field becomes a flag and a line of config files."""

    acting_name: ClassVar[str] = "actor"
    """The network that chooses actions, by its name in `networks`: it is evaluated, and saved as the policy."""
    critic_names: ClassVar[tuple[str, ...]] = ()
    """Networks that give Q(s, a) for [s, a], by name; the others see observations."""

    networks: dict[str, Network]
    """All networks that learn, by name."""
    targets: dict[str, Target]
    """Their targets, by the name of the network; empty if there are none."""
    updates: int
    """Number of updates so far."""

    @abstractmethod
    def __init__(
        self, n_obs: int, actions: Actions, options: Options, wiring: WiringOptions, rng: np.random.Generator
    ) -> None:
        self.n_obs, self.n_act, self.actions = n_obs, actions.size, actions
        self.options, self.wiring, self.rng = options, wiring, rng
        self.networks, self.targets, self.updates = {}, {}, 0
        self.normaliser = Normaliser(options.normalize, n_obs, options.gamma)
        """Makes of observations and rewards what `act`, `explore` and `update` are given. Part of the state."""

    @classmethod
    @abstractmethod
    def costs(cls, n_obs: int, n_act: int, options: Options, wiring: WiringOptions) -> Costs:
        """Costs of an agent with these options."""

    @property
    def acting(self) -> Network:
        """The network that chooses actions."""
        return self.networks[self.acting_name]

    @abstractmethod
    def act(self, obs: Floats) -> Floats:
        """The deterministic action, in units of the policy, for an observation as `normaliser.scaling` gives it."""

    @abstractmethod
    def explore(self, obs: Floats) -> Floats:
        """An action with exploration, in units of the policy."""

    @abstractmethod
    def update(self, batch: Transitions) -> None:
        """One update from a batch."""

    @abstractmethod
    def statistics(self) -> dict[str, float]:
        """Statistics of the updates since the last call, for the row of an evaluation
        (`training.measurements.STATISTICS`)."""

    @abstractmethod
    def state(self) -> State:
        """Everything that the next update depends on, except the generator, as plain arrays."""

    @abstractmethod
    def load_state(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Restores what `state` returned."""

    def policy(self, task: str = "") -> Policy:
        """The acting network as a policy that can be saved and deployed."""
        layers = [PolicyLayer.from_network(self.acting, layer) for layer in range(self.acting.layers)]
        return Policy(
            layers=layers,
            **self.actions.bounds(),
            obs_mean=self.normaliser.scaling.mean,
            obs_std=self.normaliser.scaling.std,
            algorithm=self.policy_kind,
            task=task,
        )
