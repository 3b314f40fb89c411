"""From training to a device: a sparse policy as C99 without dependencies, compiled, run, and compared.

python examples/export_to_c.py [steps]      a quarter of a minute for 5 000 steps; needs a C compiler
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rewirl import SET, TD3
from rewirl.export import export_c


def main(steps: int) -> None:
    with TD3(
        "Pendulum-v1",
        wiring=SET(eta=0.1, every=250),
        sparsity=0.9,
        hidden=(64, 64),
        seed=1,
        random_steps=min(500, steps // 2),
        eval_every=0,
    ) as agent:
        policy = agent.learn(steps).policy()
    observations = np.random.default_rng(0).uniform(-1, 1, (1000, 3)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("f32", "f16", "int8"):
            done = export_c(policy, Path(folder, dtype), name="pendulum", dtype=dtype, observations=observations)
            program = Path(folder, dtype, "act")
            # The example program reads observations and prints actions; a device calls pendulum_act() itself.
            subprocess.run(
                ["cc", "-std=c99", "-O2", done.source, done.example, "-lm", "-o", program], check=True, cwd=folder
            )
            lines = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in observations.tolist())
            printed = subprocess.run(program, input=lines, capture_output=True, text=True, check=True).stdout
            actions = np.array(printed.split(), dtype=np.float32).reshape(policy(observations).shape)
            apart = np.abs(actions - policy(observations)).max()
            print(f"{dtype}: {done.flash_bytes:,} bytes of flash, {done.ram_bytes} of RAM, actions within {apart:.0e}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
