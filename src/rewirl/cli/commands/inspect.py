"""Inspect an agent: layers, links, dead neurons, important features, and how the wiring changed.

Features are ranked by the weights of their links. The activity of neurons is measured in a few episodes, if the task is
available. `--html` writes a self-contained page.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.text import Text

from rewirl.cli.ui.page.inspect_page import DIAGNOSTICS, diagnostic_cells, page
from rewirl.cli.ui.parser import Parser, whole
from rewirl.cli.ui.policy_path import file_at
from rewirl.cli.ui.tables import count, show, table
from rewirl.errors import Failed, Refused
from rewirl.experiments.analysis.wiring.history import Movement, layer_name
from rewirl.experiments.analysis.wiring.inspection import Feature, Inspection, Wired, look
from rewirl.export.output_folder import no_new_folders, prepare_folder
from rewirl.files import write_aside
from rewirl.training.config import SEEDS

EXAMPLES = (
    "rewirl inspect runs/HalfCheetah-v5/ds-td3-seed1",
    "rewirl inspect runs/HalfCheetah-v5/ds-td3-seed1 --best --html cheetah.html",
    "rewirl inspect runs/Humanoid-v5/ds-td3-seed1 --features 40 --episodes 0",
)
BAR = 12
"""Width of a full bar in characters."""


def arguments(parser: Parser) -> None:
    """The agent and the level of detail."""
    parser.add_argument("run", type=Path, metavar="RUN", help="Run folder or policy.safetensors")
    parser.add_argument("--best", action="store_true", help="Use the best policy of a run folder, not the latest")
    parser.add_argument("--html", type=Path, metavar="FILE", help="Also write an HTML page to this file")
    parser.add_argument(
        "--features", type=whole, default=24, metavar="N", help="Number of observations to list (default: 24)"
    )
    parser.add_argument(
        "--episodes", type=whole, default=3, metavar="N", help="Episodes to measure neurons in, 0 for none (default: 3)"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="Random seed of these episodes (default: 0)")


def run(args: argparse.Namespace) -> None:
    """Prints the report; writes the page if requested."""
    for flag, least in (("features", 1), ("episodes", 0)):
        if getattr(args, flag) < least:
            raise Refused(f"--{flag} must be at least {least}, not {getattr(args, flag)}")
    if not 0 <= args.seed < SEEDS:
        raise Refused(f"--seed must be from 0 to {SEEDS - 1}, not {args.seed}")
    file = file_at(args.run, args.best)
    if args.html is None:
        show(report(look(file, episodes=args.episodes, seed=args.seed), args.features))
        return
    if args.html.is_dir():
        raise Refused(f"{args.html} is a folder: give a file for --html, e.g. {args.html / 'agent.html'}")
    with no_new_folders(args.html.parent):
        prepare_folder(args.html.parent)
        seen = look(file, episodes=args.episodes, seed=args.seed)
        show(report(seen, args.features))
        try:
            write_aside(args.html, page(seen).encode())
        except OSError as error:
            raise Failed(f"{args.html}: {error.strerror}") from None
    show(Text(f"Page written to {args.html}"))


def report(seen: Inspection, features: int) -> RenderableType:
    """The whole report for the terminal."""
    parts: list[RenderableType] = [*headline(seen), _networks(seen)]
    if seen.diagnostics:
        parts.append(_diagnostics(seen))
    parts.append(_features(seen, features))
    if seen.movement is not None:
        parts += [_movement(seen.movement), Text(str(seen.movement))]
    parts += [Text(f"Note: {note}", style="yellow") for note in seen.notes]
    return Group(*parts)


def headline(seen: Inspection) -> list[RenderableType]:
    """Name and origin of the agent."""
    policy, info = seen.policy, seen.info
    task = policy.task or "an unknown task"
    method, step = policy.metadata.get("method", policy.algorithm), seen.actor.step
    name = f"{method} on {task}" + (f", seed {policy.metadata['seed']}" if "seed" in policy.metadata else "")
    at = "" if step is None else f" at step {step:,}"
    of = f" of {info.config.steps:,}" if info and info.config and step is not None else ""
    lines = [
        Text(f"{name}{at}{of}", style="bold"),
        Text(
            f"{count(policy.n_obs, 'observation')} → {count(policy.n_act, 'action')}, "
            f"widths {' → '.join(map(str, policy.sizes))}"
        ),
    ]
    known = seen.networks
    links, dense = sum(network.links for network in known), sum(network.dense_links for network in known)
    which = "actor and two critics" if seen.critics else seen.actor.name
    lines.append(Text(f"{links:,} links of {dense:,} ({1 - links / dense:.1%} sparse) in {which}"))
    if seen.activity:
        result = seen.activity.result
        spread = f"{result.mean:,.1f} ± {result.std:,.1f}" if len(result.returns) > 1 else f"{result.mean:,.1f}"
        lines.append(Text(f"return {spread} in {count(len(result.returns), 'episode')} of {task}"))
    return list(lines)


def _networks(seen: Inspection) -> RenderableType:
    numbers = ("links", "sparsity", "no input", "no output", "never active")
    rows = table("network", "layer", *numbers, right=numbers)
    for network in seen.networks:
        never = seen.activity.never() if seen.activity and network is seen.actor else []
        dead = network.dead()
        for number, layer in enumerate(network.layers):
            about = [f"{layer.n_in} → {layer.n_out}", f"{layer.links:,}", f"{1 - layer.density:.1%}"]
            if number < len(dead):
                about += [_count(dead[number].without_input), _count(dead[number].without_output)]
                about += [_count(never[number])] if never else []
            rows.add_row(_named(network, seen) if number == 0 else "", *about)
    told = "Dead: hidden neurons without incoming or outgoing links, or never active in the episodes."
    return Group(rows, Text(told, style="dim"))


def _diagnostics(seen: Inspection) -> RenderableType:
    rows = table("diagnostics", "layer", *DIAGNOSTICS.values(), right=tuple(DIAGNOSTICS.values()))
    for row in seen.diagnostics:
        cells = diagnostic_cells(row)
        rows.add_row(row.network if row.layer == 1 else "", f"{row.layer}", *cells)
    about = f"At step {seen.diagnostics[0].step:,}. Dead and dormant: of all neurons, on transitions of the replay."
    return Group(rows, Text(about, style="dim"))


def _named(network: Wired, seen: Inspection) -> str:
    other = network.step is not None and network.step != seen.actor.step
    return f"{network.name} (step {network.step:,})" if other else network.name


def _count(dead: int) -> str:
    return f"[yellow]{dead}[/]" if dead else "0"


def _features(seen: Inspection, most: int) -> RenderableType:
    found, left = seen.features(most), seen.policy.n_obs - most
    critics, start = bool(seen.critics), found[0].links_at_start is not None
    numbers = ["links", *(["at start"] if start else []), "weight"]
    of_critics = ["critics' links", "critics' weight"] if critics else []
    rows = table("feature", *numbers, "", *of_critics, right=(*numbers, *of_critics))
    largest = max(feature.actor_weight for feature in found)
    for feature in found:
        actor = feature.actor_links is not None
        cells = [f"{feature.actor_links}" if actor else ""]
        cells += [_start(feature) if actor else ""] if start else []
        cells += [f"{feature.actor_weight:.1%}", _bar(feature.actor_weight, largest)] if actor else ["", ""]
        cells += [f"{feature.critic_links:.0f}", f"{feature.critic_weight:.1%}"] if critics else []
        rows.add_row(feature.name, *cells)
    full = seen.actor.layers[0].n_out
    needs = "" if seen.policy.is_normalised else "; large features need less"
    about = f"At most {full} links each. Weight: share of the first layer's magnitudes{needs}."
    more = f" {left} more observations: use --features {seen.policy.n_obs} to list all." if left > 0 else ""
    return Group(rows, Text(about + more, style="dim"))


def _start(feature: Feature) -> str:
    before, now = feature.links_at_start or 0, feature.actor_links or 0
    if now == before:
        return f"{before}  "
    return f"{before} [green]▲[/]" if now > before else f"{before} [red]▼[/]"


def _bar(share: float, largest: float) -> str:
    eighths = round(share / largest * BAR * 8) if largest else 0
    return f"[cyan]{'█' * (eighths // 8)}{' ▏▎▍▌▋▊▉'[eighths % 8].strip()}[/]"


def _movement(movement: Movement) -> RenderableType:
    quarters = _quarters(movement)
    numbers = (f"initial links left {quarters[0]}".rstrip(), *quarters[1:], "positions tried", "median age")
    rows = table("wiring", *numbers, right=numbers)
    numbers = (f"no input {quarters[0]}".rstrip(), *quarters[1:])
    alone = table("neurons", *numbers, right=numbers)
    for layer in movement.wiring:
        name = layer_name(layer)
        left = [f"{share:.1%}" for share in _at_quarters(movement, movement.survived(layer))]
        age = float(np.median(movement.ages(layer)))
        rows.add_row(name, *left, f"{movement.tried(layer):.1%}", f"{age:,.0f} steps")
        if (without := movement.without_input(layer)).any():
            alone.add_row(name, *(_count(int(neurons)) for neurons in _at_quarters(movement, without)))
    return Group(rows, alone) if alone.row_count else rows


def _quarters(movement: Movement) -> tuple[str, ...]:
    return ("at ¼", "at ½", "at ¾", "now") if len(movement.steps) > 4 else ("",)


def _at_quarters(movement: Movement, numbers: NDArray[Any]) -> list[Any]:
    last = len(movement.steps) - 1
    return [numbers[round(part * last)] for part in (0.25, 0.5, 0.75, 1)][-len(_quarters(movement)) :]
