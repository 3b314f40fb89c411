"""Targets: Polyak and MaintainSparsity against matrices worked out by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rewirl.topology import SET, Links
from rewirl.torch import sparsify
from rewirl.torch.targets import keep_largest

torch.set_num_threads(1)


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize(
    ("before", "block", "places", "after"),
    [
        # not more than there are links: all stay
        ([[1, 0], [0, -2]], 1, [0, 1], [[1, 0], [0, -2]]),
        ([[1, 0], [0, 0]], 1, [0, 1], [[1, 0], [0, 0]]),
        # the smallest magnitudes go, whatever their sign, and whether the module has such a link or not
        ([[1, -3], [0.5, -2]], 1, [0, 1], [[0, -3], [0, -2]]),
        ([[1, -3], [0.5, -2]], 1, [0, 1, 2], [[1, -3], [0, -2]]),
        # of equals those at the lowest places go, whether the module has such a link or not
        ([[1, 1], [0, 0]], 1, [0], [[0, 1], [0, 0]]),
        ([[1, 1], [0, 0]], 1, [2], [[0, 1], [0, 0]]),
        # blocks of two outputs are ranked by the sum of magnitudes: 4, 3 and 3, 1
        ([[1, -3], [3, 0], [2, 0], [-1, 1]], 2, [1], [[1, 0], [3, 0], [0, 0], [0, 0]]),
        ([[1, -3], [3, 0], [2, 0], [-1, 1]], 2, [1, 3], [[1, -3], [3, 0], [0, 0], [0, 0]]),
        ([[1, -3], [3, 0], [2, 0], [-1, 1]], 2, [2, 3], [[1, -3], [3, 0], [0, 0], [0, 0]]),
    ],
)
def test_only_the_largest_stay(before: list, block: int, places: list, after: list) -> None:
    weight = torch.tensor(before, dtype=torch.float32)
    n_out, n_in = weight.shape
    keep_largest(weight, Links(n_in, n_out, block, np.array(places)))
    assert weight.tolist() == after


def test_a_target_follows_and_stays_as_sparse() -> None:
    module = mlp()
    wiring = sparsify(module, rule=SET(eta=0.3, every=1), sparsity=0.6, seed=0)
    target = copy.deepcopy(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        module(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        wiring.after_step(optimizer)
        before = copy.deepcopy(target)
        wiring.follow(target, 0.1)
        for name, links in wiring.links.items():
            mixed = 0.1 * module.get_submodule(name).weight + 0.9 * before.get_submodule(name).weight
            weight = target.get_submodule(name).weight
            assert int(weight.count_nonzero()) <= links.count
            stays = weight != 0
            torch.testing.assert_close(weight[stays], mixed[stays])
            assert mixed[~stays].abs().max() <= weight[stays].abs().min() + 1e-7
        torch.testing.assert_close(target[5].weight, 0.1 * module[5].weight + 0.9 * before[5].weight)
        torch.testing.assert_close(target[0].bias, 0.1 * module[0].bias + 0.9 * before[0].bias)
        assert torch.equal(target[2].running_mean, module[2].running_mean)
    assert any((target[0].weight != 0)[module[0].weight == 0]), "the target keeps links of its own"


def test_tau_of_one_copies() -> None:
    module, target = mlp(), mlp()
    wiring = sparsify(module, rule=SET(), sparsity=0.6, seed=0)
    wiring.follow(torch.compile(target, backend="eager"), 1)
    for mine, theirs in zip(module.parameters(), target.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_maintain_only_prunes() -> None:
    module = mlp()
    target = copy.deepcopy(module)
    wiring = sparsify(module, rule=SET(), sparsity=0.6, seed=0)
    before = copy.deepcopy(target)
    wiring.maintain(target)
    assert int(target[0].weight.count_nonzero()) == wiring.links["0"].count
    stays = target[0].weight != 0
    assert torch.equal(target[0].weight[stays], before[0].weight[stays])
    assert torch.equal(target[5].weight, before[5].weight)


@pytest.mark.parametrize(
    ("target", "tau", "message"),
    [
        (mlp(), 1.5, "tau must be from 0 to 1, not 1.5"),
        (mlp(), float("nan"), "tau must be a finite number"),
        (nn.Sequential(nn.Linear(6, 16)), 0.5, "only the module has a parameter '2.bias'"),
        (mlp().append(nn.Linear(2, 2)), 0.5, "only the target has a parameter '6.bias'"),
        (
            nn.Sequential(
                nn.Linear(7, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2)
            ),
            0.5,
            r"the target's parameter '0.weight' has the shape \(16, 7\): it must have the module's, \(16, 6\)",
        ),
    ],
)
def test_refused(target: nn.Module, tau: float, message: str) -> None:
    wiring = sparsify(mlp(), rule=SET(), sparsity=0.5, seed=0)
    with pytest.raises(ValueError, match=message):
        wiring.follow(target, tau)


def test_a_module_does_not_follow_itself() -> None:
    module = mlp()
    wiring = sparsify(module, rule=SET(), sparsity=0.5, seed=0)
    with pytest.raises(ValueError, match="is the module's own: a target is a copy"):
        wiring.follow(module, 0.5)
