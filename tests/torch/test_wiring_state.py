"""What a wiring saves, loads, refuses and counts."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
from torch import nn
from toys import Perceptron, exists, step

from rewirl.topology import SET, DropAndGrow, RigL, Rule
from rewirl.torch import Wiring, sparsify

torch.set_num_threads(1)


def training(rule: Rule) -> tuple[nn.Module, Wiring, torch.optim.Optimizer]:
    torch.manual_seed(0)
    module = Perceptron()
    return module, sparsify(module, rule=rule, sparsity=0.5, seed=0), torch.optim.Adam(module.parameters(), lr=0.01)


@pytest.mark.parametrize("rule", [SET(eta=0.2, every=3), RigL(eta=0.2, every=3)])
@pytest.mark.parametrize("wiring_first", [True, False])
def test_a_resumed_training_goes_on_exactly(rule: DropAndGrow, wiring_first: bool) -> None:
    module, wiring, optimizer = training(rule)
    generator = torch.Generator().manual_seed(0)
    for _ in range(7):
        step(module, optimizer, generator)
        wiring.after_step(optimizer)
    file = io.BytesIO()
    torch.save([module.state_dict(), optimizer.state_dict(), wiring.state_dict(), generator.get_state()], file)

    def go_on(module: nn.Module, wiring: Wiring, optimizer: torch.optim.Optimizer, generator: torch.Generator):
        for _ in range(8):
            step(module, optimizer, generator)
            wiring.after_step(optimizer)
        return wiring.statistics(), wiring.links, [p.detach() for p in module.parameters()]

    expected = go_on(module, wiring, optimizer, generator)
    file.seek(0)
    weights, moments, places, random = torch.load(file, weights_only=True)
    module, wiring, optimizer = training(rule)
    wiring.rng.random()  # wherever the generator is by now
    if wiring_first:
        wiring.load_state_dict(places)
    module.load_state_dict(weights)
    optimizer.load_state_dict(moments)
    if not wiring_first:
        wiring.load_state_dict(places)
    generator.set_state(random)
    statistics, links, parameters = go_on(module, wiring, optimizer, generator)
    assert statistics == expected[0]
    assert links == expected[1]
    for mine, theirs in zip(parameters, expected[2], strict=True):
        assert torch.equal(mine, theirs)


def test_loaded_links_are_the_only_ones_that_have_weights() -> None:
    module, wiring, _ = training(SET())
    wiring.load_state_dict(sparsify(Perceptron(), rule=SET(), sparsity=0.5, seed=1).state_dict())
    for name, links in wiring.links.items():
        weight = module.get_submodule(name).weight
        assert not weight[~exists(links, weight.shape)].any()


def changed(**entries: object) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda state: {**state, **entries}


def replaced(places: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda state: {**state, "places": {**state["places"], "3": places(state["places"]["3"])}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {k: v for k, v in s.items() if k != "rng"}, "the state has no 'rng'"),
        (changed(updates=-1), "updates must not be negative"),
        (changed(updates=1.5), "updates must be a whole number"),
        (changed(rng={"bit_generator": "MT19937"}), "PCG64"),
        (changed(places={}), "the state is for the layers , and these are 0, 3"),
        (replaced(lambda places: places[1:]), "layer '3' has .* links, the state has"),
        (replaced(lambda places: places.flip(0)), "sorted ascending"),
        (replaced(lambda places: places + 90), "does not exist"),
        (replaced(lambda places: places.float()), "int64"),
    ],
)
def test_a_wrong_state_is_refused_and_changes_nothing(change: Callable[[dict], dict], message: str) -> None:
    module, wiring, _ = training(SET())
    other = sparsify(Perceptron(), rule=SET(), sparsity=0.5, seed=1)
    links, weight, random = wiring.links, module[0].weight.detach().clone(), wiring.rng.bit_generator.state
    with pytest.raises((ValueError, TypeError), match=message):
        wiring.load_state_dict(change(other.state_dict()))
    assert wiring.links == links
    assert torch.equal(module[0].weight, weight)
    assert wiring.rng.bit_generator.state == random


def test_statistics() -> None:
    _, wiring, optimizer = training(SET(eta=0.5, every=2))
    for _ in range(4):
        last = wiring.after_step(optimizer)
    statistics = wiring.statistics()
    assert statistics["updates"] == 4
    assert statistics["adaptations"] == 2
    assert statistics["replaced"] == 2 * last
    counts = [links.count for links in wiring.links.values()]
    assert statistics["links"] == sum(counts)
    assert statistics["sparsity"] == pytest.approx(1 - sum(counts) / (9 * 12 + 12 * 8))
    assert statistics["sparsity.0"] == pytest.approx(1 - counts[0] / (9 * 12))
