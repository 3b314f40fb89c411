"""A wiring rule as a method by name: `near-td3` trains in a run folder, and every command knows it.

python examples/registered_rule.py [steps]      about ten seconds for 4 000 steps

A package of your own does the same in a module that its entry points name, group `rewirl.methods`; then
`rewirl train near-td3 HalfCheetah-v5` works as well.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from rewirl import SET, TD3
from rewirl.agents import Method, TD3Agent, register_method
from rewirl.cli import main as rewirl


@dataclass(frozen=True)
class NearTheStrong(SET):
    """Drops like SET; grows on inputs in proportion to the links that they already have."""

    name: ClassVar[str] = "near-the-strong"
    phrase: ClassVar[str] = "sparse networks that grow where links already are"

    def choose_growth(self, links, count, rng, gradients):
        busy = np.bincount(links.inputs, minlength=links.n_in) + 1.0  # links of each input
        free = links.nth_free(np.arange(links.n_free))
        inputs = free // (links.n_out // links.block)
        return rng.choice(free, count, replace=False, p=busy[inputs] / busy[inputs].sum())


def main(steps: int) -> None:
    register_method(Method("near-td3", TD3Agent, NearTheStrong, eta=0.1))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        how = {"sparsity": 0.8, "hidden": (64, 64), "adapt_every": 100, "random_steps": min(500, steps // 2)}
        with TD3("Pendulum-v1", wiring=NearTheStrong, run_dir=run, eval_every=0, seed=1, **how) as agent:
            agent.learn(steps)
        rewirl(["list", str(run)])
        rewirl(["verify", str(run)])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000)
