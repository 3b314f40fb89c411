"""Grids: methods × tasks × seeds, with variants, from a TOML file.

    about = "How often to adapt"
    tasks = ["HalfCheetah-v5"]
    methods = ["ds-td3"]
    seeds = [1, 2, 3]
    steps = 300_000              # this and any other option of `rewirl train` applies to all runs

    [[variant]]                  # each variant is the whole grid again, with its own settings
    label = "e200"
    adapt_every = 200

    [[variant]]
    label = "dense"
    methods = ["td3"]

A variant may start with samples of another one's policies: initial_samples = { of = "dense" }.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rewirl.errors import Refused, nearest
from rewirl.training.config import RunConfig, all_hints, overlay
from rewirl.untrusted import from_toml, read_text

LISTS = ("tasks", "methods", "seeds")
"""The dimensions of a grid."""
OPTIONS = all_hints().keys() - {"seed"}
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+%-]*", re.ASCII)


@dataclass(frozen=True)
class GridRun:
    """One run of a grid."""

    config: RunConfig
    label: str = field(default="", compare=False)
    """Label of its variant; empty if the grid has none."""
    source: GridRun | None = None
    """The run of the grid whose policy provides its initial samples, if any."""

    def sources(self) -> Iterator[GridRun]:
        """Its source, the source's own, and so on."""
        if self.source is not None:
            yield self.source
            yield from self.source.sources()

    def __str__(self) -> str:
        parts = (self.config.method, f"seed {self.config.seed}", self.label)
        return f"{self.config.task} {' '.join(part for part in parts if part)}"


@dataclass(frozen=True)
class Variant:
    """The whole grid again, with its own settings."""

    label: str = ""
    lists: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Its own tasks, methods or seeds."""
    values: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    """Label of the variant whose policies provide initial samples."""


@dataclass(frozen=True)
class Grid:
    """The content of a grid file. `runs` gives its runs, `narrowed` a part of it.

    >>> grid = parse_grid('tasks = ["Pendulum-v1"]\\nmethods = ["td3", "ds-td3"]\\nseeds = [1, 2]', "mine")
    >>> [str(run) for run in grid.narrowed(seeds=[2]).runs()]
    ['Pendulum-v1 td3 seed 2', 'Pendulum-v1 ds-td3 seed 2']
    """

    name: str
    lists: Mapping[str, Sequence[Any]]
    """tasks, methods and seeds."""
    values: Mapping[str, Any]
    """Options that all runs share."""
    variants: Sequence[Variant] = (Variant(),)
    about: str = ""
    trains: bool = True
    """If False, only the costs of agents are printed."""
    chosen: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Selected tasks, methods and seeds."""

    def narrowed(
        self,
        *,
        tasks: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
    ) -> Grid:
        """Only these tasks and methods of it, with these seeds (others than its own too), for so many steps; variants
        that have steps of their own are shortened alike. Runs that others begin with stay."""
        chosen = {"tasks": tasks, "methods": methods, "seeds": seeds}
        given = {name: list(dict.fromkeys(values)) for name, values in chosen.items() if values is not None}
        for name in ("tasks", "methods"):
            known: list[str] = [item for lists in self._all_lists() for item in lists.get(name, ())]
            for item in map(str, given.get(name, ())):
                if item not in known:
                    said = f"{self.name} has no {name[:-1]} {item!r}{nearest(item, known)}"
                    raise Refused(f"{said} ({name}: {', '.join(dict.fromkeys(known))})")
        grid = replace(self, chosen={**self.chosen, **given})
        if seeds is not None:
            grid = grid._seeded(list(dict.fromkeys(seeds)))
        return grid if steps is None else grid._shortened(steps)

    def _seeded(self, seeds: Sequence[int]) -> Grid:
        """With these seeds, but for variants with their own that others begin with."""
        sources = {variant.source for variant in self.variants}
        variants = [
            replace(variant, lists={**variant.lists, "seeds": seeds})
            if "seeds" in variant.lists and variant.label not in sources
            else variant
            for variant in self.variants
        ]
        return replace(self, lists={**self.lists, "seeds": seeds}, variants=variants)

    def _shortened(self, steps: int) -> Grid:
        whole = self.values.get("steps", RunConfig.steps)
        variants = [
            replace(variant, values={**variant.values, "steps": max(round(variant.values["steps"] * steps / whole), 1)})
            if "steps" in variant.values
            else variant
            for variant in self.variants
        ]
        return replace(self, values={**self.values, "steps": steps}, variants=variants)

    def runs(self) -> list[GridRun]:
        """All runs, seed by seed, so that early results can be compared; sources of initial samples come first."""
        every = [run for variant in self.variants for run in self._of(variant)]
        wanted = [run for run in every if self._is_chosen(run.config)]
        if not wanted:
            raise Refused(self._nothing())
        sources = [source for run in wanted for source in reversed(list(run.sources()))]
        by_seed = sorted((*sources, *wanted), key=lambda run: self._position(run.config.seed))
        return list(dict.fromkeys(by_seed))  # two variants may describe one and the same run

    def _of(self, variant: Variant) -> list[GridRun]:
        lists = {**self.lists, **variant.lists}
        return [
            GridRun(self._config(variant, task, method, seed), variant.label, self._source(variant, task, method, seed))
            for seed in lists["seeds"]
            for task in lists["tasks"]
            for method in lists["methods"]
        ]

    def _config(self, variant: Variant, task: str, method: str, seed: int) -> RunConfig:
        where = f"{self.name}, variant {variant.label}" if variant.label else self.name
        try:
            return RunConfig.resolve(method=method, task=task, seed=seed, **overlay(self.values, variant.values))
        except ValueError as error:
            raise Refused(f"{where}: {error}") from None

    def _source(self, variant: Variant, task: str, method: str, seed: int) -> GridRun | None:
        """The run of the other variant with the same task, method and seed, or its only run."""
        if not variant.source:
            return None
        other = next(found for found in self.variants if found.label == variant.source)
        lists, same = {**self.lists, **other.lists}, {"tasks": task, "methods": method, "seeds": seed}
        picked: dict[str, Any] = {}
        for name, wanted in same.items():
            if wanted not in lists[name] and len(lists[name]) != 1:
                raise Refused(
                    f"{self.name}: the variant {other.label} has no run that {variant.label} can start from: it has "
                    f"several {name}, and none is {wanted}"
                )
            picked[name] = wanted if wanted in lists[name] else lists[name][0]
        config = self._config(other, picked["tasks"], picked["methods"], picked["seeds"])
        return GridRun(config, other.label, self._source(other, config.task, config.method, config.seed))

    def _is_chosen(self, config: RunConfig) -> bool:
        mine = {"tasks": config.task, "methods": config.method, "seeds": config.seed}
        return all(mine[name] in values for name, values in self.chosen.items())

    def _position(self, seed: int) -> int:
        """Of a seed among those that were given; seeds of variants come first."""
        seeds = list(self.lists["seeds"])
        return seeds.index(seed) if seed in seeds else -1

    def _all_lists(self) -> list[Mapping[str, Sequence[Any]]]:
        return [self.lists, *(variant.lists for variant in self.variants)]

    def _nothing(self) -> str:
        for lists in self._all_lists():
            for name in LISTS:
                if name in lists and not lists[name]:
                    return f"{self.name} is an empty grid: its {name} are an empty list"
        chosen = "; ".join(f"{name}: {' '.join(map(str, values))}" for name, values in self.chosen.items())
        return f"the grid {self.name} has no runs with {chosen}"


