"""A training loop of one's own in PyTorch, made dynamically sparse by the lines marked with (*): DDPG on Pendulum.

python examples/torch_ddpg.py [steps]      about a minute for 8 000 steps; needs rewirl[torch]
"""

import copy
import sys

import gymnasium
import numpy as np
import torch
from torch import nn

from rewirl.topology import SET
from rewirl.torch import sparsify

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8_000
start, batch = min(500, steps // 2), 128
rng = np.random.default_rng(0)
torch.manual_seed(0)


def mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, n_out))


env = gymnasium.make("Pendulum-v1")
n_obs, n_act, high = env.observation_space.shape[0], env.action_space.shape[0], float(env.action_space.high[0])
actor, critic = nn.Sequential(mlp(n_obs, n_act), nn.Tanh()), mlp(n_obs + n_act, 1)
wirings = {net: sparsify(net, rule=SET(eta=0.1, every=500), sparsity=0.7) for net in (actor, critic)}  # (*)
targets = {net: copy.deepcopy(net) for net in (actor, critic)}
optimizers = {net: torch.optim.Adam(net.parameters(), lr=1e-3) for net in (actor, critic)}
replay = np.empty((steps, 2 * n_obs + n_act + 2), dtype=np.float32)


def descend(net: nn.Module, loss: torch.Tensor) -> None:
    optimizers[net].zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    optimizers[net].step()
    wirings[net].after_step(optimizers[net])  # (*)


returns, total = [], 0.0
obs, _ = env.reset(seed=0)
for step in range(steps):
    with torch.no_grad():
        action = actor(torch.from_numpy(obs)).numpy() + 0.1 * rng.standard_normal(n_act)
    action = np.clip(action, -1, 1) if step >= start else rng.uniform(-1, 1, n_act)
    following, reward, terminated, truncated, _ = env.step(high * action.astype(np.float32))
    replay[step] = np.concatenate([obs, action, [reward, terminated], following])
    total, obs = total + float(reward), following
    if terminated or truncated:
        returns.append(total)
        total, (obs, _) = 0.0, env.reset()
    if step < start:
        continue
    rows = torch.from_numpy(replay[rng.integers(0, step + 1, batch)])
    s, a, r, end, s2 = rows.split([n_obs, n_act, 1, 1, n_obs], dim=1)
    with torch.no_grad():
        y = r + 0.98 * (1 - end) * targets[critic](torch.cat([s2, targets[actor](s2)], dim=1))
    descend(critic, nn.functional.mse_loss(critic(torch.cat([s, a], dim=1)), y))
    descend(actor, -critic(torch.cat([s, actor(s)], dim=1)).mean())
    for net in (actor, critic):
        wirings[net].follow(targets[net], tau=0.01)  # (*)

for name, net in (("actor", actor), ("critic", critic)):
    numbers = wirings[net].statistics()
    print(f"{name}: hidden layers {numbers['sparsity']:.0%} sparse, {numbers['replaced']:.0f} links replaced")
print(f"returns of the first and the last episodes: {np.mean(returns[:5]):.0f}, {np.mean(returns[-5:]):.0f}")
