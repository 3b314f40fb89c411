"""What an inspection says is what the networks, the log and the episodes give when they are counted one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny

from rewirl.experiments.analysis.wiring.inspection import Dead, Inspection, Wired, look
from rewirl.policies import Policy, PolicyLayer
from rewirl.storage import start
from rewirl.training import EvaluationRow, Observer, Run, evaluate_policy
from rewirl.training.evaluation.rollout import watch


class Watch(Observer):
    """Keeps which links the actor's first layers had at each evaluation."""

    def __init__(self) -> None:
        self.links: list[list[set[int]]] = []

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        nets = run.agent.networks.values()
        self.links.append([set(net.links(layer).places.tolist()) for net in nets for layer in (0, 1)])


def trained(folder: Path, **given: object) -> Run:
    with start(tiny.config(**{"sparsity": 0.5, **given}), folder) as run:
        run.train()
    return run


def layer(weights: list[list[float]]) -> PolicyLayer:
    """From a matrix (outputs, inputs): a 0 is no link."""
    matrix = np.array(weights, dtype=np.float32)
    rows, columns = np.nonzero(matrix)
    indptr = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int32)
    bias = np.zeros(len(matrix), np.float32)
    return PolicyLayer(matrix.shape[1], len(matrix), indptr, columns.astype(np.int32), matrix[rows, columns], bias)


def test_dead_neurons_by_hand() -> None:
    # Of three hidden neurons the second hears nothing, the third is heard by nobody, the fourth neither.
    first = layer([[1, 0], [0, 0], [2, -3], [0, 0]])
    second = layer([[1, 1, 0, 0]])
    net = Wired("actor", None, [first, second])
    assert net.dead() == [Dead(without_input=2, without_output=2, either=3)]
    assert net.input_links().tolist() == [2, 1]
    assert net.input_weight().tolist() == [3, 3]
    assert (net.links, net.dense_links) == (5, 12)


