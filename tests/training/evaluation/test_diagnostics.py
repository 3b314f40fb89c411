"""Diagnostics: counted by hand, without effect on training, the same after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from rewirl.nn import Network, batch_of
from rewirl.storage import start
from rewirl.storage.logs.tables import parse
from rewirl.topology import Links
from rewirl.training import Run, run_log
from rewirl.training.evaluation.diagnostics import Liveness, diagnose, effective_rank, liveness
from rewirl.training.measurements import DiagnosticsRow


def test_dead_and_dormant_neurons_of_a_network_computed_by_hand() -> None:
    net = Network([Links.dense(1, 4), Links.dense(4, 1)], np.random.default_rng(0))
    #                         weights of four neurons, their biases, then the output
    net.set_parameters(np.array([1, -1, 0.01, 0, 0, 0, 0, -3, 1, 1, 1, 1, 0], dtype=np.float32))
    net.forward(batch_of(np.array([[1, 2, 3]], dtype=np.float32)))
    (outputs,) = net.hidden_outputs()
    assert outputs == pytest.approx(np.array([[1, 2, 3], [0, 0, 0], [0.01, 0.02, 0.03], [0, 0, 0]]))
    # The layer's mean is (2 + 0 + 0.02 + 0) / 4 = 0.505, so 0.0126 is the limit: the third neuron is not dormant ...
    assert liveness(outputs) == Liveness(dead=2, dormant=2)
    # ... until it is half as active.
    assert liveness(outputs * np.array([[1], [1], [0.5], [1]], dtype=np.float32)) == Liveness(dead=2, dormant=3)
    assert liveness(outputs * 0) == Liveness(dead=4, dormant=4)


@pytest.mark.parametrize("shape", [(30, 80), (80, 30)])
def test_effective_rank_of_matrices_of_known_rank(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 7)))[0] for n in shape)
    assert effective_rank((left @ right.T).astype(np.float32)) == 7
    # Singular values 1000, 1, 1, …: the first one is 99.4% of all.
    assert effective_rank((left * [1000, 1, 1, 1, 1, 1, 1] @ right.T).astype(np.float32)) == 1
    # 100, 1, …: six are 99.06%, five 98.1%.
    assert effective_rank((left * [100, 1, 1, 1, 1, 1, 1] @ right.T).astype(np.float32)) == 6
    assert effective_rank(np.zeros(shape, dtype=np.float32)) == 0


def test_rows_of_a_run(tmp_path: Path) -> None:
    with start(tiny.config(layer_norm=True), tmp_path / "run") as run:
        run.train()
        again = diagnose(run.agent, run.loop.replay, run.config.seed, run.step)
    rows = parse(DiagnosticsRow, (tmp_path / "run" / "diagnostics.csv").read_bytes())
    assert rows == run.diagnostics
    layers = [(name, layer) for name in ("actor", "critic1", "critic2") for layer in (1, 2, 3)]
    assert [(row.step, row.network, row.layer) for row in rows] == [
        (step, *layer) for step in (0, 150, 300, 450, 600) for layer in layers
    ]
    first, last = rows[:9], rows[-9:]
    assert {name for row in first for name in row.measured()} == {"link_age", "q_bias"}, "there is no transition yet"
    names = {"gradient_norm", "link_age"}
    assert set(last[0].measured()) == names | {"dead", "dormant"}
    assert set(last[1].measured()) == names | {"dead", "dormant", "effective_rank"}
    assert set(last[2].measured()) == names
    assert set(last[5].measured()) == names | {"q_bias"}
    assert [(row.dead, row.effective_rank) for row in again] == [(row.dead, row.effective_rank) for row in last]
    assert all(0 < (row.link_age or 0) < 500 for row in last[3:5]), "some links are younger than the critic"


def test_training_does_not_depend_on_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> Run:
        with start(tiny.config(method="rigl-sac")) as run:
            run.train()
        return run

    def same(a: Any, b: Any) -> bool:
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)

    diagnosed = trained()
    monkeypatch.setattr(run_log, "diagnose", lambda *_: [])
    monkeypatch.setattr(run_log, "critics_of", lambda _: {})
    alone = trained()
    assert diagnosed.diagnostics
    assert not alone.diagnostics
    assert same(diagnosed.agent.state(), alone.agent.state())
    assert [row.return_mean for row in diagnosed.evaluations] == [row.return_mean for row in alone.evaluations]
