"""What holds after every step, whatever the optimizer, the schedule and the module."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from toys import Convolutional, Perceptron, exists, step

from rewirl.topology import SET, RigL, Rule, Static
from rewirl.torch import sparsify
from rewirl.torch.wiring import SECOND_MOMENTS

torch.set_num_threads(1)

OPTIMIZERS: dict[str, Callable[[object], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam, l2": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw, one by one": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


rules = st.one_of(
    st.builds(SET, eta=st.floats(0, 1), every=st.integers(1, 5)),
    st.builds(RigL, eta=st.floats(0, 1), every=st.integers(1, 5)),
    st.just(Static()),
)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from([Convolutional, Perceptron]),
    optimizer_name=st.sampled_from(sorted(OPTIMIZERS)),
    rule=rules,
    sparsity=st.floats(0, 0.7),
    block=st.sampled_from([1, 2, 4]),
    clip=st.sampled_from([0.0, 0.5]),
    gaps=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    seed=st.integers(0, 2**32),
)
def test_what_holds_after_every_step(
    kind: type[nn.Sequential],
    optimizer_name: str,
    rule: Rule,
    sparsity: float,
    block: int,
    clip: float,
    gaps: list[int],
    seed: int,
) -> None:
    torch.manual_seed(seed)
    module, generator = kind(), torch.Generator().manual_seed(seed)
    wiring = sparsify(module, rule=rule, sparsity=sparsity, block=block, seed=seed)
    optimizer = OPTIMIZERS[optimizer_name](module.parameters())
    counts = {name: links.count for name, links in wiring.links.items()}
    total = sum(p.numel() for n, p in module.named_parameters() if p.ndim > 1)
    dense = module[-1].weight.numel()
    assert abs(sum(counts.values()) + dense - (1 - sparsity) * total) <= block
    update = due = 0
    for gap in gaps:
        before = wiring.links
        step(module, optimizer, generator, clip)
        dense_before = module[-1].weight.detach().clone()
        replaced = wiring.after_step(optimizer, update=update + gap)
        is_due = any(rule.due(t) for t in range(update + 1, update + gap + 1))
        update, due = update + gap, due + is_due
        assert is_due or replaced == 0
        assert wiring.adaptations == due
        assert torch.equal(module[-1].weight, dense_before), "the output layer is no business of the wiring"
        new_links = 0
        for name, links in wiring.links.items():
            weight = module.get_submodule(name).weight
            mask = exists(links, weight.shape)
            grown = mask & ~exists(before[name], weight.shape)
            new_links += int(grown.sum())
            assert links.count == counts[name] == int(mask.sum())
            state = {k: v for k, v in optimizer.state[weight].items() if torch.is_tensor(v) and v.ndim > 0}
            for kind_of_value, values in {"weight": weight, "gradient": weight.grad, **state}.items():
                assert not values[~mask].any(), "something is where no link is"
                if kind_of_value in SECOND_MOMENTS:
                    assert torch.isfinite(values).all()
                    assert (values >= 0).all()
                else:
                    assert not values[grown].any(), "a new link does not start at 0"
        assert new_links == replaced


@pytest.mark.parametrize("optimizer_name", sorted(OPTIMIZERS))
def test_links_learn_as_if_the_rest_were_not_there(optimizer_name: str) -> None:
    """Beside layers whose weight is multiplied by the mask in the forward: autograd's own idea of sparse."""
    torch.manual_seed(0)
    module = Perceptron()
    wiring = sparsify(module, rule=Static(), sparsity=0.6, seed=0)
    mirror = copy.deepcopy(module)
    masks = {name: exists(links, module.get_submodule(name).weight.shape) for name, links in wiring.links.items()}

    def mirrored(x: torch.Tensor) -> torch.Tensor:
        weights = {f"{name}.weight": mirror.get_submodule(name).weight * mask for name, mask in masks.items()}
        return torch.func.functional_call(mirror, weights, x)

    ours, theirs = (OPTIMIZERS[optimizer_name](m.parameters()) for m in (module, mirror))
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        x = torch.randn(8, 9, generator=generator)
        for f, m, optimizer in ((module, module, ours), (mirrored, mirror, theirs)):
            optimizer.zero_grad()
            (f(x) - 1).square().mean().backward()
            # 0.05 is well below the norms here: clipping acts, and must not see gradients of what is no link
            assert nn.utils.clip_grad_norm_(m.parameters(), 0.05) > 0.05
            optimizer.step()
        wiring.after_step(ours)
    for mine, other in zip(module.parameters(), mirror.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)


def test_parameter_groups() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=SET(eta=0.5, every=1), sparsity=0.5, seed=0)
    groups = [
        {"params": [module[0].weight], "lr": 0.0},
        {"params": [p for p in module.parameters() if p is not module[0].weight]},
    ]
    optimizer, generator = torch.optim.Adam(groups, lr=0.01), torch.Generator()
    before = module[0].weight.detach().clone()
    step(module, optimizer, generator)
    assert wiring.after_step(optimizer) > 0
    kept = (module[0].weight != 0) & (before != 0)
    assert torch.equal(module[0].weight[kept], before[kept]), "its learning rate is 0"


