"""An algorithm of one's own on the engine: DDPG, whose networks hold nothing but their links, learns Pendulum.

python examples/ddpg_on_the_engine.py [steps]      about half a minute for 8 000 steps
"""

import sys

import gymnasium
import numpy as np

from rewirl.agents import ActionBox, Transitions
from rewirl.nn import Adam, Batch, Network, Target
from rewirl.policies import Policy, PolicyLayer
from rewirl.topology import SET, wire
from rewirl.training.replay import Replay, Shape

GAMMA, TAU, NOISE, BATCH = 0.98, 0.01, 0.1, 128
ADAM = Adam(lr=1e-3)


class DDPG:
    """Deep deterministic policy gradient (Lillicrap et al. 2016), rewired every `rule.every` updates."""

    def __init__(self, n_obs: int, n_act: int, rule: SET, sparsity: float, rng: np.random.Generator) -> None:
        def network(n_in: int, n_out: int) -> Network:
            return Network(wire((n_in, 128, 128, n_out), rng, rule=rule, sparsity=sparsity), rng)

        self.actor, self.critic = network(n_obs, n_act), network(n_obs + n_act, 1)
        self.actor_target, self.critic_target = Target(self.actor), Target(self.critic)
        self.rule, self.rng = rule, rng
        self.batch = Transitions(n_obs, n_act, BATCH)  # feature-major, as the kernels want it
        self.dq, self.da = Batch(1, BATCH), Batch(n_act, BATCH)  # the losses' gradients at the outputs
        self.actions = (n_obs, n_obs + n_act)  # rows of the critic's input
        self.updates = self.replaced = 0

    def act(self, obs: np.ndarray) -> np.ndarray:
        return np.tanh(self.actor.act(obs))

    def explore(self, obs: np.ndarray) -> np.ndarray:
        return np.clip(self.act(obs) + NOISE * self.rng.standard_normal(self.actions[1] - self.actions[0]), -1, 1)

    def update(self, replay: Replay) -> None:
        b = self.batch
        b.fill(replay.records, replay.slots_of(self.rng.integers(len(replay), size=BATCH)))
        self.updates += 1

        # y = r + γ Q'(s', π'(s')), and the critic one step towards it
        b.next_action.array[...] = np.tanh(self.actor_target.forward(b.next_obs).array)
        y = b.reward.array + GAMMA * (1 - b.terminated.array) * self.critic_target.forward(b.next_state_action).array
        self.dq.array[...] = 2 / BATCH * (self.critic.forward(b.state_action).array - y)
        self._descend(self.critic, self.dq)

        # the actor up the critic's slope: dQ/da · dπ/dφ
        b.action.array[...] = action = np.tanh(self.actor.forward(b.obs).array)
        self.critic.forward(b.state_action)
        self.dq.array[...] = -1 / BATCH
        dq_da = self.critic.backward(self.dq, weights=False, inputs=self.actions).array
        self.da.array[...] = dq_da * (1 - action**2)
        self._descend(self.actor, self.da)

        for target in (self.actor_target, self.critic_target):
            target.update(TAU)  # Polyak, then as sparse as before

    def _descend(self, network: Network, d_out: Batch) -> None:
        network.backward(d_out)
        network.step(ADAM)
        if self.rule.due(self.updates):
            self.replaced += network.adapt(self.rule, self.rng)

    def policy(self, box: ActionBox, task: str) -> Policy:
        """What `rewirl evaluate`, `inspect`, `play` and `export` take: to them a tanh actor is TD3's."""
        layers = [PolicyLayer.from_network(self.actor, layer) for layer in range(self.actor.layers)]
        return Policy(layers=layers, low=box.low, high=box.high, algorithm="td3", task=task)


def main(steps: int) -> None:
    env = gymnasium.make("Pendulum-v1")
    box = ActionBox(env.action_space.low, env.action_space.high)
    n_obs, rng = env.observation_space.shape[0], np.random.default_rng(0)
    agent = DDPG(n_obs, box.size, SET(eta=0.1, every=500), sparsity=0.7, rng=rng)
    replay = Replay.in_memory(steps, Shape(n_obs, box.size))
    returns, total, random_steps = [], 0.0, min(500, steps // 2)
    obs, _ = env.reset(seed=0)
    for step in range(steps):
        action = rng.uniform(-1, 1, box.size) if step < random_steps else agent.explore(obs)
        following, reward, terminated, truncated, _ = env.step(box.to_env(np.float32(action)))
        replay.add(obs, action, reward, terminated, following)
        total, obs = total + reward, following
        if terminated or truncated:
            returns.append(total)
            total, (obs, _) = 0.0, env.reset()
        if step >= random_steps:
            agent.update(replay)
    print(f"{agent.actor.count} of {agent.actor.dense_count} links in the actor, {agent.replaced} replaced on the way")
    print(f"returns of the first and the last episodes: {np.mean(returns[:5]):.0f}, {np.mean(returns[-5:]):.0f}")
    agent.policy(box, "Pendulum-v1").save("ddpg.safetensors")
    print("rewirl evaluate ddpg.safetensors")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8_000)
