"""The table of a report's summary."""

from __future__ import annotations

from rewirl.experiments.analysis.comparison import Comparison
from rewirl.experiments.analysis.number_format import ratio, steps_text
from rewirl.experiments.analysis.ratios import Ratios, over_tasks, ratios
from rewirl.experiments.report.headline import shown
from rewirl.experiments.report.tables.table import Record, Table


def summary_table(comparison: Comparison) -> Table:
    """Every sparse method against its dense counterpart."""
    each = ratios(comparison)
    together = [item for item in over_tasks(each) if len(item.tasks) > 1]
    rows: list[list[str]] = []
    records, bold = [], set()
    timed = ["wall-clock"] if comparison.wall_clock else []
    columns = ["method", "task", "steps", "n", "return", "LCA", "reaches dense return at", "links", "FLOPs", *timed]
    columns.append("memory")
    for item in sorted([*together, *each], key=lambda item: (not item.label.startswith("ds-"), item.label)):
        if len(item.tasks) > 1:
            bold |= {(len(rows), column) for column in range(len(columns))}
        where = item.tasks[0] if len(item.tasks) == 1 else f"{len(item.tasks)} tasks together"
        rows.append(
            [
                *(f"{item.label} / {item.reference}", where, steps_text(item.at), f"{item.n} / {item.reference_n}"),
                *(_return_ratio(item), ratio(item.lca), _reaches(item)),
                *(ratio(value) for value in (item.links, item.paper_flops)),
                *([ratio(item.seconds)] if timed else []),
                ratio(item.memory_mb),
            ]
        )
        records.append(_summary_record(item, timed=bool(timed)))
    return Table(
        "summary",
        "Sparse against dense",
        columns,
        rows,
        records,
        "Ratios of means over seeds, at the last step that both methods reached; over several tasks (bold) their "
        "geometric mean. Returns that are not positive have no ratio: their difference is given. FLOPs by the paper's "
        "count.",
        frozenset(bold),
        words=2,
    )


def _return_ratio(item: Ratios) -> str:
    if item.final_return is not None or len(item.tasks) > 1:
        return ratio(item.final_return)
    ((mine, dense),) = item.returns
    return f"{'+' if mine >= dense else '−'}{shown(abs(mine - dense))}"


def _reaches(item: Ratios) -> str:
    if item.share_of_steps is not None:
        return f"{item.share_of_steps:.0%} of the steps"
    return "not reached" if len(item.tasks) == 1 else f"on {item.reached} of {len(item.tasks)}"


def _summary_record(item: Ratios, *, timed: bool) -> Record:
    record = {**vars(item), "tasks": " ".join(item.tasks)}
    (record["return"], record["reference_return"]) = item.returns[0] if len(item.tasks) == 1 else (None, None)
    return {name: value for name, value in record.items() if name != "returns" and (timed or name != "seconds")}
