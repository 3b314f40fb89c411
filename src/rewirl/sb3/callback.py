"""A callback that makes an agent sparse while it learns."""

from __future__ import annotations

from collections.abc import Sequence

from stable_baselines3.common.callbacks import BaseCallback

from rewirl.sb3.attachment import Attachment, attach, detach
from rewirl.sb3.record import Asked
from rewirl.topology import DEFAULT_SPARSITY, Rule, as_rule
from rewirl.torch import Wiring


class SparseTraining(BaseCallback):
    """Dynamic sparse training of a TD3, DDPG, SAC, DQN, A2C or PPO agent, targets included.

    Each network of the agent is wired on its own, its output layer dense, to the given `sparsity` (half of the weights
    unless given) or with the given `lambdas` (one for each of its sparse layers; if networks differ in depth, give
    `sparsity`). `rule` may be a class such as SET, which takes its default numbers. The critics adapt at
    the updates that the rule says, an actor at its first own update at or after them. Links come from `seed`, or else
    from PyTorch's generator, which the agent's own seed sets.

    The agent keeps the wiring: its `save` and `load` include it, and `learn` with this callback continues with it.
    Without this callback `learn` trains all weights again.

    >>> from stable_baselines3 import PPO
    >>> from rewirl.topology import SET
    >>> model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    >>> training = SparseTraining(SET(eta=0.1, every=10), sparsity=0.5)
    >>> model = model.learn(256, callback=training)
    >>> {name: wiring.links["hidden.2"].count for name, wiring in training.wirings.items()}
    {'actor': 1856, 'value': 1888}
    """

    def __init__(
        self,
        rule: Rule | type[Rule],
        *,
        sparsity: float | None = None,
        lambdas: Sequence[float] | None = None,
        block: int = 1,
        seed: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        self.rule, self.seed = as_rule(rule), seed
        if sparsity is None and lambdas is None and self.rule.sparse:
            sparsity = DEFAULT_SPARSITY
        self._asked = Asked.of(sparsity, lambdas, block)
        self._attachment: Attachment | None = None

    @property
    def wirings(self) -> dict[str, Wiring]:
        """The wiring of each network, by its name; none before `learn`."""
        return {} if self._attachment is None else self._attachment.wirings

    def _on_training_start(self) -> None:
        self._attachment = attach(self.model, self.rule, self._asked, self.seed)

    def _on_rollout_start(self) -> None:
        assert self._attachment is not None
        self._attachment.maintain()  # after the updates that preceded this rollout

    def _on_rollout_end(self) -> None:
        for name, wiring in self.wirings.items():
            statistics = wiring.statistics()
            for what in ("links", "sparsity", "adaptations", "replaced"):
                self.logger.record(f"sparse/{name}/{what}", statistics[what])

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        detach(self.model)
