"""Notes of a report: missing seeds, short or differing runs. One sentence for each fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewirl.experiments.analysis.groups import Group
from rewirl.experiments.analysis.number_format import spaced, steps_text
from rewirl.experiments.analysis.smoothing import LAST
from rewirl.experiments.analysis.trained_runs import TrainedRun, counted, differences

Groups = Mapping[str, Sequence[Group]]
"""All runs, by task."""


def about_machines(runs: Sequence[TrainedRun]) -> list[str]:
    """A note if runs were timed on different machines."""
    found = differences(counted(runs, "machine"))
    return [f"Wall-clock times of different machines are mixed: {found}."] if found else []


def about_runs(groups: Groups) -> list[str]:
    """Notes on missing seeds, unfinished runs, and runs with other evaluations."""
    lacking: dict[str, list[str]] = {}
    partial: dict[str, list[str]] = {}
    differently: dict[str, list[str]] = {}
    for task, here in groups.items():
        seeds = {seed for group in here for seed in group.seeds}
        for group in here:
            if missing := seeds - set(group.seeds):
                n = f"n = {len(group.runs)} of {len(seeds)}"
                lacking.setdefault(_seeds(missing), []).append(f"{group.label} on {task} ({n})")
            for place, runs in _places(group).items():
                partial.setdefault(place, []).append(f"{name_of(group, runs)} on {task}")
        runs = [run for group in here for run in group.runs]
        for name, what in (("eval_every", "every {} steps"), ("eval_episodes", "with {} episodes")):
            values = sorted({getattr(run.config, name) for run in runs})
            if len(values) > 1:
                shown = " and ".join(what.format(spaced(value)) for value in values)
                effect = "; mean curves have the steps that their runs share" if name == "eval_every" else ""
                differently.setdefault(f"were evaluated differently, {shown}{effect}", []).append(task)
    return [
        *(f"Missing {seeds}: {', '.join(names)}." for seeds, names in lacking.items()),
        *(f"Not finished, {place}: {', '.join(names)}." for place, names in partial.items()),
        *(f"Runs on {', '.join(tasks)} {how}." for how, tasks in differently.items()),
    ]


def about_steps(groups: Groups, compared: Mapping[str, Mapping[str, int]], asked: int | None) -> list[str]:
    """At which step methods are compared, where that leaves runs out; `compared` has the step of each method of each
    task."""
    left_out: dict[str, list[str]] = {}
    earlier: dict[str, list[str]] = {}
    few: dict[str, list[str]] = {}
    for task, here in groups.items():
        steps = compared.get(task, {})
        for group in here:
            step = steps.get(group.label, asked)
            if step is None:
                continue
            if short := [run for run in group.runs if run.reach < step]:
                left_out.setdefault(spaced(step), []).append(f"{name_of(group, short)} on {task}")
            if group.label in steps and steps[group.label] < max(steps.values()):
                earlier.setdefault(spaced(step), []).append(f"{group.label} on {task}")
            for count in {int((run.steps <= step).sum()) for run in group.runs if run.reach >= step}:
                if count < LAST:
                    few.setdefault(f"{count} evaluation{'s' if count > 1 else ''}", []).append(task)
    notes = [f"Left out, because they did not reach step {step}: {_joined(names)}." for step, names in left_out.items()]
    least = min(run.reach for here in groups.values() for group in here for run in group.runs)
    if notes and least > 0 and asked is None:
        notes[-1] += f" All runs can be compared at step {least}."
    return [
        *notes,
        *(
            f"Compared at step {step}, the last that they and their dense counterparts reached: {_joined(names)}."
            for step, names in earlier.items()
        ),
        *(
            f"R is the mean of {count}, because there are no {LAST} yet: {_joined(dict.fromkeys(tasks))}."
            for count, tasks in few.items()
        ),
    ]


def name_of(group: Group, runs: Sequence[TrainedRun]) -> str:
    """Some runs of a group: its label and their seeds."""
    return f"{group.label} {_seeds(run.config.seed for run in runs)}"


def _seeds(seeds: Iterable[int]) -> str:
    """
    >>> _seeds([3, 1]), _seeds([2])
    ('seeds 1, 3', 'seed 2')
    """
    known = sorted(seeds)
    return f"seed{'s' if len(known) > 1 else ''} {', '.join(map(str, known))}"


def _places(group: Group) -> dict[str, list[TrainedRun]]:
    """Unfinished runs, by progress and reason."""
    found: dict[str, list[TrainedRun]] = {}
    for run in group.runs:
        if not run.whole:
            place = f"at {steps_text(run.last)} of {steps_text(run.config.steps)} steps ({run.state})"
            found.setdefault(place, []).append(run)
    return found


def _joined(names: Iterable[str]) -> str:
    return "; ".join(names)
