"""Wiring rules: which links a layer drops, and where it grows as many new ones (Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewirl.topology._checks import Floats, finite_number, float_array, integer_array, whole_number
from rewirl.topology.gradients import DenseGradient
from rewirl.topology.links import Links, _owned
from rewirl.topology.minimum import attainable, droppable, leaves, missing

Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Change:
    """The result of one rewiring of a layer."""

    before: Links
    """The wiring before."""
    dropped: Indices
    """Places of dropped links, ascending."""
    grown: Indices
    """Places of new links, ascending; none of them had a link before."""

    @cached_property
    def links(self) -> Links:
        """The new wiring, with as many links as the old one."""
        old = self.before
        if (taken := np.isin(self.grown, old.places, assume_unique=True)).any():
            raise ValueError(f"position {self.grown[taken][0]} cannot grow a link: it has one")
        kept = np.delete(old.places, np.searchsorted(old.places, self.dropped))
        # the stable sort merges two sorted runs in one pass
        places = np.sort(np.concatenate([kept, self.grown]), kind="stable")
        return Links(old.n_in, old.n_out, old.block, _owned(places))


@dataclass(frozen=True)
class Rule:
    """How the wiring of a layer changes. The base class never changes it; `DropAndGrow` is the base of rules that
    do."""

    name: ClassVar[str]
    """Its name for users."""
    phrase: ClassVar[str] = "sparse networks wired by a rule of their own"
    """Description of a method with this rule: "TD3 with …"."""
    wants_gradients: ClassVar[bool] = False
    """Whether `rewire` needs the dense gradient of the layer."""
    takes_panels: ClassVar[bool] = False
    """Whether that may be a `DenseGradient`, which is computed panel by panel, instead of a matrix."""
    sparse: ClassVar[bool] = True
    """Whether layers are wired sparse to begin with."""

    def due(self, update: int) -> bool:
        """Whether the critics adapt at this update, counted from 1."""
        return False

    def at(self, update: int) -> Rule:
        """The rule at this update; the same rule unless it has a schedule."""
        return self

    def rewire(
        self,
        links: Links,
        weights: Floats,
        rng: np.random.Generator,
        gradients: Floats | DenseGradient | None = None,
    ) -> Change:
        """The layer's next wiring.

        `weights` are those of `links.places`, in that order, as (blocks, block) or flat; `gradients` has the
        shape (n_out, n_in), for rules with `wants_gradients`.
        """
        return _unchanged(links)


def as_rule(rule: Rule | type[Rule]) -> Rule:
    """The rule itself, or one with its default numbers when a class is given.

    >>> as_rule(DropAndGrow) == as_rule(DropAndGrow())
    True
    """
    made = rule() if isinstance(rule, type) and issubclass(rule, Rule) else rule
    if not isinstance(made, Rule):
        raise TypeError(f"rule must be a wiring rule such as SET(), Static() or Dense(), not {rule!r}")
    return made


@dataclass(frozen=True)
class Dense(Rule):
    """Dense networks: the original algorithm.

    >>> Dense().sparse, Dense().due(1000)
    (False, False)
    """

    name: ClassVar[str] = "dense"
    phrase: ClassVar[str] = "dense networks"
    sparse: ClassVar[bool] = False


@dataclass(frozen=True)
class Static(Rule):
    """Sparse networks whose links never change.

    >>> Static().sparse, Static().due(1000)
    (True, False)
    """

    name: ClassVar[str] = "static"
    phrase: ClassVar[str] = "sparse networks that never change"


@dataclass(frozen=True)
class DropAndGrow(Rule):
    """Drops c = round(η blocks) and grows as many, so that the number of links stays the same.

    A new rule overrides `choose_drops`, `choose_growth` or both. By default the smallest magnitudes are dropped,
    and new links are uniformly random. `round` is Python's (halves to even).
    """

    eta: float = 0.05
    """η: share of the links that one rewiring replaces; 0 replaces none."""
    every: int = 1000
    """e: updates between two rewirings."""
    until: int | None = None
    """The last update at which links may change; None for no end."""
    anneal: bool = False
    """Whether η falls to 0 along a cosine, from the first update to `until`."""
    min_links: int = 0
    """Inputs that drops leave every neuron, and that growth gives first to neurons with fewer; at most the mean of
    the layer."""

    def __post_init__(self) -> None:
        if not 0 <= finite_number("eta", self.eta) <= 1:
            raise ValueError(f"eta must be from 0 to 1, not {self.eta:g}")
        if whole_number("every", self.every) < 1:
            raise ValueError(f"every must be at least 1, not {self.every}")
        if self.until is not None and whole_number("until", self.until) < 0:
            raise ValueError(f"until must not be negative, got {self.until}")
        if whole_number("min_links", self.min_links) < 0:
            raise ValueError(f"min_links must not be negative, got {self.min_links}")
        if self.anneal and not self.until:
            raise ValueError("anneal needs until, the update at which η is 0")

    def due(self, update: int) -> bool:
        return update >= 1 and update % self.every == 0 and (self.until is None or update <= self.until)

    def at(self, update: int) -> Rule:
        """With anneal, the rule with η (1 + cos(π update / until)) / 2.

        >>> round(SET(eta=0.2, until=100, anneal=True).at(50).eta, 6)
        0.1
        """
        if not self.anneal or self.until is None:
            return self
        share = (1 + math.cos(math.pi * min(update / self.until, 1))) / 2
        return replace(self, eta=self.eta * share, until=None, anneal=False)

    def rewire(
        self,
        links: Links,
        weights: Floats,
        rng: np.random.Generator,
        gradients: Floats | DenseGradient | None = None,
    ) -> Change:
        shape = (links.blocks, links.block)
        weights = float_array("weights", weights, shape, (links.count,)).reshape(shape)
        # Algorithm 2, L1; with fewer free places than c, drop only as many as can grow
        c = min(round(self.eta * links.blocks), links.n_free)
        if c == 0:
            return _unchanged(links)
        least = attainable(links, self.min_links)
        drops = self.choose_drops(links, weights, c)
        # Growth sees the wiring before the drop (L7 tests X == 0, L8 masks): no link comes straight back.
        if leaves(links, drops, least):
            grown = self.choose_growth(links, c, rng, gradients)
            dropped = links.places[drops]
        else:
            may_go = droppable(links, _block_sums(np.abs(weights), axis=1), least)
            c = min(c, len(may_go))
            if c == 0:
                return _unchanged(links)
            needed = missing(links, least, c, rng)
            grown = needed
            if len(needed) < c:
                fed = _with(links, np.concatenate([links.places, needed]))
                grown = np.concatenate([needed, self.choose_growth(fed, c - len(needed), rng, gradients)])
            loose = _with(links, links.places[may_go])
            dropped = loose.places[self.choose_drops(loose, weights[may_go], c)]
        grown, come = _ascending(integer_array("grown", grown).astype(np.int64, copy=False))
        dropped, gone = _ascending(dropped)
        if not gone == come == c:
            raise ValueError(f"rule {self.name!r} dropped {gone} and grew {come}: both must be {c}")
        return Change(links, dropped, grown)

    def choose_drops(self, links: Links, weights: Floats, count: int) -> Indices:
        """The `count` blocks to drop, as indices into `links.places`; `weights` is (blocks, block)."""
        return _smallest(_block_sums(np.abs(weights), axis=1), count)

    def choose_growth(
        self, links: Links, count: int, rng: np.random.Generator, gradients: Floats | DenseGradient | None
    ) -> Indices:
        """The `count` free places that get a link."""
        ranks = rng.choice(links.n_free, count, replace=False, shuffle=False)  # L6
        return links.nth_free(np.sort(ranks))


@dataclass(frozen=True)
class SET(DropAndGrow):
    """The paper's rule: half of the drops are the smallest positive weights, half the negative weights closest to zero.

    Weights of exactly 0 are dropped first. If the number is odd, one more positive weight is dropped. If one sign has
    too few, the other provides the rest. Among equals the lowest place is dropped. Blocks have no sign and are ranked
    by the sum of their magnitudes.

    >>> links = Links(n_in=2, n_out=4, block=1, places=np.array([0, 2, 5, 7]))
    >>> weights = np.array([0.1, -0.3, 0.2, -0.4], dtype=np.float32)
    >>> change = SET(eta=0.5).rewire(links, weights, np.random.default_rng(0))
    >>> change.dropped
    array([0, 2])
    >>> change.links.count
    4
    """

    name: ClassVar[str] = "set"
    phrase: ClassVar[str] = "sparse networks that rewire themselves (SET: the paper's method)"

    def choose_drops(self, links: Links, weights: Floats, count: int) -> Indices:
        if links.block > 1:
            return super().choose_drops(links, weights, count)
        weights = weights.ravel()
        # For speed, consider only weights near zero: about 5c/2, by a sample, unless a sign is too rare there.
        magnitudes = np.abs(weights)
        sample = magnitudes[::8]
        nth = min(5 * count // 16, len(sample) - 1)
        near = np.flatnonzero(magnitudes <= np.partition(sample, nth)[nth])
        close = weights[near]
        zeros, positives, negatives = by_sign = _by_sign(close)
        if min(len(positives), len(negatives)) < (count - len(zeros) + 1) // 2:
            return _half_of_each_sign(weights, *_by_sign(weights), count)
        return near[_half_of_each_sign(close, *by_sign, count)]


@dataclass(frozen=True)
class RigL(DropAndGrow):
    """Drops the smallest magnitudes and grows links where the dense gradient is largest.

    Evci et al. 2020, but links that were just dropped are not regrown (as in SET), and η is constant.

    >>> links = Links(n_in=2, n_out=2, block=1, places=np.array([0, 3]))
    >>> gradients = np.array([[9.0, 0.1], [-0.5, 9.0]])  # rows are outputs
    >>> RigL(eta=0.5).rewire(links, np.array([0.2, -0.1]), np.random.default_rng(0), gradients).links.places
    array([0, 1])
    """

    name: ClassVar[str] = "rigl"
    phrase: ClassVar[str] = "sparse networks that rewire themselves by gradients (RigL)"
    wants_gradients: ClassVar[bool] = True
    takes_panels: ClassVar[bool] = True

    def choose_growth(
        self, links: Links, count: int, rng: np.random.Generator, gradients: Floats | DenseGradient | None
    ) -> Indices:
        if gradients is None:
            raise ValueError(f"rule {self.name!r} grows by gradients: give the dense gradient of the layer")
        if not isinstance(gradients, DenseGradient):
            matrix = float_array("gradients", gradients, (links.n_out, links.n_in)).T
            gradients = DenseGradient(links.n_in, links.n_out, lambda begin, end: matrix[begin:end])
        per_input = links.n_out // links.block
        ranks, best = np.empty(0), np.empty(0, dtype=np.int64)
        for first, panel in gradients.panels():
            # One score per place, in the order of places: input by input. The largest is first.
            magnitudes = np.abs(panel).reshape(len(panel), per_input, links.block)
            ranked = -_block_sums(magnitudes, axis=2).ravel()
            places = first * per_input + np.arange(len(ranked))
            begin, end = np.searchsorted(links.places, (places[0], places[-1] + 1))
            ranked[links.places[begin:end] - places[0]] = np.inf  # taken places come last
            some = _smallest(ranked, min(count, len(ranked)))
            ranks, best = np.concatenate([ranks, ranked[some]]), np.concatenate([best, places[some]])
            chosen = _smallest(ranks, min(count, len(ranks)))
            ranks, best = ranks[chosen], best[chosen]
        return best


RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (Dense, Static, SET, RigL)}
"""Rules by name."""


def _unchanged(links: Links) -> Change:
    none = np.empty(0, dtype=np.int64)
    return Change(links, none, none)


def _with(links: Links, places: Indices) -> Links:
    """The layer with links at these places."""
    return Links(links.n_in, links.n_out, links.block, _owned(np.sort(places)))


def _block_sums(magnitudes: Floats, axis: int) -> Floats:
    """One magnitude per block. Adds whole arrays, because NumPy's sum is slow along a short axis."""
    first, *others = np.moveaxis(magnitudes, axis, 0)
    sums: Floats = sum(others, start=first)
    return sums


