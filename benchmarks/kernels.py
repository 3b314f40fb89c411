"""Times the kernels of one hidden layer, 256 → 256: forward, the gradient of its inputs, the gradients of its weights.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --batch 256 --json kernels.json

Dense, unstructured and in blocks of 4, beside the same products by torch.mm where PyTorch is installed; all take turns,
pinned to one core and one thread, with their data in the caches. GFLOP/s count what links that exist take. Around the
layer stand one input and one output, whose time is in the numbers and hardly seen.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np

from peers import ONE_THREAD
from rewirl import nn
from rewirl.storage.provenance import processor
from rewirl.topology import SET, Dense, Links, wire

WIDTH = 256


@dataclass
class Layer:
    """What computes a layer; `backward` gives both gradients, so that those of weights are the difference."""

    name: str
    links: int
    forward: Callable[[], object]
    inputs: Callable[[], object]
    backward: Callable[[], object]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"forward": [], "inputs": [], "backward": []})

    def measure(self, calls: int) -> None:
        for name, taken in self.seconds.items():
            call = getattr(self, name)
            call()  # its data back into the caches
            for _ in range(calls):
                start = time.perf_counter()
                call()
                taken.append(time.perf_counter() - start)

    def low(self) -> dict[str, float]:
        """Low deciles of the three passes."""
        forward, inputs, backward = (float(np.quantile(taken, 0.1)) for taken in self.seconds.values())
        return {"forward": forward, "inputs": inputs, "weights": backward - inputs}


def ours(name: str, batch: int, density: float, block: int = 1) -> Layer:
    rng = np.random.default_rng(1)
    layers: list[Links]
    if density == 1:
        layers = wire((1, WIDTH, WIDTH, 1), rng, rule=Dense())
    else:
        layers = wire((1, WIDTH, WIDTH, 1), rng, rule=SET(), lambdas=(WIDTH, density * WIDTH / 2), block=block)
    net = nn.Network(layers, rng)
    x, dy = (nn.batch_of(rng.standard_normal((1, batch), dtype=np.float32)) for _ in range(2))
    net.forward(x)
    return Layer(
        name,
        layers[1].count,
        lambda: net.forward(x),
        lambda: net.backward(dy, weights=False, inputs=(0, 1)),
        lambda: net.backward(dy, inputs=(0, 1)),
    )


def by_torch(batch: int) -> Layer | None:
    """The dense products of the layer, and nothing else."""
    os.environ.update(ONE_THREAD)  # before it is imported
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    x, dy, w = torch.randn(batch, WIDTH), torch.randn(batch, WIDTH), torch.randn(WIDTH, WIDTH)
    y, dx, dw = torch.empty_like(x), torch.empty_like(x), torch.empty_like(w)
    return Layer(
        f"torch.mm {torch.__version__}, dense",
        WIDTH * WIDTH,
        lambda: torch.mm(x, w.T, out=y),
        lambda: torch.mm(dy, w, out=dx),
        lambda: (torch.mm(dy, w, out=dx), torch.mm(dy.T, x, out=dw)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=100, help="samples: 100 is TD3's batch, 256 SAC's")
    parser.add_argument("--rounds", type=int, default=100, help="rounds over all contenders")
    parser.add_argument("--core", type=int, default=1, help="core that everything is pinned to")
    parser.add_argument("--json", type=Path, help="also write everything measured to this file")
    args = parser.parse_args()

    os.sched_setaffinity(0, [args.core])
    layers = [ours("dense", args.batch, 1)]
    for density in (0.5, 0.2, 0.1, 0.05):
        layers.append(ours(f"{1 - density:.0%}", args.batch, density))
        layers.append(ours(f"{1 - density:.0%}, blocks of 4", args.batch, density, block=4))
    if peer := by_torch(args.batch):
        layers.append(peer)
    for _ in range(args.rounds):
        for layer in layers:
            layer.measure(calls=5)
    print(f"{date.today()}, {processor()}, {nn.isa()} kernels, one thread, core {args.core}, batch {args.batch}")
    print(f"{'':26} {'links':>6}" + "".join(f" {f'{name} µs':>11} {'GFLOP/s':>8}" for name in layers[0].low()))
    for layer in layers:
        flops = 2.0 * layer.links * args.batch
        cells = [f" {s * 1e6:11.1f} {flops / s / 1e9:8.1f}" for s in layer.low().values()]
        print(f"{layer.name:26} {layer.links:6}" + "".join(cells))
    if args.json:
        report = {"date": str(date.today()), "machine": processor(), "isa": nn.isa(), "batch": args.batch}
        report["layers"] = [{"name": layer.name, "links": layer.links, **layer.low()} for layer in layers]
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
