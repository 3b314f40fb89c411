"""The tables of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewirl.experiments.analysis.aggregates import Aggregates
from rewirl.experiments.analysis.comparison import Comparison, Standing, TaskComparison, paper_of
from rewirl.experiments.analysis.metrics import LCA_UNIT
from rewirl.experiments.analysis.number_format import hours, plain, spaced, steps_text
from rewirl.experiments.analysis.statistics import SIZE, Estimate, mean_std
from rewirl.experiments.paper import published as paper
from rewirl.experiments.report.provenance import run_table
from rewirl.experiments.report.tables.summary_table import summary_table
from rewirl.experiments.report.tables.table import Record, Table

NBSP = "\N{NO-BREAK SPACE}"
BESIDE = (
    f"Next to ours the paper's numbers, for the -v3 tasks at {steps_text(paper.STEPS)} steps over {paper.SEEDS} seeds. "
    "Bold: the best of ours on a task."
)


def all_tables(comparison: Comparison, aggregates: Aggregates) -> list[Table]:
    """In the order of the page."""
    tables = [
        summary_table(comparison),
        return_table(comparison),
        lca_table(comparison),
        interval_table(comparison),
        aggregate_table(aggregates),
        improvement_table(aggregates),
        cost_table(comparison),
        run_table(comparison),
    ]
    return [table for table in tables if table.rows]


def return_table(comparison: Comparison) -> Table:
    """The paper's table of returns."""
    return _paper_table(
        comparison,
        "return",
        "Return R: mean of the last 10 evaluations",
        lambda standing: f"{plain(standing.mean_std[0])}{_std(standing.mean_std[1], '.2f')}",
        lambda known: f"{known.final_return:.2f} ± {known.std:.2f}",
        lambda standing: standing.mean_std[0],
        "Mean ± std over seeds (ddof = 0).",
    )


def lca_table(comparison: Comparison) -> Table:
    """The paper's table of learning speed."""
    return _paper_table(
        comparison,
        "lca",
        f"Learning curve area LCA (× {LCA_UNIT})",
        lambda standing: f"{standing.lcas.mean() / LCA_UNIT:.4f}{_std(mean_std(standing.lcas / LCA_UNIT)[1], '.4f')}",
        lambda known: f"{known.lca:.4f}",
        lambda standing: float(standing.lcas.mean()),
        f"Mean of all evaluations, divided by {LCA_UNIT}; mean ± std over seeds (ddof = 0).",
    )


def _paper_table(
    comparison: Comparison,
    name: str,
    title: str,
    ours: Callable[[Standing], str],
    theirs: Callable[[paper.PaperFigures], str],
    value: Callable[[Standing], float],
    note: str,
) -> Table:
    """Methods down, tasks across, each with the paper's column beside it where the paper has the task."""
    columns, in_paper = ["method"], []
    for task in comparison.tasks:
        known = {group.label: figures for group in task.groups if (figures := paper_of(group))}
        in_paper.append(known)
        columns.append(f"{task.task} at {steps_text(task.at)}")
        if known:
            columns.append(f"paper at {steps_text(paper.STEPS)}")
    rows: list[list[str]] = []
    records, best = [], set()
    for label in comparison.labels:
        row = [label]
        for task, known in zip(comparison.tasks, in_paper, strict=True):
            standing = task[label] if task.has(label) else None
            if standing in task.abreast and value(standing) == max(map(value, task.abreast)) and len(task.abreast) > 1:
                best.add((len(rows), len(row)))
            row.append(f"{ours(standing)} (n{NBSP}={NBSP}{standing.n}{_earlier(standing, task)})" if standing else "–")
            if known:
                row.append(theirs(known[label]) if label in known else "–")
            if standing:
                records.append(_record(task.task, standing))
        rows.append(row)
    note = f"{note} {BESIDE}" if any(in_paper) else f"{note} Bold: the best on a task."
    return Table(name, title, columns, rows, records, note, frozenset(best))


def _earlier(standing: Standing, task: TaskComparison) -> str:
    """The step of a method, if it did not reach its task's."""
    return f" at{NBSP}{steps_text(standing.at)}" if standing.at < task.at else ""


def _record(task: str, standing: Standing) -> Record:
    known = standing.paper
    lca, lca_std = mean_std(standing.lcas / LCA_UNIT)
    return {
        "task": task,
        "method": standing.label,
        "step": standing.at,
        "n": standing.n,
        "return_mean": standing.mean_std[0],
        "return_std": standing.mean_std[1],
        "lca_mean": lca,
        "lca_std": lca_std,
        "paper_return_mean": known.final_return if known else None,
        "paper_return_std": known.std if known else None,
        "paper_lca": known.lca if known else None,
    }