def parse_grid(text: str, name: str) -> Grid:
    """The grid of a TOML text; `name` is used in messages."""
    try:
        given = from_toml(text)
    except ValueError as error:
        raise Refused(f"{name} is not TOML: {error}") from None
    about, trains = given.pop("about", ""), given.pop("train", True)
    tables = given.pop("variant", [{}])
    if not isinstance(about, str) or not isinstance(trains, bool):
        raise Refused(f"{name}: about must be a string, and train true or false")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise Refused(f"{name}: a variant starts with a line [[variant]]")
    whole = _variant(given, name, {"about", "train", "variant"})
    for needed in LISTS:
        if needed not in whole.lists:
            raise Refused(f"{name} has no {needed}: add a line such as {needed} = {_EXAMPLES[needed]}")
    if whole.source or whole.label:
        raise Refused(f"{name}: a label, and initial_samples of another variant, belong in a [[variant]]")
    variants = [_variant(table, f"{name}, variant {number}", {"label"}) for number, table in enumerate(tables, 1)]
    labels = [variant.label for variant in variants]
    for number, variant in enumerate(variants):
        if len(variants) > 1 and (not variant.label or variant.label in labels[:number]):
            raise Refused(f"{name}, variant {number + 1}: give it a unique label")
        if variant.source and variant.source not in labels[:number]:
            raise Refused(
                f"{name}, variant {variant.label}: initial_samples names {variant.source!r}, which is not a variant "
                f"before it{nearest(variant.source, labels[:number])}"
            )
    return Grid(name, whole.lists, whole.values, variants, about, trains)


_EXAMPLES = {"tasks": '["HalfCheetah-v5"]', "methods": '["td3", "ds-td3"]', "seeds": "[1, 2, 3]"}


def _variant(table: Mapping[str, Any], where: str, known: set[str]) -> Variant:
    for key in table:
        if key not in OPTIONS and key not in LISTS and key not in known:
            raise Refused(f"{where}: there is no option {key!r}{nearest(key, sorted(OPTIONS | known | {*LISTS}))}")
    label, samples = table.get("label", ""), table.get("initial_samples")
    if not isinstance(label, str) or (label and not LABEL.fullmatch(label)):
        raise Refused(f"{where}: a label must be one word that can name a folder, e.g. e200, not {label!r}")
    if isinstance(samples, dict) and (set(samples) != {"of"} or not isinstance(samples["of"], str)):
        raise Refused(f'{where}: initial_samples must be the path of a run, or {{ of = "LABEL" }}, not {samples!r}')
    lists = {name: _list(name, table[name], where) for name in LISTS if name in table}
    source = samples["of"] if isinstance(samples, dict) else ""
    left_out = {*LISTS, "label", *(("initial_samples",) if source else ())}
    return Variant(label, lists, {key: value for key, value in table.items() if key not in left_out}, source)


def _list(name: str, given: object, where: str) -> list[Any]:
    kind = int if name == "seeds" else str
    if not isinstance(given, list) or not all(type(item) is kind for item in given):
        raise Refused(f"{where}: {name} must be a list such as {_EXAMPLES[name]}, not {given!r}")
    return list(dict.fromkeys(given))


def read_grid(path: Path) -> Grid:
    """The grid in a user's file."""
    try:
        return parse_grid(read_text(path), path.name)
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read the grid {path}: {getattr(error, 'strerror', None) or error}") from None
