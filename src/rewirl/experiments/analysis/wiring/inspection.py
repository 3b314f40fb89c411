"""Inspection of an agent: its networks, features, dead neurons, and how its wiring changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewirl.agents.methods import method
from rewirl.envs.catalogue import action_names
from rewirl.envs.flattened import policy_names
from rewirl.errors import Failed, Refused
from rewirl.experiments.analysis.wiring.history import Movement, movement_of
from rewirl.nn import Network
from rewirl.policies.policy import Policy, PolicyLayer
from rewirl.storage import checkpoint
from rewirl.storage.checkpoint import UNFIT
from rewirl.storage.folder import RunFolder, RunInfo, inspect_run
from rewirl.storage.logs.tables import parse, whole_lines
from rewirl.training.config import RunConfig
from rewirl.training.evaluation.episodes import Evaluation
from rewirl.training.evaluation.rollout import watch
from rewirl.training.measurements import DiagnosticsRow
from rewirl.untrusted import read_bytes, reason

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Dead:
    """Hidden neurons of a layer that are dead by their links."""

    without_input: int
    """Without incoming links: their output is constant."""
    without_output: int
    """Without outgoing links: their output has no effect."""
    either: int


@dataclass(frozen=True, eq=False)
class Wired:
    """A network and its links."""

    name: str
    step: int | None
    """Step of the run; None if unknown."""
    layers: Sequence[PolicyLayer]

    @property
    def links(self) -> int:
        """Of all layers."""
        return sum(layer.links for layer in self.layers)

    @property
    def dense_links(self) -> int:
        """That a dense network of these widths has."""
        return sum(layer.n_in * layer.n_out for layer in self.layers)

    def dead(self) -> list[Dead]:
        """Of each hidden layer."""
        out = []
        for before, after in pairwise(self.layers):
            deaf, mute = np.diff(before.indptr) == 0, np.bincount(after.columns, minlength=after.n_in) == 0
            out.append(Dead(int(deaf.sum()), int(mute.sum()), int((deaf | mute).sum())))
        return out

    def input_links(self) -> Counts:
        """Number of links of each input."""
        first = self.layers[0]
        return np.bincount(first.columns, minlength=first.n_in)

    def input_weight(self) -> Shares:
        """Sum of the magnitudes of each input's weights."""
        first = self.layers[0]
        magnitudes = np.abs(first.weights).astype(np.float64)
        weight: Shares = np.bincount(first.columns, weights=magnitudes, minlength=first.n_in).astype(np.float64)
        return weight


@dataclass(frozen=True)
class Feature:
    """An input with its links and weights in the networks."""

    name: str
    actor_links: int | None
    """None for an action, which the actor does not see."""
    actor_weight: float
    """Sum of magnitudes, as a share of the actor's whole first layer."""
    critic_links: float | None
    """Mean of the critics; None if unknown."""
    critic_weight: float
    links_at_start: int | None
    """Initial links in the actor (for an action: in the first critic); None if unknown."""


@dataclass(frozen=True, eq=False)
class Activity:
    """Activity of the actor's hidden neurons in some episodes."""

    result: Evaluation
    active: Sequence[Shares]
    """For each hidden layer: the share of all steps in which each neuron was above 0."""

    def never(self) -> list[int]:
        """Number of neurons of each hidden layer that were never active."""
        return [int((shares == 0).sum()) for shares in self.active]


@dataclass(frozen=True, eq=False)
class Inspection:
    """All that is known about an agent."""

    policy: Policy
    info: RunInfo | None
    """Of the run; None for a policy file alone."""
    networks: Sequence[Wired]
    """The actor, then the critics if there is a checkpoint."""
    movement: Movement | None
    activity: Activity | None
    notes: Sequence[str]
    """Reasons why something is unknown."""
    diagnostics: Sequence[DiagnosticsRow] = ()
    """Of each layer at the last evaluation up to the policy's step; none for runs of older versions."""

    @property
    def actor(self) -> Wired:
        return self.networks[0]

    @property
    def critics(self) -> Sequence[Wired]:
        """Those that see the observation and then the action."""
        n_in = self.policy.n_obs + self.policy.n_act
        return [network for network in self.networks[1:] if network.layers[0].n_in == n_in]

    def features(self, most: int | None = None) -> list[Feature]:
        """The inputs, those first whose links carry most weight: observations by the actor's, then actions by the
        critics'. `most` is of the observations alone: all actions, which are few, follow them."""
        policy, n_obs = self.policy, self.policy.n_obs
        names = policy_names(policy)
        actor = self.actor.input_links(), _share(self.actor.input_weight())
        # The inputs of a critic are the observation and then the action.
        width = n_obs + (policy.n_act if self.critics else 0)
        critic_links, critic_weight = np.zeros(width), np.zeros(width)
        for critic in self.critics:
            critic_links += critic.input_links() / len(self.critics)
            critic_weight += _share(critic.input_weight()) / len(self.critics)
        known, start = bool(self.critics), self._links_at_start()
        observations = [
            Feature(
                name=name,
                actor_links=int(actor[0][i]),
                actor_weight=float(actor[1][i]),
                critic_links=float(critic_links[i]) if known else None,
                critic_weight=float(critic_weight[i]),
                links_at_start=None if start is None else int(start[i]),
            )
            for i, name in enumerate(names)
        ]
        actions = [
            Feature(
                name=name,
                actor_links=None,
                actor_weight=0.0,
                critic_links=float(critic_links[n_obs + i]),
                critic_weight=float(critic_weight[n_obs + i]),
                links_at_start=None if start is None else int(start[n_obs + i]),
            )
            for i, name in enumerate(action_names(policy.task, policy.n_act) if known else ())
        ]
        return [
            *sorted(observations, key=lambda feature: -feature.actor_weight)[:most],
            *sorted(actions, key=lambda feature: -feature.critic_weight),
        ]

    def _links_at_start(self) -> Counts | None:
        """Of every observation in the actor, then of every action in the first critic."""
        if self.movement is None:
            return None
        n_obs, layers = self.policy.n_obs, self.movement.wiring
        acting, critic = (self.actor.name, 0), ("critic1", 0)
        if acting not in layers or (self.critics and critic not in layers):
            return None
        links = self.movement.per_input(acting)[0]
        return np.concatenate([links, self.movement.per_input(critic)[0][n_obs:]]) if self.critics else links


