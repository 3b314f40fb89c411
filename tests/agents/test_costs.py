"""The paper's numbers come out of the program itself."""

import numpy as np
import pytest

from rewirl.agents import (
    METHODS,
    ActionBox,
    CrossQAgent,
    CrossQOptions,
    DQNAgent,
    DQNOptions,
    SACAgent,
    SACOptions,
    TD3Agent,
    TD3Options,
    Transitions,
    WiringOptions,
    actor_critic,
    costs,
    crossq,
    method,
    sac,
    td3,
)
from rewirl.envs.catalogue import paper_lambdas
from rewirl.nn import Network, Target
from rewirl.topology import SET

DENSE = costs(17, 6, TD3Options(), WiringOptions())
PAPER = costs(17, 6, TD3Options(), WiringOptions(rule=SET(), lambdas=(7, 64)))


def test_links_of_halfcheetah() -> None:
    assert DENSE.links == 214_784
    assert PAPER.links == 106_169
    assert PAPER.sparsity == pytest.approx(0.506, abs=5e-4)


def test_the_papers_flops() -> None:
    assert DENSE.paper_flops(10**6) == pytest.approx(1.0744e14, rel=5e-5)
    assert PAPER.paper_flops(10**6) / DENSE.paper_flops(10**6) == pytest.approx(0.4918, abs=5e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (TD3Agent, TD3Options()),
        (SACAgent, SACOptions()),
        (CrossQAgent, CrossQOptions(hidden=(32, 24), critic_hidden=(96, 64))),
        (DQNAgent, DQNOptions()),
    ],
)
def test_full_flops_are_those_of_the_passes_made(kind, options, monkeypatch) -> None:
    """A pass over a network's links, forward, to its inputs or to its weights: a multiply-add per link and sample."""
    passes = 0

    def counted(of, name, weight):
        plain = getattr(of, name)

        def call(self, x, **how):
            nonlocal passes
            net = self if isinstance(self, Network) else self.online
            passes += net.count * x.size * weight(how)
            return plain(self, x, **how)

        monkeypatch.setattr(of, name, call)

    counted(Network, "forward", lambda how: 1)
    counted(Target, "forward", lambda how: 1)
    counted(Network, "backward", lambda how: 2 if how.get("weights", True) else 1)

    # those made together are counted as if they were made one by one
    def backward_each(nets, dys, **how):
        return [net.backward(dy, **how) for net, dy in zip(nets, dys, strict=True)]

    def regress_each(nets, x, y, adam):
        backward_each(nets, [net.forward(x) for net in nets])
        return [(0.0, 0.0) for _ in nets]

    monkeypatch.setattr(actor_critic, "regress_each", regress_each)
    for module in (actor_critic, crossq):
        monkeypatch.setattr(module, "backward_each", backward_each)
    for module in (actor_critic, td3, sac, crossq):
        monkeypatch.setattr(module, "forward_each", lambda nets, x, **how: [net.forward(x, **how) for net in nets])
    agent = kind(17, kind.actions_class.of_size(6), options, WiringOptions(), np.random.default_rng(0))
    batch = Transitions(17, 6, options.batch)
    for _ in range(6):
        agent.update(batch)
    cost = costs(17, 6, options, WiringOptions())
    assert cost.full_flops(6, 0) == pytest.approx(2 * passes, rel=1e-12)
    assert cost.full_flops(0, 7) == 2 * 7 * agent.acting.count


def test_an_agent_has_the_links_that_were_promised() -> None:
    wiring = WiringOptions(rule=SET(), lambdas=(7, 64))
    agent = TD3Agent(17, ActionBox([-1.0] * 6, [1.0] * 6), TD3Options(), wiring, np.random.default_rng(0))
    assert sum(net.count for net in agent.networks.values()) == PAPER.links
    for net in agent.networks.values():
        net.adapt(SET(eta=0.3), agent.rng)
    assert sum(net.links(layer).count for net in agent.networks.values() for layer in range(net.layers)) == PAPER.links


def test_methods_have_the_papers_numbers() -> None:
    products = {p + a for p in ("", "static-", "ds-", "rigl-") for a in ("td3", "sac", "dqn", "crossq")}
    assert set(METHODS) == {"lean-td3", *products}
    assert paper_lambdas("HalfCheetah-v5", "td3") == (7, 64)
    assert paper_lambdas("Humanoid-v4", "td3") == (61, 64)
    assert paper_lambdas("Hopper-v5", "sac") == (7, 20)
    assert paper_lambdas("Pendulum-v1", "sac") is None
    assert (method("ds-td3").eta, method("ds-sac").eta) == (0.05, 0.1)
    with pytest.raises(ValueError, match="did you mean ds-td3"):
        method("ds-td4")


def test_options_are_those_of_the_papers_appendix() -> None:
    td3, sac = TD3Options(), SACOptions()
    assert (td3.lr, td3.weight_decay, td3.batch, td3.policy_delay, td3.tau) == (1e-3, 2e-4, 100, 2, 0.005)
    assert (sac.lr, sac.weight_decay, sac.batch, sac.alpha, sac.target_interval) == (3e-4, 0.0, 256, 0.2, 1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"gamma": 1.5}, "gamma must be from 0 to 1"),
        ({"lr": float("nan")}, "lr must be a finite number"),
        ({"batch": 0}, "batch must be from 1 to 1073741824, not 0"),
        ({"batch": 2_000_000_000}, "batch must be from 1 to 1073741824, not 2000000000"),
        ({"hidden": ()}, "hidden must have at least one width"),
        ({"hidden": (0,)}, "hidden must be whole numbers"),
        ({"beta1": 1.0}, "below 1"),
        ({"weight_decay": -1.0}, "must not be negative"),
        ({"policy_delay": 0}, "policy_delay must be at least 1"),
    ],
)
def test_refused_options(how: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TD3Options(**how)  # type: ignore[arg-type]
