"""The search space of tuning: λ of each layer, η and e, within bounds that contain the paper's choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from rewirl.agents.methods import method
from rewirl.envs.creation import close
from rewirl.envs.environment import Environment
from rewirl.errors import Refused
from rewirl.topology import DropAndGrow
from rewirl.training.config import RunConfig, overlay

SHARES = (0.1, 0.8)
"""Bounds of λ, as shares of the λ at which a layer of the actor is dense; the paper's choices are 0.16 to 0.75."""
ETAS = (0.01, 0.3)
"""Bounds of η: the paper chose 0.05 and 0.1."""
SCHEDULES = (200, 500, 1000, 2000)
"""Values of e that the paper compared."""


@dataclass(frozen=True)
class Space:
    """Bounds of the values drawn for a trial."""

    lambdas: tuple[tuple[float, float], ...]
    """Bounds of λ for each layer except the last; drawn uniformly."""
    eta: tuple[float, float] | None
    """Bounds of η, drawn log-uniformly; None for methods that never rewire."""
    adapt_every: tuple[int, ...] | None
    """Choices for e."""

    def draw(self, trial: Any) -> None:
        """Draws all values from an Optuna trial."""
        for layer, bounds in enumerate(self.lambdas, start=1):
            trial.suggest_float(f"lambda{layer}", *bounds)
        if self.eta and self.adapt_every:
            trial.suggest_float("eta", *self.eta, log=True)
            trial.suggest_categorical("adapt_every", list(self.adapt_every))

    def options(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The drawn values as options of a run, rounded to three digits.

        >>> Space(((1, 9), (1, 9)), None, None).options({"lambda1": 7.00123, "lambda2": 2.0})
        {'lambdas': (7.0, 2.0)}
        """
        out: dict[str, Any] = {"lambdas": tuple(_rounded(drawn[f"lambda{n}"]) for n in range(1, len(self.lambdas) + 1))}
        if self.eta:
            out |= {"eta": _rounded(drawn["eta"]), "adapt_every": int(drawn["adapt_every"])}
        return out

    def settings(self) -> dict[str, Any]:
        """The space as JSON values."""
        return asdict(self)


def space_of(
    config: RunConfig,
    *,
    lambdas: Sequence[float] | None = None,
    eta: Sequence[float] | None = None,
    adapt_every: Sequence[int] | None = None,
) -> Space:
    """The space for a method and task; bounds that are given, for λ in pairs from the first layer on, replace ours.

    >>> space_of(RunConfig.resolve(method="ds-td3", task="HalfCheetah-v5")).lambdas
    ((1.59, 12.8), (12.8, 102.0))
    """
    chosen = method(config.method)
    rule = chosen.rule
    if not rule.sparse:
        raise Refused(f"{config.method} is dense, so there is no wiring to tune: use ds-{chosen.algorithm}")
    rewires = issubclass(rule, DropAndGrow)
    if not rewires and (eta or adapt_every):
        raise Refused(f"{config.method} never rewires: leave out eta and adapt_every, or use ds-{chosen.algorithm}")
    layers = len(config.options.hidden)
    pairs = _dense_lambdas(config) if lambdas is None else _pairs(lambdas, layers)
    _check_bounds("eta", eta or ETAS, 1.0)
    if any(every < 1 for every in adapt_every or ()):
        raise Refused(f"adapt_every must be whole numbers from 1, not {adapt_every}", "adapt_every")
    return Space(
        lambdas=pairs,
        eta=(float((eta or ETAS)[0]), float((eta or ETAS)[1])) if rewires else None,
        adapt_every=tuple(adapt_every or SCHEDULES) if rewires else None,
    )


def configs_of(base: Mapping[str, Any], drawn: Mapping[str, Any], seeds: Sequence[int]) -> list[RunConfig]:
    """The runs of a trial, one per seed."""
    try:
        return [RunConfig.resolve(**{**overlay(base, drawn), "seed": seed}) for seed in seeds]
    except ValueError as error:
        raise Refused(str(error)) from None


def _dense_lambdas(config: RunConfig) -> tuple[tuple[float, float], ...]:
    made = config.source().make()
    n_obs = Environment(made, config.task).n_obs
    close(made)
    dense = [n_in * n_out / (n_in + n_out) for n_in, n_out in pairwise((n_obs, *config.options.hidden))]
    return tuple((_rounded(SHARES[0] * value), _rounded(SHARES[1] * value)) for value in dense)


def _pairs(lambdas: Sequence[float], layers: int) -> tuple[tuple[float, float], ...]:
    if len(lambdas) != 2 * layers:
        raise Refused(
            f"lambdas must be a lower and an upper bound for each of {layers} layers, so {2 * layers} numbers, not "
            f"{len(lambdas)}",
            "lambdas",
        )
    pairs = tuple((float(low), float(high)) for low, high in zip(lambdas[::2], lambdas[1::2], strict=True))
    for pair in pairs:
        _check_bounds("lambdas", pair, float("inf"))
    return pairs


def _check_bounds(name: str, bounds: Sequence[float], limit: float) -> None:
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1] <= limit:
        below = f" up to {limit:g}" if limit < float("inf") else ""
        raise Refused(f"{name} must be a lower and an upper bound, positive numbers{below}, not {tuple(bounds)}", name)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