def look(file: Path, *, episodes: int = 3, seed: int = 0) -> Inspection:
    """Inspects the policy in a file, and its run if the file is in a run folder.

    Nothing is written. `episodes` are those in which neurons are watched, 0 for none.
    """
    policy = Policy.load(file)
    place = RunFolder(file.parent)
    step = _step(policy)
    networks = [Wired("q" if policy.is_discrete else "actor", step, policy.layers)]
    notes: list[str] = []
    info = movement = None
    diagnostics: list[DiagnosticsRow] = []
    if file in (place.policy, place.best_policy) and place.config.is_file():
        info = inspect_run(place.path)
    if info and not info.config:
        notes.append(f"the rest of the run is unknown: {place.config} cannot be read")
    if info and info.config:
        acting = method(info.config.method).agent.acting_name
        networks = [Wired(acting, step, policy.layers)]
        others = info.config.empty_agent(policy.n_obs, policy.n_act).networks.keys() - {acting}
        if others and file == place.policy:
            networks += _critics(place, info.config, notes)
        elif others:
            notes.append("the critics are left out: those in the checkpoint belong to the latest policy")
        movement = _movement(place, info.config, step, notes)
        diagnostics = _diagnostics(place, info.config.steps if step is None else step, notes)
    activity = _activity(policy, episodes, seed, notes)
    return Inspection(policy, info, networks, movement, activity, notes, diagnostics)


def _step(policy: Policy) -> int | None:
    text = policy.metadata.get("step", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _critics(place: RunFolder, config: RunConfig, notes: list[str]) -> list[Wired]:
    """Critics of the newest intact checkpoint."""
    for path in checkpoint.found(place.checkpoints):
        try:
            state = checkpoint.load(path, checkpoint.read_run(path))
            n_obs, n_act = state.whole("n_obs"), state.whole("n_act")
            agent = config.empty_agent(n_obs, n_act)
            agent.load_state(state.part("agent."))
            step = state.whole("step")
        except (Refused, OSError, *UNFIT) as error:
            notes.append(f"the checkpoint {path.name} cannot be used ({error})")
            continue
        return [Wired(name, step, _layers(net)) for name, net in agent.networks.items() if name != agent.acting_name]
    notes.append("the critics are unknown: there is no intact checkpoint yet")
    return []


def _layers(network: Network) -> list[PolicyLayer]:
    return [PolicyLayer.from_network(network, layer) for layer in range(network.layers)]


def _movement(place: RunFolder, config: RunConfig, step: int | None, notes: list[str]) -> Movement | None:
    if not config.wiring().rule.sparse:
        return None
    try:
        found = movement_of(place, config, config.steps if step is None else step)
    except (ValueError, OSError) as error:
        notes.append(f"the history of the wiring is unknown: {reason(error)}")
        return None
    if found is None:
        notes.append("the history of the wiring is unknown: no evaluation was logged in wiring.bin")
    return found


def _diagnostics(place: RunFolder, step: int, notes: list[str]) -> list[DiagnosticsRow]:
    if not place.diagnostics.exists():
        return []
    try:
        rows = parse(DiagnosticsRow, whole_lines(read_bytes(place.diagnostics)))
    except (OSError, ValueError) as error:
        notes.append(f"the diagnostics are not known: {place.diagnostics.name} cannot be read ({reason(error)})")
        return []
    last = max((row.step for row in rows if row.step <= step), default=None)
    return [row for row in rows if row.step == last]


def _activity(policy: Policy, episodes: int, seed: int, notes: list[str]) -> Activity | None:
    if episodes == 0:
        return None
    if not policy.task:
        notes.append("the activity of neurons is unknown: the policy file does not name its task")
        return None
    if policy.around:
        notes.append(f"the episodes were run without the wrappers {policy.around}, which only Python knows")
    try:
        x, result = watch(policy, policy.task, episodes=episodes, seed=seed)
    except (Refused, Failed) as error:
        notes.append(f"the activity of neurons is unknown: {error}")
        return None
    active, x = [], policy.normalised(x)
    for layer in policy.layers[:-1]:
        x = np.maximum(layer(x), 0)
        active.append(np.mean(x > 0, axis=0))
    return Activity(result, active)


def _share(values: Shares) -> Shares:
    total = values.sum()
    return values / total if total else values
