"""Compact data for the page's plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewirl.experiments.analysis.aggregates import Aggregates
from rewirl.experiments.analysis.comparison import Comparison
from rewirl.experiments.analysis.groups import Group
from rewirl.experiments.analysis.number_format import steps_text
from rewirl.experiments.analysis.smoothing import smoothed
from rewirl.experiments.analysis.trained_runs import DIAGNOSED
from rewirl.experiments.analysis.wiring.study import WiringStudy
from rewirl.experiments.report.style import Ink

DIGITS = 5
"""Significant digits in plots: more are not visible."""


def page_data(
    comparison: Comparison, aggregates: Aggregates, wiring: Sequence[WiringStudy], inks: Mapping[str, Ink]
) -> str:
    """As JSON that can stand inside a script element."""
    data = {
        "inks": {label: vars(ink) for label, ink in inks.items()},
        "tasks": [
            {
                "task": task.task,
                "at": task.at,
                "curves": [_curve(group, task.drawn_window, comparison.wall_clock) for group in task.groups],
            }
            for task in comparison.tasks
        ],
        "iqm": [{"label": label, **vars(estimate)} for label, estimate in aggregates.iqm.items()],
        "profiles": [
            {"label": label, "n": p.n} | {name: _numbers(getattr(p, name)) for name in ("taus", "share", "low", "high")}
            for label, p in aggregates.profiles.items()
        ],
        "wiring": [_wiring(study) for study in wiring],
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _curve(group: Group, window: int, timed: bool) -> dict[str, Any]:
    """Smoothed and raw."""
    curve, raw = group.curve(window=window), group.curve()
    costs = ("paper_flops", "full_flops", *(["seconds"] if timed else []))
    return {
        "label": group.label,
        "n": curve.n.tolist(),
        "step": curve.steps.tolist(),
        "smooth": {"mean": _numbers(curve.mean), "std": _numbers(curve.std)},
        "raw": {"mean": _numbers(raw.mean), "std": _numbers(raw.std)},
        **{name: _numbers(group.along(name)) for name in costs},
        "diagnostics": _diagnostics(group),
        "seeds": [
            {
                "seed": run.config.seed,
                "step": run.steps.tolist(),
                "smooth": _numbers(smoothed(run.returns, window)),
                "raw": _numbers(run.returns),
            }
            for run in group.runs
        ],
    }


def _diagnostics(group: Group) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation of each column that the runs have, at the steps where it is known."""
    out = {}
    for name in DIAGNOSED:
        curve = group.curve(name)
        known = np.isfinite(curve.mean)
        if known.any():
            out[name] = {"step": curve.steps[known].tolist()} | {
                part: _numbers(getattr(curve, part)[known]) for part in ("mean", "std")
            }
    return out


def _wiring(study: WiringStudy) -> dict[str, Any]:
    return {
        "task": study.task,
        "label": study.label,
        "network": study.network,
        "n": study.n_text,
        "moves": study.moves,
        "features": study.features,
        "step": study.steps.tolist(),
        "links": [_numbers(row, 4) for row in study.per_feature],
        "degrees": [
            {"side": degrees.side} | {name: _numbers(getattr(degrees, name)) for name in ("edges", "first", "last")}
            for degrees in study.degrees
        ],
        "age_step": study.age_steps.tolist(),
        "ages": [{"name": f"≥ {steps_text(limit)}", "share": _numbers(shares)} for limit, shares in study.ages.items()],
    }


def _numbers(values: Any, digits: int = DIGITS) -> list[float | None]:
    """Rounded numbers; None instead of NaN.

    >>> _numbers(np.array([1234567.0, 0.1234567, float("nan")]))
    [1234600, 0.12346, None]
    """
    return [_rounded(float(value), digits) for value in np.asarray(values).tolist()]


def _rounded(value: float, digits: int) -> float | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded
