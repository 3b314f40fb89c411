"""The figures for print: each as PNG, SVG and PDF, readable at the width of a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rewirl.experiments.analysis.aggregates import Aggregates
from rewirl.experiments.analysis.comparison import Comparison, TaskComparison
from rewirl.experiments.analysis.groups import Group
from rewirl.experiments.analysis.number_format import steps_text
from rewirl.experiments.analysis.trained_runs import DIAGNOSED, Floats
from rewirl.experiments.analysis.wiring.study import WiringStudy
from rewirl.experiments.report.end_labels import End, label_ends
from rewirl.experiments.report.style import Ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("png", "svg", "pdf")
COLUMN = 3.4
"""Inches of a column of text."""
DPI = 220
RC: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#777777",
    "axes.labelcolor": "#333333",
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "svg.hashsalt": "rewirl",  # the same file for the same data
}
STEPS = "environment steps"
COSTS = {"paper_flops": "FLOPs, the paper's count", "full_flops": "FLOPs, full count", "seconds": "wall-clock, minutes"}

Inks = Mapping[str, Ink]


def cost_axes(comparison: Comparison) -> dict[str, str]:
    """Quantities on the x axis with their names: those logged, and time if the runs were timed alone."""
    return {
        column: name
        for column, name in COSTS.items()
        if (column != "seconds" or comparison.wall_clock)
        and any(np.isfinite(run.columns[column]).any() for run in comparison.runs)
    }


def diagnosed_columns(task: TaskComparison) -> dict[str, str]:
    """The diagnostics that any run of a task has, with names."""
    runs = [run for group in task.groups for run in group.runs]
    return {
        column: name
        for column, name in DIAGNOSED.items()
        if any(np.isfinite(run.columns[column]).any() for run in runs)
    }


def figures(
    comparison: Comparison, aggregates: Aggregates, wiring: Sequence[WiringStudy], inks: Inks
) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """Functions that draw the figures, by file name."""
    axes = cost_axes(comparison)
    if len(comparison.tasks) > 1:
        yield "curves", partial(_curves, comparison.tasks, inks)
    for task in comparison.tasks:
        yield f"curves-{file_name(task.task)}", partial(_curves, [task], inks)
        if axes:
            yield f"efficiency-{file_name(task.task)}", partial(_efficiency, task, inks, axes)
        if diagnosed := diagnosed_columns(task):
            yield f"diagnostics-{file_name(task.task)}", partial(_diagnostics, task, inks, diagnosed)
    if aggregates.iqm:
        yield "aggregate", partial(_aggregate, aggregates, inks)
    for task_name, label in dict.fromkeys((study.task, study.label) for study in wiring):
        studies = [study for study in wiring if (study.task, study.label) == (task_name, label)]
        name = file_name(f"{task_name}-{label}")
        if studies[0].moves:
            yield f"wiring-{name}", partial(_movement, studies)
        yield f"degrees-{name}", partial(_degrees, studies)


def save(draw: Callable[[], Figure], path: Path) -> None:
    """A figure as `path` with each of the endings."""
    import matplotlib

    with matplotlib.rc_context(RC):
        figure = draw()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once here, instead of once per format
        for kind in KINDS:
            date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            figure.savefig(path.with_name(f"{path.name}.{kind}"), dpi=DPI, metadata=date)


def file_name(text: str) -> str:
    """A text as part of a file's name.

    >>> file_name("tiny/Walk-v0 e=200")
    'tiny-Walk-v0-e-200'
    """
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in text)


def _new(rows: int, columns: int, width: float, height: float, **given: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI)  # laid out as it is saved: letters are not as wide at other sizes
    return figure, figure.subplots(rows, columns, squeeze=False, **given)


def _curves(tasks: Sequence[TaskComparison], inks: Inks) -> Figure:
    columns = min(len(tasks), 3)
    rows = -(-len(tasks) // columns)
    names, height = _room_for_names(tasks)
    figure, axes = _new(rows, columns, max(COLUMN if columns == 1 else 2.6, 1.9 + names) * columns, height * rows)
    for axis, task in zip(axes.flat, tasks, strict=False):
        _curve_panel(axis, task, inks, "step", STEPS)
        axis.set_title(task.task)
    for axis in list(axes.flat)[len(tasks) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("return")
    return figure


def _room_for_names(tasks: Sequence[TaskComparison]) -> tuple[float, float]:
    """Inches that the names at the ends of lines are wide, and that a panel must be high for all of them."""
    longest = max(len(_name(group)) for task in tasks for group in task.groups)
    return 0.068 * longest, max(2.4, 0.8 + 0.14 * max(len(task.groups) for task in tasks))


def _name(group: Group) -> str:
    n, at_the_end = len(group.runs), int(group.curve().n[-1])
    return f"{group.label} (n={n})" if at_the_end == n else f"{group.label} (n={n}, {at_the_end} to the end)"


def _efficiency(task: TaskComparison, inks: Inks, costs: Mapping[str, str]) -> Figure:
    """Of the two counts of FLOPs, which look alike, only the first."""
    names, height = _room_for_names([task])
    axes_of = {"step": STEPS} | {column: name for column, name in costs.items() if column != "full_flops"}
    figure, axes = _new(1, len(axes_of), max(2.5 * len(axes_of), 1.9 * len(axes_of) + names), height, sharey=True)
    for number, (axis, (column, about)) in enumerate(zip(axes[0], axes_of.items(), strict=True)):
        _curve_panel(axis, task, inks, column, about, named=number == 0)
        axis.set_title("" if number else task.task)
    axes[0][0].set_ylabel("return")
    return figure


def _curve_panel(axis: Axes, task: TaskComparison, inks: Inks, column: str, about: str, *, named: bool = True) -> None:
    """Smoothed means, bands of one standard deviation, and names at the ends of the lines."""
    ends = []
    for group in task.groups:
        curve, ink = group.curve(window=task.drawn_window), inks[group.label]
        x = curve.steps.astype(float) if column == "step" else group.along(column)
        x = x / 60 if column == "seconds" else x
        known = np.isfinite(x)
        if not known.any():
            continue
        x, mean, std = x[known], curve.mean[known], curve.std[known]
        axis.plot(x, mean, color=ink.light, linestyle=ink.line)
        axis.fill_between(x, mean - std, mean + std, color=ink.light, alpha=0.15, linewidth=0)
        ends.append(End(float(x[-1]), float(mean[-1]), _name(group), ink.light))
    axis.set_xlabel(about)
    axis.margins(x=0)
    if column == "step":
        axis.xaxis.set_major_formatter(lambda value, _: steps_text(value))
    elif column.endswith("flops"):
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.2g}".replace("e+", "e"))
    if named:
        label_ends(axis, ends)


def _diagnostics(task: TaskComparison, inks: Inks, columns: Mapping[str, str]) -> Figure:
    """A panel for each diagnostic; the methods are named beside them."""
    rows = -(-(len(columns) + 1) // 3)
    figure, axes = _new(rows, 3, 2 * COLUMN, 2.0 * rows)
    panels = list(axes.flat)
    for axis, (column, name) in zip(panels, columns.items(), strict=False):
        for group in task.groups:
            curve, ink = group.curve(column), inks[group.label]
            axis.plot(curve.steps, curve.mean, color=ink.light, linestyle=ink.line, label=_name(group))
            low, high = curve.mean - curve.std, curve.mean + curve.std
            axis.fill_between(curve.steps, low, high, color=ink.light, alpha=0.15, linewidth=0)
        axis.set_title(name)
        axis.set_xlabel(STEPS)
        axis.margins(x=0)
        axis.xaxis.set_major_formatter(lambda value, _: steps_text(value))
        if column.endswith("dormant"):
            axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    for axis in panels[len(columns) :]:
        axis.set_axis_off()
    panels[len(columns)].legend(*panels[0].get_legend_handles_labels(), loc="center left", title=task.task)
    return figure


def _aggregate(aggregates: Aggregates, inks: Inks) -> Figure:
    figure, axes = _new(1, 2, 2 * COLUMN, 2.3, width_ratios=(1, 1.25))
    left, right = axes[0]
    labels = list(aggregates.iqm)[::-1]
    for place, label in enumerate(labels):
        estimate, ink = aggregates.iqm[label], inks[label]
        if estimate.low is not None and estimate.high is not None:
            left.plot(
                [estimate.low, estimate.high],
                [place, place],
                color=ink.light,
                linewidth=5,
                alpha=0.35,
                solid_capstyle="butt",
            )
        left.plot([estimate.value], [place], "|", color=ink.light, markersize=11, markeredgewidth=2)
    left.set_yticks(range(len(labels)), [f"{label} (n={aggregates.iqm[label].n})" for label in labels])
    left.set_ylim(-0.6, len(labels) - 0.4)
    left.set_xlabel("IQM of the normalised return")
    left.set_title(f"{len(aggregates.tasks)} task{'s' if len(aggregates.tasks) > 1 else ''}, 95% intervals")
    for label, profile in aggregates.profiles.items():
        ink = inks[label]
        right.plot(profile.taus, profile.share, color=ink.light, linestyle=ink.line, label=f"{label} (n={profile.n})")
        right.fill_between(profile.taus, profile.low, profile.high, color=ink.light, alpha=0.13, linewidth=0)
    right.set_xlabel("normalised return τ")
    right.set_ylabel("share of runs above τ")
    right.set_ylim(-0.02, 1.02)
    right.margins(x=0)
    right.set_title("performance profiles")
    right.legend(loc="lower left")
    return figure


def _movement(studies: Sequence[WiringStudy]) -> Figure:
    """Heat maps of links per input, and how old links got."""
    tallest = max(len(study.features) for study in studies)
    height = min(1.4 + 0.115 * tallest, 9.0)
    figure, axes = _new(2, len(studies), 2 * COLUMN, height + 1.9, height_ratios=(height, 1.7))
    for column, study in enumerate(studies):
        above, below = axes[0][column], axes[1][column]
        _heat(figure, above, study)
        ends = []
        for number, (limit, shares) in enumerate(study.ages.items()):
            shade = str(0.65 - 0.6 * number / max(len(study.ages) - 1, 1))
            below.plot(study.age_steps, shares, color=shade)
            ends.append(End(float(study.age_steps[-1]), float(shares[-1]), f"≥ {steps_text(limit)}", shade))
        below.set_ylim(0, 1.02)
        below.margins(x=0)
        below.xaxis.set_major_formatter(lambda value, _: steps_text(value))
        below.set_xlabel(STEPS)
        label_ends(below, ends)
    axes[1][0].set_ylabel("share of links that are\nthat many steps old")
    return figure


def _heat(figure: Figure, axis: Axes, study: WiringStudy) -> None:
    axis.set_title(f"{study.label}, {study.network}, {study.task} ({study.n_text})", fontsize=7.5)
    axis.grid(False)
    if not len(study.features):
        axis.text(0.5, 0.5, "the first layer is dense", ha="center", va="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    count = len(study.features)
    edges = _edges(study.steps.astype(float))
    mesh = axis.pcolormesh(edges, np.arange(count + 1) - 0.5, study.per_feature, cmap="cividis", rasterized=True)
    figure.colorbar(mesh, ax=axis, pad=0.01, aspect=40).set_label("links", fontsize=7)
    every = max(1, count // 40)
    axis.set_yticks(range(0, count, every), study.features[::every], fontsize=6)
    axis.invert_yaxis()
    axis.xaxis.set_major_formatter(lambda value, _: steps_text(value))


def _degrees(studies: Sequence[WiringStudy]) -> Figure:
    columns = max(len(study.degrees) for study in studies)
    figure, axes = _new(len(studies), columns, 1.9 * columns, 1.7 * len(studies) + 0.3)
    for row, study in zip(axes, studies, strict=True):
        for axis, degrees in zip(row, study.degrees, strict=False):
            axis.stairs(degrees.first, degrees.edges, color="#999999", fill=True, alpha=0.45, label="at the start")
            axis.stairs(degrees.last, degrees.edges, color="#0072b2", linewidth=1.3, label="at the end")
            axis.set_xlabel(degrees.side, fontsize=6.5)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        row[0].set_ylabel(f"{study.network}: share", fontsize=7)
        for axis in row[len(study.degrees) :]:
            axis.set_visible(False)
    axes[0][0].legend(fontsize=6.5)
    figure.suptitle(f"{studies[0].label} on {studies[0].task} ({studies[0].n_text})", fontsize=8, x=0.01, ha="left")
    return figure


def _edges(steps: Floats) -> Floats:
    """Of columns around steps."""
    if len(steps) == 1:
        return np.array([steps[0] - 0.5, steps[0] + 0.5])
    middles = (steps[1:] + steps[:-1]) / 2
    return np.concatenate([[2 * steps[0] - middles[0]], middles, [2 * steps[-1] - middles[-1]]])
