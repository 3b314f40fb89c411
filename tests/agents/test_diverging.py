"""What an agent says when its numbers are none any more."""

import numpy as np
import pytest

from rewirl.agents import ActionBox, TD3Agent, TD3Options, Transitions, WiringOptions
from rewirl.agents.actor_critic import Diverged
from rewirl.topology import SET


@pytest.mark.parametrize(("broken", "words"), [("critic1", "loss is nan at update 1"), ("actor", "weights are not")])
def test_nothing_is_learned_or_ranked_that_is_not_finite(broken, words) -> None:
    wiring = WiringOptions(rule=SET(every=1), lambdas=(7, 64))
    agent = TD3Agent(17, ActionBox([-1.0] * 6, [1.0] * 6), TD3Options(policy_delay=1), wiring, np.random.default_rng(0))
    network = agent.networks[broken]
    network.set_parameters(np.full_like(network.parameters, np.nan))
    with pytest.raises(Diverged, match=words):
        agent.update(Transitions(17, 6, 100))
