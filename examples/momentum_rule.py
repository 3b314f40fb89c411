"""A wiring rule of one's own: new links come where the gradient has pointed the same way for a while.

python examples/momentum_rule.py [steps]      about half a minute for 8 000 steps

RigL grows where one batch's gradient is largest, and one batch is noisy. This rule keeps a running average of the
gradients that it is shown, one for each adaptation, and grows where that is largest; it drops as SET does.
"""

import sys
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rewirl import SET, TD3, RigL
from rewirl.topology import Change, Links


@dataclass(frozen=True)
class Momentum(SET):
    """Drops as SET does, and grows at the largest momentum of the dense gradient."""

    name: ClassVar[str] = "momentum"
    wants_gradients: ClassVar[bool] = True  # the network computes them when it adapts, and only then

    beta: float = 0.8
    """Share of the momentum that is kept from one adaptation to the next."""
    _momenta: dict[Links, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """By wiring: between two adaptations a layer's links stay as they are, so they say which layer it is."""

    def rewire(self, links, weights, rng, gradients=None) -> Change:
        before = self._momenta.pop(links, np.zeros_like(gradients))
        momentum = self.beta * before + (1 - self.beta) * gradients
        change = super().rewire(links, weights, rng, momentum)
        self._momenta[change.links] = momentum
        return change

    def choose_growth(self, links, count, rng, gradients):
        return RigL.choose_growth(self, links, count, rng, gradients)  # at the largest of what it is given


def main(steps: int) -> None:
    for rule in (SET(eta=0.1, every=250), Momentum(eta=0.1, every=250)):
        agent = TD3(
            "Pendulum-v1",
            wiring=rule,
            sparsity=0.8,
            seed=1,
            hidden=(128, 128),
            random_steps=min(500, steps // 2),
            eval_every=0,
        )
        agent.learn(steps)
        replaced = agent.run.agent.statistics()["links_replaced"]
        print(f"{rule.name}: return {agent.evaluate(10).mean:.0f}, {replaced:.0f} links replaced")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8_000)
