"""A sparse DQN of Stable-Baselines3, saved in the middle and gone on with: the file keeps its wiring.

python examples/sb3_dqn_cartpole.py [steps]      about two minutes for 50 000 steps; needs rewirl[sb3]
"""

import sys
import tempfile
from pathlib import Path

from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy

from rewirl.sb3 import SparseTraining
from rewirl.topology import RigL

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
model = DQN(
    "MlpPolicy",
    "CartPole-v1",
    policy_kwargs={"net_arch": [256, 256]},
    learning_rate=2.3e-3,
    batch_size=64,
    buffer_size=100_000,
    learning_starts=min(1_000, steps // 4),
    target_update_interval=10,
    train_freq=256,
    gradient_steps=128,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
    seed=0,
    device="cpu",
)
model.learn(steps // 2, callback=SparseTraining(RigL(eta=0.1, every=500), sparsity=0.8))

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "dqn")
    model = DQN.load(Path(folder) / "dqn", env=model.get_env(), device="cpu")

training = SparseTraining(RigL(eta=0.1, every=500), sparsity=0.8)
model.learn(steps - steps // 2, callback=training, reset_num_timesteps=False)

numbers = training.wirings["q"].statistics()
print(f"{numbers['links']:.0f} links in the hidden layers, {numbers['replaced']:.0f} replaced since the first update")
mean, std = evaluate_policy(model, model.get_env(), n_eval_episodes=10)
print(f"return {mean:.0f} ± {std:.0f} of 500")
