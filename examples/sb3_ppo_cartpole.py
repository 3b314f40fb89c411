"""A sparse PPO of Stable-Baselines3 learns CartPole: half the weights, rewired as it learns.

python examples/sb3_ppo_cartpole.py [steps]      about half a minute for 30 000 steps; needs rewirl[sb3]
"""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from rewirl.sb3 import SparseTraining
from rewirl.topology import SET

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
env = make_vec_env("CartPole-v1", n_envs=8, seed=0)
model = PPO(
    "MlpPolicy",
    env,
    n_steps=32,
    batch_size=256,
    n_epochs=20,
    gae_lambda=0.8,
    gamma=0.98,
    learning_rate=lambda left: 1e-3 * left,
    clip_range=lambda left: 0.2 * left,
    seed=0,
    device="cpu",
)
training = SparseTraining(SET(eta=0.1, every=100), sparsity=0.5)
model.learn(steps, callback=training)

for name, wiring in training.wirings.items():
    numbers = wiring.statistics()
    print(f"{name}: {numbers['links']:.0f} links in the hidden layers, {numbers['replaced']:.0f} replaced on the way")
mean, std = evaluate_policy(model, env, n_eval_episodes=16)
print(f"return {mean:.0f} ± {std:.0f} of 500")
