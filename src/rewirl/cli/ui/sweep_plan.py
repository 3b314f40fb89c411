"""The plan of a sweep: runs, hours and disk space; and the costs of agents, without training."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType

from rewirl.cli.ui.run_plan import remarks, sizes
from rewirl.cli.ui.tables import count, size, table
from rewirl.experiments import Grid, Job, Plan
from rewirl.experiments.sweep.calibration import Calibration, calibrate, kind_of
from rewirl.training.config import RunConfig
from rewirl.training.observers.pace import duration

Known = dict[RunConfig, Calibration]
"""Costs of runs with the same cost per step."""


def check(plan: Plan) -> None:
    """Refuses a task that does not exist or that cannot be wired as a run requires."""
    for kind in dict.fromkeys(kind_of(job.config) for job in plan.jobs):
        sizes(kind)


def measured(plan: Plan, console: Console) -> Known:
    """Measures a few seconds of each kind of run, in memory."""
    kinds = list(dict.fromkeys(kind_of(job.config) for job in plan.jobs if job.state != "done"))
    found = {}
    with console.status("Measuring each kind of run") as status:
        for number, kind in enumerate(kinds, start=1):
            status.update(f"Measuring each kind of run: {kind.method} on {kind.task} ({number} of {len(kinds)})")
            found[kind] = calibrate(kind)
    return found


def shown_plan(plan: Plan, known: Known, jobs: int | None, cores: int | None = None) -> RenderableType:
    """The output of `--dry-run`; more jobs than cores are not faster."""
    numbers = ("steps", "runs", "done", "to resume", "new", "hours each", "disk each")
    rows = table("task", "method", "variant", *numbers, right=numbers)
    for alike in _groups(plan):
        first = alike[0]
        cost = known.get(kind_of(first.config))
        states = [sum(job.state in group for job in alike) for group in (("done",), ("cut", "elsewhere"), ("new",))]
        hours = f"{cost.seconds(first.config) / 3600:.2f}" if cost else "–"
        disk = size(cost.kept_bytes(first.config)) if cost else "–"
        config = first.config
        counts = [f"{config.steps:,}", *map(str, (len(alike), *states)), hours, disk]
        rows.add_row(config.task, config.method, first.run.label or "–", *counts)
    return Group(rows, *_totals(plan, known, jobs, cores), *_remarks(plan))


def _groups(plan: Plan) -> list[list[Job]]:
    """Runs that differ only in their seed."""
    groups: dict[tuple[str, str, str], list[Job]] = {}
    for job in plan.jobs:
        groups.setdefault((job.config.task, job.run.label, job.config.method), []).append(job)
    return list(groups.values())


def _totals(plan: Plan, known: Known, jobs: int | None, cores: int | None) -> Iterator[str]:
    left = [(job, known[kind_of(job.config)]) for job in plan.jobs if job.state != "done"]
    yield f"{count(len(plan.jobs), 'run')} in {plan.folder}: {plan.count('done')} done, {len(left)} to do."
    if not left:
        return
    seconds = [cost.seconds(job.config, job.step) for job, cost in left]
    words = f"Time     {sum(seconds) / 3600:,.1f} hours on one core"
    if jobs is not None:
        # At least the time of the longest chain: a run that starts from another's policy follows it.
        longest = max(_with_source(job, known) for job, _ in left)
        together = max(sum(seconds) / min(jobs, cores or jobs, len(left)), longest)
        words += f", {duration(together)} with {jobs} at a time"
    yield words + "; evaluations are assumed to have full length."
    kept = sum(cost.kept_bytes(job.config) for job, cost in left)
    replays = sorted((cost.replay_bytes(job.config) for job, cost in left), reverse=True)
    second = max(cost.state for _, cost in left)
    open_at_once = len(left) if jobs is None else min(jobs, len(left))
    peak = kept + sum(replays[:open_at_once]) + open_at_once * second
    yield f"Disk     {size(kept)} at the end, at most {size(peak)} while running (with replays)."


def _with_source(job: Job, known: Known) -> float:
    own = 0.0 if job.state == "done" else known[kind_of(job.config)].seconds(job.config, job.step)
    return own + (_with_source(job.source, known) if job.source else 0.0)


def _remarks(plan: Plan) -> Iterator[str]:
    return iter(dict.fromkeys(text for job in plan.jobs for text in remarks(job.config)))


def shown_costs(grid: Grid) -> RenderableType:
    """#params and FLOPs of every method and task, by the paper's count and by the full count."""
    numbers = ("#params", "of dense", "sparsity", "FLOPs (paper)", "× dense", "FLOPs (full)", "× dense ")
    rows = table("task", "method", "λ", *numbers, right=numbers)
    for run in grid.runs():
        config = run.config
        n_obs, actions = sizes(config)
        cost = config.costs(n_obs, actions)
        dense = cost.dense()
        acted = max(config.steps - config.random_steps, 0)
        paper, full = ((c.paper_flops(config.steps), c.full_flops(config.updates, acted)) for c in (cost, dense))
        lambdas = " ".join(f"{value:g}" for value in config.lambdas or ()) or "–"
        cells = [f"{cost.links:,}", f"{cost.dense_links:,}", f"{cost.sparsity:.1%}"]
        cells += [f"{paper[0]:.4e}", f"{paper[0] / full[0]:.4f}", f"{paper[1]:.4e}", f"{paper[1] / full[1]:.4f}"]
        rows.add_row(config.task, config.method, lambdas, *cells)
    steps = grid.values.get("steps", RunConfig.steps)
    return Group(
        rows,
        f"#params: weights of all networks that learn. FLOPs are for {steps:,} steps. The paper's count: forward and",
        "backward of what is trained, an update at every step. The full count: the targets, the critics inside the",
        "actor's loss and every action too, without updates in the random steps. Evaluations are left out.",
    )