@pytest.mark.parametrize("method", ["ds-td3", "ds-sac"])
def test_networks_and_features_are_those_of_the_agent(tmp_path: Path, method: str) -> None:
    run = trained(tmp_path / "run", method=method)
    seen = look(tmp_path / "run" / "policy.safetensors", episodes=2, seed=5)
    assert [net.name for net in seen.networks] == ["actor", "critic1", "critic2"]
    for net, own in zip(seen.networks, run.agent.networks.values(), strict=True):
        assert net.step == 600
        assert [part.links for part in net.layers] == list(own.counts)
        links = own.links(0)
        assert net.input_links().tolist() == np.bincount(links.inputs, minlength=links.n_in).tolist()
    features = seen.features()
    assert {feature.name for feature in features[:3]} == {f"observation {i}" for i in range(3)}
    assert {feature.name for feature in features[3:]} == {"action 0", "action 1"}
    weights = [feature.actor_weight for feature in features[:3]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert sum(feature.critic_weight for feature in features) == pytest.approx(1)
    assert all(feature.actor_links is None for feature in features[3:])
    assert not seen.notes


def test_the_wiring_moved_as_the_networks_did(tmp_path: Path) -> None:
    counted = Watch()
    with start(tiny.config(sparsity=0.5), tmp_path / "run", observers=[counted]) as run:
        run.train()
    movement = look(tmp_path / "run" / "policy.safetensors", episodes=0).movement
    assert movement is not None
    assert movement.steps == (0, 150, 300, 450, 600)
    assert list(movement.wiring) == [(name, i) for name in ("actor", "critic1", "critic2") for i in (0, 1)]
    for number, key in enumerate(movement.wiring):
        over_time = [links[number] for links in counted.links]
        survived = [len(over_time[0] & links) / len(over_time[0]) for links in over_time]
        np.testing.assert_allclose(movement.survived(key), survived)
        assert movement.survived(key)[-1] < 1
        n_out = movement.wiring[key].shape[2]
        reached = [len({place % n_out for place in links}) for links in over_time]
        assert movement.without_input(key).tolist() == [n_out - neurons for neurons in reached]
        places = movement.wiring[key][0].size
        assert movement.tried(key) == pytest.approx(len(set.union(*over_time)) / places)
        ages = [
            600 - min(step for i, step in enumerate(movement.steps) if all(place in links for links in over_time[i:]))
            for place in sorted(over_time[-1])
        ]
        assert movement.ages(key).tolist() == ages
    assert movement.adaptations == 25  # 500 updates, every 20
    assert movement.replaced == sum(row.links_replaced or 0 for row in run.evaluations)
    assert "25 rewirings replaced" in str(movement)


def test_the_best_policy_is_seen_as_it_was(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    assert run.best is not None
    seen = look(tmp_path / "run" / "best_policy.safetensors", episodes=0)
    assert seen.actor.step == run.best.step
    assert not seen.critics
    assert "belong to the latest policy" in seen.notes[0]
    assert seen.movement is not None
    assert seen.movement.steps[-1] == run.best.step


def test_neurons_are_those_that_the_episodes_wake(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    file = tmp_path / "run" / "policy.safetensors"
    seen = look(file, episodes=2, seed=5)
    policy = Policy.load(file)
    assert seen.activity is not None
    assert seen.activity.result == evaluate_policy(policy, "tiny/Walk-v0", episodes=2, seed=5)
    observations, _ = watch(policy, "tiny/Walk-v0", episodes=2, seed=5)
    assert len(observations) == seen.activity.result.steps
    hidden = np.array([np.maximum(policy.layers[0](x), 0) for x in observations])
    assert seen.activity.never()[0] == int((hidden == 0).all(axis=0).sum())
    np.testing.assert_allclose(seen.activity.active[0], (hidden > 0).mean(axis=0))


def test_a_dense_agent_has_no_movement(tmp_path: Path) -> None:
    trained(tmp_path / "run", method="td3", sparsity=None, eta=None, adapt_every=None)
    seen = look(tmp_path / "run" / "policy.safetensors", episodes=0)
    assert (seen.movement, list(seen.notes)) == (None, [])
    assert seen.features()[0].links_at_start is None


def test_a_static_agent_was_never_adapted(tmp_path: Path) -> None:
    trained(tmp_path / "run", method="static-td3", eta=None, adapt_every=None, steps=1200, eval_every=600)
    seen = look(tmp_path / "run" / "policy.safetensors", episodes=0)
    assert seen.movement is not None
    assert (seen.movement.adaptations, str(seen.movement)) == (0, "The wiring has not been changed yet.")
    assert [feature.actor_links is None for feature in seen.features(most=1)] == [False, True, True]


def test_a_policy_file_alone(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    (tmp_path / "policy.safetensors").write_bytes((tmp_path / "run" / "policy.safetensors").read_bytes())
    seen = look(tmp_path / "policy.safetensors", episodes=0)
    assert (seen.info, seen.movement, list(seen.critics)) == (None, None, [])
    assert len(seen.features()) == 3


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / "wiring.bin").write_bytes(b"{}"), "is not a wiring log"),
        (lambda run: (run / "wiring.bin").unlink(), "no evaluation was logged"),
        (
            lambda run: [path.write_bytes(b"x") for path in run.glob("checkpoint/*/MANIFEST")],
            "there is no intact checkpoint",
        ),
        (lambda run: (run / "evaluations.csv").write_bytes(b"what,ever\n"), "the columns must be"),
        (lambda run: (run / "config.toml").write_bytes(b"what = ever\n"), "config.toml cannot be read"),
    ],
)
def test_what_is_damaged_is_named_and_the_rest_is_shown(tmp_path: Path, damage, says: str) -> None:
    trained(tmp_path / "run")
    damage(tmp_path / "run")
    seen = look(tmp_path / "run" / "policy.safetensors", episodes=0)
    assert any(says in note for note in seen.notes), seen.notes
    assert seen.actor.links


def test_a_task_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    policy = Policy.load(tmp_path / "run" / "policy.safetensors")
    for task, says in (("Gone-v0", "there is no task 'Gone-v0'"), ("", "does not name its task")):
        made = Policy(layers=policy.layers, low=policy.low, high=policy.high, algorithm="td3", task=task)
        made.save(tmp_path / "other.safetensors")
        seen: Inspection = look(tmp_path / "other.safetensors")
        assert seen.activity is None
        assert says in seen.notes[0]