def _ascending(places: Indices) -> tuple[Indices, int]:
    """The sorted places, and the number of distinct ones."""
    if np.count_nonzero(rising := places[1:] > places[:-1]) < len(rising):
        places = np.sort(places)
        rising = places[1:] > places[:-1]
    return places, int(np.count_nonzero(rising)) + min(len(places), 1)


def _by_sign(weights: Floats) -> tuple[Indices, Indices, Indices]:
    """Indices of the zeros, the positives and the negatives, each ascending."""
    return np.flatnonzero(weights == 0), np.flatnonzero(weights > 0), np.flatnonzero(weights < 0)


def _half_of_each_sign(weights: Floats, zeros: Indices, positives: Indices, negatives: Indices, count: int) -> Indices:
    """Indices of `count` weights: zeros first, then of each sign half the rest, nearest to zero."""
    zeros = zeros[:count]
    rest = count - len(zeros)
    # L2: c/2 of each sign; if one sign has too few, more of the other
    c_n = min(max(rest // 2, rest - len(positives)), len(negatives))
    c_p = rest - c_n
    smallest_positives = positives[_smallest(weights[positives], c_p)]  # L3
    largest_negatives = negatives[_smallest(-weights[negatives], c_n)]  # L4
    return np.concatenate([zeros, smallest_positives, largest_negatives])


def _smallest(values: Floats, count: int) -> Indices:
    """Indices of the `count` smallest, ascending; among equals the lowest, so that the result is determined."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    # A selection instead of a sort: all up to the largest selected value, without surplus equals.
    last = np.partition(values, count - 1)[count - 1]
    indices = np.flatnonzero(values <= last)
    surplus = len(indices) - count
    return np.delete(indices, np.flatnonzero(values[indices] == last)[-surplus:]) if surplus else indices
