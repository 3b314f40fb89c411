"""The wiring of a method during training: links per input, degrees, and ages of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewirl.envs.catalogue import action_names, observation_names
from rewirl.experiments.analysis.groups import Group
from rewirl.experiments.analysis.trained_runs import Floats, Ints
from rewirl.experiments.analysis.wiring.history import Movement, movement_of
from rewirl.storage.folder import RunFolder
from rewirl.storage.logs.wiring_log import Bits
from rewirl.untrusted import reason

TOGETHER = {"critic1": "critics", "critic2": "critics"}
"""Networks that are shown together; every other network is shown separately."""
COLUMNS = 80
"""Steps of a heat map, at most."""
BINS = 24
"""Of a distribution of degrees, at most."""
AGES = (0.05, 0.1, 0.25, 0.5)
"""Ages that are followed, as shares of all steps."""


@dataclass(frozen=True, eq=False)
class Degrees:
    """Distribution of links per neuron on one side of a layer, at the first and the last evaluation."""

    side: str
    """Name of the neurons and of the side."""
    edges: Floats
    """(bins + 1,)"""
    first: Floats
    """(bins,) shares of the neurons."""
    last: Floats


@dataclass(frozen=True, eq=False)
class WiringStudy:
    """One network (the two critics count as one) of one method on one task, averaged over seeds."""

    task: str
    label: str
    network: str
    seeds: tuple[int, ...]
    """Of the runs that are in it."""
    of: int
    """Number of all runs."""
    moves: bool
    """Whether the method rewires."""
    features: tuple[str, ...]
    steps: Ints
    """(columns,)"""
    per_feature: Floats
    """(features, columns): links of each input; no features where the first layer is dense."""
    degrees: tuple[Degrees, ...]
    age_steps: Ints
    """(evaluations,)"""
    ages: dict[int, Floats]
    """By x: the share of links that are at least x steps old, (evaluations,)."""

    @property
    def n_text(self) -> str:
        """Number of included runs."""
        return f"n = {len(self.seeds)}" + (f" of {self.of}" if len(self.seeds) < self.of else "")


def studies(group: Group) -> tuple[list[WiringStudy], list[str]]:
    """One for each network, as far as its runs came together; none where no run has a log. A run that is not half as
    far as the furthest is left out: one that has just begun would hide what the others did. Damaged logs are named."""
    found: list[tuple[int, Movement]] = []
    notes = []
    furthest = max(run.last for run in group.runs)
    runs = [run for run in group.runs if 2 * run.last >= furthest]
    until = min(run.last for run in runs)
    for run in runs:
        try:
            movement = movement_of(RunFolder(run.folder), run.config, until)
        except (OSError, ValueError) as error:
            notes.append(f"The wiring of {run.name} cannot be shown: {reason(error)}.")
            continue
        if movement is not None:
            found.append((run.config.seed, movement))
    if not found:
        return [], notes
    steps = sorted(set.intersection(*(set(movement.steps) for _, movement in found)))
    # As the agent orders them; a network whose layers are all dense has no log of its own.
    names = {TOGETHER.get(name, name): None for _, movement in found for name, _ in movement.wiring}
    return [_study(group, network, found, steps) for network in names], notes


def _study(group: Group, network: str, found: Sequence[tuple[int, Movement]], steps: Sequence[int]) -> WiringStudy:
    layers = [list(_layers(movement, network, steps)) for _, movement in found]
    shown = np.unique(np.linspace(0, len(steps) - 1, min(COLUMNS, len(steps))).round().astype(np.int64))
    first = [bits for per_run in layers for number, bits in per_run if number == 0]
    per_feature = np.mean([bits[shown].sum(axis=2) for bits in first], axis=0).T if first else np.zeros((0, len(shown)))
    n_in = len(per_feature)
    return WiringStudy(
        task=group.task,
        label=group.label,
        network=network,
        seeds=tuple(seed for seed, _ in found),
        of=len(group.runs),
        moves=group.method.rule.name != "static",
        features=_names(group.task, n_in, found[0][1], network),
        steps=np.array(steps)[shown],
        per_feature=per_feature,
        degrees=tuple(_degrees([pair for per_run in layers for pair in per_run])),
        age_steps=np.array(steps),
        ages=_ages([bits for per_run in layers for _, bits in per_run], steps),
    )


def _layers(movement: Movement, network: str, steps: Sequence[int]) -> Iterator[tuple[int, Bits]]:
    rows = [movement.steps.index(step) for step in steps]
    for (name, number), bits in movement.wiring.items():
        if TOGETHER.get(name, name) == network:
            yield number, bits[rows]


def _names(task: str, n_in: int, movement: Movement, network: str) -> tuple[str, ...]:
    """A critic sees the action after the observation."""
    if network != "critics" or not n_in:
        return observation_names(task, n_in)
    actor = movement.wiring.get(("actor", 0))
    n_obs = n_in if actor is None else actor.shape[1]
    return (*observation_names(task, n_obs), *action_names(task, n_in - n_obs))


def _degrees(layers: Sequence[tuple[int, Bits]]) -> Iterator[Degrees]:
    for number in sorted({number for number, _ in layers}):
        same = [bits for other, bits in layers if other == number]
        sender = "inputs" if number == 0 else f"hidden layer {number}"
        for side, axis in ((f"links out of {sender}", 1), (f"links into hidden layer {number + 1}", 0)):
            first, last = (np.concatenate([bits[row].sum(axis=axis) for bits in same]) for row in (0, -1))
            low, high = min(first.min(), last.min()), max(first.max(), last.max())
            width = max(1, -(-(high - low + 1) // BINS))
            edges = np.arange(low, high + width + 1, width) - 0.5
            shares = [np.histogram(values, edges)[0] / len(values) for values in (first, last)]
            yield Degrees(side, edges, *shares)


def _ages(layers: Sequence[Bits], steps: Sequence[int]) -> dict[int, Floats]:
    """By the links of all layers and runs together. A link that was dropped and grown again between two evaluations
    looks as if it had stayed."""
    at = np.array(steps, dtype=np.int64)
    gap = int(np.diff(at).min()) if len(at) > 1 else 1
    limits = sorted({max(round(share * int(at[-1]) / gap), 1) * gap for share in AGES})
    older, total = np.zeros((len(limits), len(at))), np.zeros(len(at))
    for bits in layers:
        birth = np.zeros(bits.shape[1:], dtype=np.int64)
        birth[:] = at[0]
        for row, step in enumerate(at):
            if row:
                birth[bits[row] & ~bits[row - 1]] = step
            ages = step - birth[bits[row]]
            total[row] += len(ages)
            older[:, row] += [(ages >= limit).sum() for limit in limits]
    return {limit: older[number] / total for number, limit in enumerate(limits)}
