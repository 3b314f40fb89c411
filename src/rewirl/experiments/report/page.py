"""The HTML page: one self-contained file for any screen, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewirl.experiments.analysis.aggregates import Aggregates
from rewirl.experiments.analysis.comparison import Comparison, TaskComparison
from rewirl.experiments.analysis.number_format import spaced, steps_text
from rewirl.experiments.analysis.ratios import Ratios, headline, ratios
from rewirl.experiments.analysis.wiring.study import WiringStudy
from rewirl.experiments.paper.published import STEPS, in_paper
from rewirl.experiments.report.elements import asset, card, count, id_of, items, options, plot, swatch, text
from rewirl.experiments.report.figures import cost_axes, diagnosed_columns, file_name
from rewirl.experiments.report.headline import sentences
from rewirl.experiments.report.provenance import commands_of, facts
from rewirl.experiments.report.style import Ink
from rewirl.experiments.report.tables.table import Table

SHOWN_NOTES = 6
"""Number shown before the rest is collapsed."""


class Page:
    """Puts the page together from its parts."""

    def __init__(
        self,
        comparison: Comparison,
        aggregates: Aggregates,
        wiring: Sequence[WiringStudy],
        tables: Sequence[Table],
        inks: Mapping[str, Ink],
        notes: Sequence[str],
    ) -> None:
        self.comparison, self.aggregates, self.wiring, self.notes = comparison, aggregates, wiring, notes
        self.tables = {table.name: table for table in tables}
        self.inks = inks

    def html(self, title: str, about: str, data: str, plotly: str) -> str:
        """The whole file."""
        sections = {
            "Summary": self._summary(),
            "Learning curves": self._curves(),
            self._name_of_tables(): self._tables("return", "lca"),
            "Statistics": self._statistics(),
            "Cost": self._cost(),
            "Diagnostics": self._diagnostics(),
            "Wiring": self._wiring(),
            "Reproduce": self._reproduce(about),
        }
        sections = {name: content for name, content in sections.items() if content}
        links = "".join(f'<a href="#{id_of(name)}">{name}</a>' for name in sections)
        body = "".join(
            f'<section id="{id_of(name)}"><h2>{name}</h2>{content}</section>' for name, content in sections.items()
        )
        return (
            '<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width, '
            f'initial-scale=1"><title>{text(title)}</title><link rel=icon href="data:,"><style>{asset("page.css")}'
            f"</style></head><body><a class=skip href=#main>To the content</a><header><div class=bar><h1>{text(title)}"
            f'</h1><button id=theme type=button aria-label="Light or dark"></button></div><p>{self._about()}</p>'
            f'</header><nav aria-label="Sections">{links}</nav><main id=main>{body}</main>'
            f"<footer>Made by rewirl. The figures and tables are in the folders beside this file.</footer>"
            f"<noscript><p>The plots need JavaScript; the folder figures has them as pictures.</p></noscript>"
            f'<script type="application/json" id=data>{data}</script><script>{plotly}</script>'
            f"<script>{asset('page.js')}</script></body></html>"
        )

    def _name_of_tables(self) -> str:
        tasks = self.comparison.tasks
        return "The paper's tables" if all(in_paper(task.task) for task in tasks) else "Returns and learning speed"

    def _about(self) -> str:
        runs, tasks, labels = self.comparison.runs, self.comparison.tasks, self.comparison.labels
        steps = sorted({task.at for task in tasks})
        at = steps_text(steps[0]) if len(steps) == 1 else f"{steps_text(steps[0])} to {steps_text(steps[-1])}"
        return (
            f"{count(len(runs), 'run')} of {count(len(labels), 'method')} on {count(len(tasks), 'task')}, "
            f"compared at {at} steps"
        )

    def _summary(self) -> str:
        best = headline(ratios(self.comparison))
        if best is None:
            found = (
                "<p>No sparse method has runs together with its dense counterpart, so there is no ratio to show.</p>"
            )
        else:
            found = _tiles(best)
        return f"{found}{self._notes()}{self._tables('summary')}"

    def _notes(self) -> str:
        if not self.notes:
            return "<p class=fine>Every method has every seed, and every run is complete.</p>"
        shown = items(self.notes[:SHOWN_NOTES])
        more = self.notes[SHOWN_NOTES:]
        folded = f"<details><summary>{len(more)} more</summary>{items(more)}</details>" if more else ""
        return f"<aside class=notes><h3>Before you read</h3>{shown}{folded}</aside>"

    def _curves(self) -> str:
        cards = "".join(
            card(
                task.task,
                f"{self._legend(task)}{plot('curve', f'Return on {task.task} against steps', task=number, x='step')}",
                f"curves-{file_name(task.task)}",
            )
            for number, task in enumerate(self.comparison.tasks)
        )
        return (
            "<p>Mean return over seeds, with a band of one standard deviation. Runs are smoothed: each point is the "
            "mean of the last evaluations, a tenth of all and at most 10, as in the return R of the tables. A click on "
            "a method hides it everywhere, a double click hides all others. Drag over a plot to zoom in, double-click "
            "it to see all again.</p>"
            "<p class=switches><label class=switch><input type=checkbox id=raw> raw data, not smoothed</label>"
            "<label class=switch><input type=checkbox id=seeds> every seed</label></p>"
            f"<div class=cards>{cards}</div>"
        )

    def _legend(self, task: TaskComparison) -> str:
        chips = "".join(
            f'<button type=button class=chip data-label="{text(group.label)}" aria-pressed=true>'
            f"{swatch(self.inks[group.label])}{text(group.label)} <small>{text(group.n_text)}</small>"
            "</button>"
            for group in task.groups
        )
        return f'<div class=legend role=group aria-label="Methods on {text(task.task)}">{chips}</div>'

    def _all_methods(self) -> str:
        """A legend without numbers of runs, for plots that show them in another place."""
        chips = "".join(
            f'<button type=button class=chip data-label="{text(label)}" aria-pressed=true>{swatch(ink)}{text(label)}'
            "</button>"
            for label, ink in self.inks.items()
        )
        return f"<div class=legend role=group aria-label=Methods>{chips}</div>"

    def _tables(self, *names: str) -> str:
        return "".join(self.tables[name].html() for name in names if name in self.tables)

    def _statistics(self) -> str:
        plots = ""
        if self.aggregates.iqm:
            over = count(len(self.aggregates.tasks), "task")
            plots = (
                f"{self._all_methods()}<div class=cards>"
                + card(f"IQM over {over}", plot("iqm", "Interquartile means of the normalised return"), "aggregate")
                + card("Performance profiles", plot("profile", "Share of runs above each score"), "aggregate")
                + "</div>"
            )
        normalised = " A normalised return of 0 is the untrained agent, 1 the dense one." if plots else ""
        return (
            "<p>The interquartile mean (IQM) leaves out the lowest and the highest quarter of runs. Intervals are 95% "
            f"percentiles of a bootstrap that resamples seeds within each task.{normalised}</p>"
            f"{plots}{self._tables('aggregate', 'improvement', 'intervals')}"
        )

    def _cost(self) -> str:
        choices = options("Task", "cost-task", [task.task for task in self.comparison.tasks])
        axes = cost_axes(self.comparison)
        if not axes:
            return self._tables("costs")
        plots = "".join(
            card(name, plot("curve", f"Return against {name}", task=0, x=x, chosen="cost-task"))
            for x, name in axes.items()
        )
        return (
            f"<p>The same returns against their costs. {_figure_links('efficiency-', self.comparison.tasks)}</p>"
            f"<div class=controls>{choices}{self._all_methods()}</div>"
            f"<div class=cards>{plots}</div>{self._tables('costs')}"
        )

    def _diagnostics(self) -> str:
        tasks = [task for task in self.comparison.tasks if diagnosed_columns(task)]
        if not tasks:
            return ""
        names = {column: name for task in tasks for column, name in diagnosed_columns(task).items()}
        choices = options("Task", "diagnosed-task", [task.task for task in self.comparison.tasks])
        plots = "".join(
            card(name[0].upper() + name[1:], plot("diagnostic", f"{name} against steps", column=column))
            for column, name in names.items()
        )
        return (
            "<p>Dormant: the share of hidden neurons whose mean activity is at most 2.5% of their layer's, dead ones "
            "included. Effective rank: of the outputs of the last hidden layer. Critic bias: predicted values minus "
            "the discounted returns of the evaluation episodes. Means over seeds, with a band of one standard "
            "deviation. "
            f"{_figure_links('diagnostics-', tasks)}</p>"
            f"<div class=controls>{choices}{self._all_methods()}</div><div class=cards>{plots}</div>"
        )

    def _wiring(self) -> str:
        if not self.wiring:
            return ""
        names = list(dict.fromkeys(f"{study.label} on {study.task}" for study in self.wiring))
        networks = list(dict.fromkeys(study.network for study in self.wiring))
        controls = options("Method", "wiring-method", names) + options("Network", "wiring-network", networks)
        degrees = "".join(plot("degrees", "Distribution of degrees", part=part) for part in range(4))
        return (
            "<p>The links at every evaluation, averaged over seeds (and over the two critics).</p>"
            f"<div class=controls>{controls}<span class=n-text id=wiring-n></span></div>"
            + card("Links per input feature", plot("heat", "Links of each input feature over training"))
            + "<div class=cards>"
            + card(
                "Share of links of at least this age",
                plot("ages", "Share of links older than some steps, over training")
                + "<p class=note>A link that was dropped and grown again between two evaluations counts as having "
                "stayed.</p>",
            )
            + card("Degrees, at the start and at the end", f"<div class=small-plots>{degrees}</div>{_DEGREES}")
            + "</div>"
        )

    def _reproduce(self, about: str) -> str:
        runs = self.comparison.runs
        commands = "\n".join(commands_of(runs))
        rows = [
            ("This report", f"<code>{text(about)}</code>"),
            *((text(name), text(value)) for what in ("versions", "machine") for name, value in facts(runs, what)),
        ]
        table = "".join(f"<tr><th scope=row>{name}<td>{value}" for name, value in rows)
        return (
            "<h3>Versions and machine of the runs</h3>"
            f"<div class=scroll tabindex=0><table class=facts>{table}</table></div>"
            f"<h3>Commands</h3><p>Options that are not listed have the method's defaults, which are the paper's.</p>"
            f'<pre class=scroll tabindex=0 aria-label="Commands">{text(commands)}</pre>{self._tables("runs")}'
            f"{_definitions(self.comparison)}"
        )


def _figure_links(prefix: str, tasks: Iterable[TaskComparison]) -> str:
    links = [f'<a href="figures/{prefix}{file_name(task.task)}.pdf">{text(task.task)}</a>' for task in tasks]
    return f"For print: {', '.join(links)}."


_DEGREES = (
    "<p class=note>Share of neurons by their number of links: <i class=first></i> at the first evaluation, "
    "<i class=last></i> at the last.</p>"
)


def _tiles(item: Ratios) -> str:
    """The main finding."""
    over = item.tasks[0] if len(item.tasks) == 1 else f"{len(item.tasks)} tasks (geometric means)"
    tiles = "".join(
        f"<p class=tile>{text(said.before)}<b>{text(said.number)}</b>{text(said.after)}</p>" for said in sentences(item)
    )
    return (
        f"<p class=lead><b>{text(item.label)}</b> against <b>{text(item.reference)}</b> on {text(over)} at "
        f"{steps_text(item.at)} steps, n = {item.n} and {item.reference_n} runs:</p><div class=tiles>{tiles}</div>"
    )


def _definitions(comparison: Comparison) -> str:
    terms = {
        "Return R": "mean of the last 10 evaluations up to the step of the comparison; an evaluation is the mean of "
        "its episodes, without exploration noise",
        "LCA": "mean of all evaluations, including the one before training; tables print it divided by 5 000",
        "std": "over seeds, with ddof = 0; bands in the plots are the same at each step, of smoothed runs",
        "n": "runs with different seeds; at each step of a mean curve, the runs that reached it",
        "Steps to the dense return": "the first evaluation at which the mean curve over seeds, smoothed by the mean of "
        "its last 10 evaluations, is at the dense method's R",
        "Dense R at these FLOPs": "how far the dense method came with as many FLOPs as the method took, by the paper's "
        "count: the mean of its last 10 evaluations until there, and the step",
        "Peak memory": "the most that the process held of its own at an evaluation, without the replay file",
        "Intervals": f"percentile bootstrap with seed {comparison.seed}, seeds drawn within each task",
        "Paper": f"Sokar et al., IJCAI 2022: the -v3 tasks at {spaced(STEPS)} steps, mean ± std over 5 seeds",
    }
    rows = "".join(f"<dt>{text(name)}<dd>{text(meaning)}" for name, meaning in terms.items())
    return f"<h3>Definitions</h3><dl>{rows}</dl>"
