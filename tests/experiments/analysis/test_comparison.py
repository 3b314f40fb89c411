"""Methods compared at one step, and never in silence about what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import write_run

from rewirl.errors import Refused
from rewirl.experiments.analysis.aggregates import aggregate
from rewirl.experiments.analysis.comparison import Comparison, compare
from rewirl.experiments.analysis.ratios import headline, over_tasks, ratios
from rewirl.experiments.analysis.trained_runs import load

STEPS = 200_000
LINE = np.arange(41.0)
"""A return that rises by 1 at each evaluation."""


def compared(folder: Path, **given: Any) -> Comparison:
    return compare(load([folder]), **given)


def pair(folder: Path, task: str = "HalfCheetah-v5", seeds: int = 3, gain: float = 2.0) -> None:
    """td3, and ds-td3 that is better by a factor."""
    for seed in range(1, seeds + 1):
        for method, factor in (("td3", 1.0), ("ds-td3", gain)):
            name = folder / task / f"{method}-{seed}"
            write_run(name, LINE * factor + seed, method=method, task=task, seed=seed, steps=STEPS)


def test_sparse_against_dense(tmp_path: Path) -> None:
    pair(tmp_path)
    comparison = compared(tmp_path)
    (task,) = comparison.tasks
    assert task.at == STEPS
    assert comparison.notes == ()
    (found,) = ratios(comparison)
    dense, sparse = LINE[-10:].mean() + 2, 2 * LINE[-10:].mean() + 2
    assert found.final_return == pytest.approx(sparse / dense)
    assert found.links == pytest.approx(106_169 / 214_784)
    assert found.paper_flops == pytest.approx(0.4918, abs=1e-4)
    assert found.seconds is None, "nobody said that the runs were timed alone"
    (timed,) = ratios(compared(tmp_path, wall_clock=True))
    assert timed.seconds == 1
    # The mean of ten points of 2 x + 2 is at 37.5 where x is 17.75 in the middle: first at evaluation 23.
    assert found.share_of_steps == pytest.approx(23 / 40)
    assert (found.n, found.reference_n) == (3, 3)


def test_the_dense_return_at_the_flops_of_the_sparse(tmp_path: Path) -> None:
    """Half of the FLOPs: the dense runs had taken as many when half of their updates were made."""
    rising = np.linspace(0, 1000, 61)
    for seed in (1, 2):
        write_run(tmp_path / f"td3-{seed}", rising * seed, method="td3", seed=seed, steps=300_000)
        write_run(tmp_path / f"ds-{seed}", rising, method="ds-td3", seed=seed, steps=300_000)
    (task,) = compare(load([tmp_path])).tasks
    assert task["td3"].dense_within is None
    sparse, dense = task["ds-td3"].metrics[0], task["td3"].metrics[0]
    assert (place := task["ds-td3"].dense_within)
    updates = 275_000 * sparse.paper_flops / dense.paper_flops
    assert place[0] == 160_000 == (25_000 + updates) // 5000 * 5000
    assert place[1] == pytest.approx(np.mean([rising[23:33].mean() * seed for seed in (1, 2)]))


def test_flops_that_were_not_logged_are_not_compared(tmp_path: Path) -> None:
    for method in ("td3", "ds-td3"):
        write_run(tmp_path / method, lambda steps: steps, method=method, steps=50_000, columns=["step", "return_mean"])
    (task,) = compare(load([tmp_path])).tasks
    assert task["ds-td3"].dense_within is None


def test_missing_seeds_are_said(tmp_path: Path) -> None:
    pair(tmp_path, seeds=5)
    for seed in (2, 5):
        for file in (tmp_path / "HalfCheetah-v5" / f"ds-td3-{seed}").iterdir():
            file.unlink()
    comparison = compared(tmp_path)
    assert "Missing seeds 2, 5: ds-td3 on HalfCheetah-v5 (n = 3 of 5)." in comparison.notes
    assert comparison.tasks[0]["ds-td3"].n == 3
    assert comparison.tasks[0]["ds-td3"].group.n_text == "n = 3"


SHORTER = {
    "a seed": {"method": "td3", "seed": 4},
    "a variant": {"method": "ds-td3", "seed": 1, "weight_decay": 0.0},
    "a dense variant": {"method": "td3", "seed": 1, "weight_decay": 0.0},
    "another method": {"method": "rigl-td3", "seed": 1},
    "another algorithm": {"method": "ds-sac", "seed": 1},
    "another task": {"method": "ds-td3", "seed": 1, "task": "Hopper-v5"},
}


@pytest.mark.parametrize("upto", [None, 120_000], ids=["finished", "stopped"])
@pytest.mark.parametrize("name", SHORTER)
def test_a_shorter_run_never_changes_the_headline(tmp_path: Path, name: str, upto: int | None) -> None:
    pair(tmp_path)
    before = headline(ratios(compared(tmp_path)))
    more = SHORTER[name]
    for method in {"td3", more["method"], more["method"].replace("ds-", "")} if "task" in more else {more["method"]}:
        returns = np.full(25, 1e4)
        given = {**more, "method": method, "steps": STEPS if upto else 120_000}
        write_run(tmp_path / f"short-{method}", returns, upto=upto, **given)
    comparison = compared(tmp_path)
    assert headline(ratios(comparison)) == before
    assert before
    assert (before.at, before.label, before.reference) == (STEPS, "ds-td3", "td3")
    if name == "a seed":
        (note,) = (note for note in comparison.notes if "did not reach step 200" in note)
        assert note.endswith("td3 seed 4 on HalfCheetah-v5. All runs can be compared at step 120000.")


def test_a_method_that_is_shorter_is_compared_where_both_are(tmp_path: Path) -> None:
    """And named by what sets it apart from the one that is not."""
    pair(tmp_path)
    for seed in (1, 2, 3):
        given = {"method": "ds-td3", "seed": seed, "steps": STEPS, "weight_decay": 0.0}
        write_run(tmp_path / f"short-{seed}", LINE[:25] * 3, upto=120_000, **given)
    comparison = compared(tmp_path)
    (task,) = comparison.tasks
    assert (task.at, [standing.at for standing in task.standings]) == (STEPS, [STEPS, STEPS, 120_000])
    found = {item.label: item for item in ratios(comparison)}["ds-td3 weight_decay=0"]
    assert found.at == 120_000
    assert found.final_return == pytest.approx(3 * LINE[15:25].mean() / (LINE[15:25].mean() + 2))
    assert list(aggregate(comparison).iqm) == ["td3", "ds-td3"]
    label = "ds-td3 weight_decay=0"
    assert [note for note in comparison.notes if label in note] == [
        f"Not finished, at 120k of 200k steps (stopped): {label} seeds 1, 2, 3 on HalfCheetah-v5.",
        "Compared at step 120\N{NARROW NO-BREAK SPACE}000, the last that they and their dense counterparts reached: "
        f"{label} on HalfCheetah-v5.",
    ]


def test_the_same_note_is_given_once(tmp_path: Path) -> None:
    for task in ("HalfCheetah-v5", "Hopper-v5"):
        pair(tmp_path, task)
        for method in ("td3", "static-td3"):
            write_run(
                tmp_path / task / f"{method}-4", LINE[:25], method=method, task=task, seed=4, steps=STEPS, upto=120_000
            )
    notes = compared(tmp_path).notes
    assert "Missing seed 4: ds-td3 on HalfCheetah-v5 (n = 3 of 4), ds-td3 on Hopper-v5 (n = 3 of 4)." in notes
    (stopped,) = (note for note in notes if note.startswith("Not finished"))
    assert stopped == (
        "Not finished, at 120k of 200k steps (stopped): td3 seed 4 on HalfCheetah-v5, static-td3 seed 4 on "
        "HalfCheetah-v5, td3 seed 4 on Hopper-v5, static-td3 seed 4 on Hopper-v5."
    )
    assert len({note.split(":")[0] for note in notes}) == len(notes)


def test_a_step_may_be_chosen(tmp_path: Path) -> None:
    pair(tmp_path)
    write_run(tmp_path / "short", LINE[:25] + 4, method="td3", seed=4, steps=STEPS, upto=120_000)
    comparison = compared(tmp_path, at=120_000)
    (task,) = comparison.tasks
    assert (task.at, task["td3"].n) == (120_000, 4)
    assert task["ds-td3"].returns.tolist() == [2 * LINE[15:25].mean() + seed for seed in (1, 2, 3)]
    comparison = compared(tmp_path, at=STEPS)
    (task,) = comparison.tasks
    assert (task.at, task["td3"].n, len(task.groups[0].runs)) == (STEPS, 3, 4)
    assert any(
        "did not reach step 200" in note and note.endswith("td3 seed 4 on HalfCheetah-v5.") for note in comparison.notes
    )
    with pytest.raises(Refused, match="no run reached step 900000"):
        compared(tmp_path, at=900_000)


def test_returns_that_are_not_positive_have_no_ratio(tmp_path: Path) -> None:
    for method, level in (("td3", -163.0), ("ds-td3", -152.0)):
        write_run(tmp_path / method, np.full(41, level), method=method, task="Pendulum-v1", steps=STEPS)
    (found,) = ratios(compared(tmp_path))
    assert (found.final_return, found.returns, found.reached) == (None, ((-152.0, -163.0),), 1)


def test_different_evaluations_are_said(tmp_path: Path) -> None:
    write_run(tmp_path / "a", LINE, seed=1, steps=STEPS)
    write_run(tmp_path / "b", LINE[:21], seed=2, steps=STEPS, eval_every=10_000, eval_episodes=3)
    notes = " ".join(compared(tmp_path).notes)
    assert "evaluated differently, every 5" in notes
    assert "and every 10" in notes
    assert "mean curves have the steps that their runs share" in notes
    assert "with 3 episodes and with 10 episodes" in notes


def test_few_evaluations_are_said(tmp_path: Path) -> None:
    write_run(tmp_path / "a", LINE[:5], steps=20_000)
    assert "R is the mean of 5 evaluations, because there are no 10 yet: HalfCheetah-v5." in compared(tmp_path).notes


def test_over_tasks(tmp_path: Path) -> None:
    pair(tmp_path, "HalfCheetah-v5", gain=2.0)
    pair(tmp_path, "Hopper-v5", gain=0.5)
    comparison = compared(tmp_path)
    assert [task.task for task in comparison.tasks] == ["HalfCheetah-v5", "Hopper-v5"]
    each = ratios(comparison)
    (together,) = over_tasks(each)
    assert together.final_return == pytest.approx(np.sqrt(each[0].final_return * each[1].final_return))
    assert together.share_of_steps is None, "it is not reached on Hopper"
    found = aggregate(comparison)
    assert found.tasks == ("HalfCheetah-v5", "Hopper-v5")
    assert found.iqm["td3"].value == pytest.approx(1, abs=0.02)
    assert found.iqm["td3"].n == 6
    (improvement,) = found.improvements
    assert improvement.probability.value == 0.5, "always better on one task, never on the other"
    assert found.profiles["td3"].share[0] == 1


def test_luck_before_the_tenth_evaluation_reaches_nothing(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.0] * 10 + [5.0] * 10, method="td3", steps=95_000)
    write_run(tmp_path / "b", [20.0] + [0.0] * 8 + [5.0] * 11, method="ds-td3", steps=95_000)
    each = ratios(compared(tmp_path))
    assert [item.share_of_steps for item in (*each, *over_tasks(each))] == pytest.approx([18 / 19] * 2)


def test_a_method_without_all_tasks_is_left_out_of_what_is_over_tasks(tmp_path: Path) -> None:
    pair(tmp_path, "HalfCheetah-v5")
    pair(tmp_path, "Hopper-v5")
    write_run(tmp_path / "more", LINE, method="static-td3", seed=1, steps=STEPS)
    found = aggregate(compared(tmp_path))
    assert list(found.iqm) == ["td3", "ds-td3"]
    assert "static-td3 is left out of results over tasks: it has no run to compare on Hopper-v5." in found.notes
    assert ("ds-td3", "static-td3") in {(item.label, item.other) for item in found.improvements}


def test_different_numbers_of_runs_weigh_and_are_said(tmp_path: Path) -> None:
    pair(tmp_path, "HalfCheetah-v5", seeds=3)
    pair(tmp_path, "Hopper-v5", seeds=2)
    assert any("3 on HalfCheetah-v5, 2 on Hopper-v5" in note for note in aggregate(compared(tmp_path)).notes)


def test_a_dense_method_that_learned_nothing_gives_no_scores(tmp_path: Path) -> None:
    write_run(tmp_path / "a", np.zeros(41), method="td3", steps=STEPS)
    found = aggregate(compared(tmp_path))
    assert found.iqm == {}
    assert "no normalised scores" in found.notes[0]


def test_the_papers_figures_stand_only_beside_the_papers_settings(tmp_path: Path) -> None:
    write_run(tmp_path / "a", LINE, method="ds-td3", steps=STEPS)
    write_run(tmp_path / "b", LINE, method="ds-td3", steps=STEPS, adapt_every=200)
    write_run(tmp_path / "c", LINE, method="ds-sac", steps=STEPS, tau=1.0, target_interval=1000)
    write_run(tmp_path / "d", LINE, method="sac", steps=STEPS, tau=1.0)
    task = compared(tmp_path).tasks[0]
    assert task["ds-td3"].paper
    assert task["ds-td3 e=200"].paper is None
    assert task["ds-sac hard"].paper
    assert task["sac"].paper is None, "τ = 1 without the interval is neither of the paper's two"