def test_rigl_grows_where_this_steps_gradient_is_largest() -> None:
    torch.manual_seed(0)
    module, generator = Perceptron(), torch.Generator()
    wiring = sparsify(module, rule=RigL(eta=0.2, every=2), sparsity=0.6, seed=0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for accumulated in (1, 2, 1, 1):
        for _ in range(2):
            before = wiring.links
            module(
                torch.randn(8, 9, generator=generator)
            ).sum().backward()  # another loss, as an actor's is to a critic
            optimizer.zero_grad(set_to_none=accumulated == 1)
            oracle = copy.deepcopy(module)  # has no hooks, so that its gradients are dense
            for _ in range(accumulated):
                x = torch.randn(8, 9, generator=generator)
                for m in (module, oracle):
                    (m(x) - 1).square().mean().backward()
            optimizer.step()
            replaced_now = wiring.after_step(optimizer)
        assert replaced_now > 0
        for name, links in wiring.links.items():
            magnitude = oracle.get_submodule(name).weight.grad.abs()
            had = exists(before[name], magnitude.shape)
            grown = exists(links, magnitude.shape) & ~had
            assert grown.sum() > 0
            assert magnitude[grown].min() >= magnitude[~had & ~grown].max()


def test_rigl_without_a_backward_is_refused() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=RigL(every=1), sparsity=0.5, seed=0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step(module, optimizer, torch.Generator())
    assert wiring.after_step(optimizer) > 0
    with pytest.raises(RuntimeError, match="RigL grows by gradients, and layer '0' had none in this step"):
        wiring.after_step(optimizer)


def test_own_updates_are_counted() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=SET(eta=0.5, every=3), sparsity=0.5, seed=0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    assert [wiring.after_step(optimizer) > 0 for _ in range(7)] == [False, False, True, False, False, True, False]


def test_delayed_updates_adapt_at_the_first_one_after_the_time() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=SET(eta=0.5, every=5), sparsity=0.5, seed=0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    adapted = [t for t in range(2, 21, 2) if wiring.after_step(optimizer, update=t)]
    assert adapted == [6, 10, 16, 20]
    with pytest.raises(ValueError, match="update 20 was already: the next one is 21 or later"):
        wiring.after_step(optimizer, update=20)


def test_a_compiled_module_learns_the_same() -> None:
    results = []
    for compiled in (False, True):
        torch.manual_seed(0)
        module = Perceptron()
        wiring = sparsify(module, rule=RigL(eta=0.2, every=2), sparsity=0.5, seed=0)
        forward = torch.compile(module, backend="aot_eager") if compiled else module
        optimizer, generator = torch.optim.Adam(module.parameters()), torch.Generator().manual_seed(0)
        for _ in range(6):
            optimizer.zero_grad()
            (forward(torch.randn(8, 9, generator=generator)) - 1).square().mean().backward()
            assert not module[0].weight.grad[~exists(wiring.links["0"], module[0].weight.shape)].any()
            optimizer.step()
            wiring.after_step(optimizer)
        results.append((wiring.links, [p.detach().clone() for p in module.parameters()]))
    assert results[0][0] == results[1][0]
    for mine, other in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_module_changed_after_it_was_wired(dtype: torch.dtype) -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=RigL(eta=0.2, every=1), sparsity=0.5, seed=0)
    module.to(dtype)
    optimizer = torch.optim.Adam(module.parameters())
    (module(torch.randn(8, 9, dtype=dtype)) - 1).square().mean().backward()
    optimizer.step()
    assert wiring.after_step(optimizer) > 0
    assert not module[0].weight[~exists(wiring.links["0"], module[0].weight.shape)].any()


def test_masks_follow_the_device() -> None:
    """`meta` is the one other device that every machine has: it checks operations, and computes nothing."""
    module = Perceptron()
    wiring = sparsify(module, rule=Static(), sparsity=0.5, seed=0)
    wiring.after_step(torch.optim.SGD(module.to("meta").parameters(), lr=0.1))


def test_nothing_comes_through_a_mask() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=Static(), sparsity=0.5, seed=0)
    absent = ~exists(wiring.links["0"], module[0].weight.shape)
    optimizer = torch.optim.Adam(module.parameters())
    with torch.no_grad():
        module[0].weight[absent] = torch.nan
    module[0].weight.sum().mul(torch.inf).backward()
    assert not module[0].weight.grad[absent].any()
    optimizer.state[module[0].weight]["exp_avg"] = torch.full_like(module[0].weight, -torch.inf)
    wiring.after_step(optimizer)
    assert not module[0].weight[absent].any()
    assert not optimizer.state[module[0].weight]["exp_avg"][absent].any()
    assert module[0].weight[~absent].all()


def test_gradients_can_be_differentiated_again() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=Static(), sparsity=0.5, seed=0)
    absent = ~exists(wiring.links["0"], module[0].weight.shape)
    loss = module(torch.randn(8, 9)).square().mean()
    (gradient,) = torch.autograd.grad(loss, module[0].weight, create_graph=True)
    assert not gradient[absent].any()
    gradient.square().sum().backward()
    assert module[3].weight.grad.any()


def test_an_optimizer_of_other_parameters_is_refused() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=SET(), sparsity=0.5, seed=0)
    with pytest.raises(ValueError, match="this Adam does not have the weight of layer '0'"):
        wiring.after_step(torch.optim.Adam(Perceptron().parameters()))
    with pytest.raises(ValueError, match="does not have the weight of layer '3'"):
        wiring.after_step(torch.optim.Adam(module[0].parameters()))
    assert wiring.updates == 0


def test_released_layers_are_dense_again() -> None:
    module = Perceptron()
    wiring = sparsify(module, rule=SET(), sparsity=0.5, seed=0)
    wiring.release()
    module(torch.randn(8, 9)).sum().backward()
    assert module[0].weight.grad[module[0].weight == 0].any()
    sparsify(module, rule=SET(), sparsity=0.5, seed=0)