def interval_table(comparison: Comparison) -> Table:
    """Returns with intervals, per task."""
    rows, records = [], []
    for task in comparison.tasks:
        for standing in task.standings:
            mean, std = standing.mean_std
            rows.append(
                [
                    *(task.task, standing.label, standing.group.n_text + _earlier(standing, task)),
                    f"{plain(mean, '.0f')}{_std(std, '.0f')}",
                    _estimate(standing.iqm, ".0f"),
                ]
            )
            about: Record = {"task": task.task, "method": standing.label, "step": standing.at, "mean": mean, "std": std}
            records.append(about | _estimate_record("iqm", standing.iqm))
    return Table(
        "intervals",
        "Return with intervals",
        ["task", "method", "n", "mean ± std", f"IQM [{SIZE:.0%} interval]"],
        rows,
        records,
        f"Interquartile mean with a percentile bootstrap over seeds (10 000 resamples, seed {comparison.seed}).",
        words=3,
    )


def aggregate_table(aggregates: Aggregates) -> Table:
    """IQM over tasks."""
    rows = [[label, str(item.n), _estimate(item, ".3f")] for label, item in aggregates.iqm.items()]
    records: list[Record] = [{"method": label, **_estimate_record("iqm", e)} for label, e in aggregates.iqm.items()]
    top = max((item.value for item in aggregates.iqm.values()), default=0.0)
    best = {(row, 2) for row, item in enumerate(aggregates.iqm.values()) if item.value == top and len(rows) > 1}
    return Table(
        "aggregate",
        f"Normalised return over {_tasks(aggregates.tasks)}",
        ["method", "n", f"IQM [{SIZE:.0%} interval]"],
        rows,
        records,
        "0 is the untrained agent, 1 the dense one. Bootstrap over seeds, stratified by task.",
        frozenset(best),
    )


def improvement_table(aggregates: Aggregates) -> Table:
    """P(X > Y)."""
    rows, records = [], []
    for item in aggregates.improvements:
        rows.append([item.label, item.other, _estimate(item.probability, ".2f"), _tasks(item.tasks)])
        rows[-1].append(str(item.probability.n))
        about: Record = {"method": item.label, "other": item.other, "tasks": " ".join(item.tasks)}
        records.append(about | _estimate_record("probability", item.probability))
    return Table(
        "improvement",
        "Probability of improvement",
        ["X", "Y", f"P(X > Y) [{SIZE:.0%} interval]", "on", "n"],
        rows,
        records,
        "Probability that a run of X has a higher return than a run of Y, averaged over tasks; n is the smaller "
        "number of runs.",
        words=2,
    )


def cost_table(comparison: Comparison) -> Table:
    """Costs of each method."""
    rows, records = [], []
    timed = ["seconds"] if comparison.wall_clock else []
    for task in comparison.tasks:
        for standing in task.standings:
            mean = standing.mean
            rows.append(
                [
                    *(task.task, standing.label, f"{standing.n}{_earlier(standing, task)}"),
                    spaced(mean("links") or 0),
                    *(_flops(mean("paper_flops")), _flops(mean("full_flops"))),
                    *(hours(mean(name)) for name in timed),
                    plain(mean("memory_mb"), ".0f"),
                    _reached(standing),
                    _dense_within(standing),
                ]
            )
            about: Record = {"task": task.task, "method": standing.label, "step": standing.at, "n": standing.n}
            about |= {name: mean(name) for name in ("links", "paper_flops", "full_flops", *timed, "memory_mb")}
            about |= {"dense_return": standing.level, "steps_to_dense_return": standing.reached}
            step, value = standing.dense_within or (None, None)
            records.append(about | {"dense_step_at_these_flops": step, "dense_return_at_these_flops": value})
    return Table(
        "costs",
        "What it cost",
        [
            *("task", "method", "n", "#params", "FLOPs, paper's count", "FLOPs, full count"),
            *("wall-clock" for _ in timed),
            *("peak MB", "steps to dense return", "dense R at these FLOPs"),
        ],
        rows,
        records,
        "Means over seeds up to the step of the comparison. #params are the links of actor and critics. The paper's "
        "count is the forward and backward passes of what is trained; the full count has targets, acting and "
        "evaluation too. Steps to dense return: when the mean curve over seeds, as a mean of the last 10 "
        "evaluations, is first at the R of the dense method. Dense R at these FLOPs: how far the dense method came "
        "with as many by the paper's count, as the mean of the last 10 evaluations until there.",
        words=2,
    )


def _reached(standing: Standing) -> str:
    if standing.reference is None:
        return "–"
    if standing.reached is None:
        return "not reached"
    return f"{steps_text(standing.reached)} ({standing.reached / standing.at:.0%})" if standing.at else "0"


def _dense_within(standing: Standing) -> str:
    if standing.dense_within is None:
        return "–"
    step, value = standing.dense_within
    return f"{value:.0f} at {steps_text(step)}"


def _flops(value: float | None) -> str:
    return plain(value, ".3e")


def _std(std: float | None, form: str) -> str:
    return "" if std is None else f" ± {std:{form}}"


def _estimate(item: Estimate, form: str) -> str:
    interval = "[–]" if item.low is None or item.high is None else f"[{item.low:{form}}, {item.high:{form}}]"
    return f"{item.value:{form}} {interval}"


def _estimate_record(name: str, item: Estimate) -> Record:
    return {name: item.value, "low": item.low, "high": item.high, "n": item.n}


def _tasks(tasks: Sequence[str]) -> str:
    return tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
