"""An environment of one's own: a boat with two thrusters docks at a pier, against a current.

python examples/own_environment.py [steps]      about half a minute for 15 000 steps

Registered as below, the command line knows it too, where Python finds this file (PYTHONPATH=examples):

rewirl train ds-td3 own_environment:Docking-v0 --steps 15000 --random-steps 1000
rewirl play runs/own_environment-Docking-v0/ds-td3-seed0 --import own_environment --gif docking.gif
"""

import sys

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from rewirl import SET, TD3


class Docking(gymnasium.Env):
    """Reach the origin slowly. It draws from `self.np_random` only, so that runs repeat and resume bit by bit."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = Box(-np.inf, np.inf, (6,), dtype=np.float32)  # flat: where it is, how fast, the current
    action_space = Box(-0.5, 1.0, (2,), dtype=np.float32)  # bounded, and stronger ahead than back

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # gives self.np_random its seed
        self.place = self.np_random.uniform(-1, 1, 2)
        self.speed = np.zeros(2)
        self.current = self.np_random.uniform(-0.1, 0.1, 2)
        return self._observation(), {}

    def step(self, action):
        # One thruster for each axis, turned towards the pier: backwards it has half the power.
        thrust = np.asarray(action) * -np.sign(self.place)
        self.speed += 0.1 * (thrust + self.current - 0.5 * self.speed)
        self.place = self.place + 0.1 * self.speed
        far, fast = np.linalg.norm(self.place), np.linalg.norm(self.speed)
        docked = bool(far < 0.1 and fast < 0.2)
        reward = 10.0 if docked else -far - 0.1 * fast
        # Docked is the end of the task: terminated. The time limit of the registration is not: truncated.
        return self._observation(), float(reward), docked, False, {}

    def render(self):
        """A picture by NumPy alone; `rewirl play` films it."""
        picture = np.full((240, 240, 3), (214, 234, 248), dtype=np.uint8)
        rows, columns = np.mgrid[0:240, 0:240]
        for place, radius, colour in (((0, 0), 14, (120, 90, 60)), (self.place, 8, (192, 57, 43))):
            x, y = 120 + 90 * np.clip(place, -1.3, 1.3)
            picture[(columns - x) ** 2 + (rows - y) ** 2 < radius**2] = colour
        return picture

    def _observation(self):
        return np.concatenate([self.place, self.speed, self.current]).astype(np.float32)


gymnasium.register("Docking-v0", entry_point=Docking, max_episode_steps=100)


def main(steps: int) -> None:
    with TD3(
        "Docking-v0",  # or Docking, or a function that makes one with wrappers around it
        wiring=SET(eta=0.1, every=500),
        sparsity=0.7,
        hidden=(64, 64),
        seed=1,
        random_steps=min(1_000, steps // 2),
        eval_every=max(steps // 5, 1),
        eval_episodes=20,
    ) as agent:
        agent.learn(steps)
    for row in agent.evaluations:
        print(f"step {row.step:>6,}  return {row.return_mean:7.1f}  in {row.length_mean:5.1f} steps")
    print(f"{agent.run.costs.links} links, {agent.run.costs.sparsity:.0%} sparse")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15_000)
