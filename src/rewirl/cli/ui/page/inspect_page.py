"""`rewirl inspect --html`: one self-contained page about an agent."""

from __future__ import annotations

from html import escape
from string import Template

import numpy as np
from numpy.typing import NDArray

from rewirl.cli.ui.page.drawing import curves, heat, histogram, matrix
from rewirl.cli.ui.page.style import PAGE
from rewirl.cli.ui.tables import count
from rewirl.envs.catalogue import action_names
from rewirl.envs.flattened import policy_names
from rewirl.experiments.analysis.wiring.history import Movement, layer_name
from rewirl.experiments.analysis.wiring.inspection import Feature, Inspection
from rewirl.policies.policy import PolicyLayer
from rewirl.training.measurements import DiagnosticsRow

MOST = 40
"""Maximum number of drawn features: more would be too small to read."""
COLUMNS = 100
"""Columns of a heat map."""

DIAGNOSTICS = {
    "dead": "dead",
    "dormant": "dormant",
    "effective_rank": "effective rank",
    "gradient_norm": "gradient norm",
    "link_age": "age of links",
    "q_bias": "critic bias",
}
"""Columns of diagnostics.csv, with names for display."""


def page(seen: Inspection) -> str:
    """The whole page."""
    policy = seen.policy
    method, task = policy.metadata.get("method", policy.algorithm), policy.task or "an unknown task"
    sections = [
        _section("Networks", _networks(seen)),
        _section("Training diagnostics", _diagnostics(seen)),
        _section("What it looks at", _features(seen)),
        _section(f"Wiring of the {seen.actor.name} network", _wiring(seen)),
        _section("How the wiring changed", _movement(seen)),
        _section("What its neurons do", _neurons(seen)),
        _section("Not known", "".join(f"<p>{escape(note)}</p>" for note in seen.notes)),
    ]
    return Template(PAGE).substitute(
        title=escape(f"{method} on {task}"), facts=_facts(seen), sections="".join(part for part in sections if part)
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""


def _facts(seen: Inspection) -> str:
    policy = seen.policy
    links, dense = (sum(getattr(net, name) for net in seen.networks) for name in ("links", "dense_links"))
    facts = {"links": f"{links:,}", "of dense": f"{links / dense:.1%}"}
    for number, thing in ((policy.n_obs, "observation"), (policy.n_act, "action")):
        facts[count(number, thing).partition(" ")[2]] = f"{number}"
    if seen.actor.step is not None:
        facts["steps"] = f"{seen.actor.step:,}"
    if "seed" in policy.metadata:
        facts["seed"] = policy.metadata["seed"]
    if seen.activity:
        facts["return"] = f"{seen.activity.result.mean:,.1f}"
    return "".join(f"<div><b>{escape(value)}</b><span>{name}</span></div>" for name, value in facts.items())


def _networks(seen: Inspection) -> str:
    rows = []
    for network in seen.networks:
        dead = network.dead()
        never = seen.activity.never() if seen.activity and network is seen.actor else []
        for number, layer in enumerate(network.layers):
            hidden = number < len(dead)
            cells = [f"{layer.n_in} → {layer.n_out}", f"{layer.links:,}", _bar(layer.density, f"{layer.density:.1%}")]
            cells += [str(dead[number].without_input), str(dead[number].without_output)] if hidden else ["", ""]
            cells += [str(never[number]) if hidden and never else ""]
            head = f'<th rowspan="{len(network.layers)}">{network.name}</th>' if number == 0 else ""
            rows.append(f"<tr>{head}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    names = ("network", "layer", "links", "of dense", "no input", "no output", "never active")
    told = "Dead: hidden neurons without incoming or outgoing links, or never active in the episodes."
    return f"{_table(names, rows)}<p class='small'>{told}</p>"


def diagnostic_cells(row: DiagnosticsRow) -> list[str]:
    """The columns of `DIAGNOSTICS` for a layer."""
    measured = row.measured()
    formats = {"gradient_norm": ".3g", "link_age": ",.0f", "q_bias": "+,.1f"}
    cells = {name: format(value, formats.get(name, "")) for name, value in measured.items()}
    for name in measured.keys() & {"dead", "dormant"}:
        cells[name] += f" of {row.neurons}"
    return [cells.get(name, "") for name in DIAGNOSTICS]


def _diagnostics(seen: Inspection) -> str:
    if not seen.diagnostics:
        return ""
    rows = [
        f"<tr><th>{escape(row.network)}</th><td>{row.layer}</td>"
        f"{''.join(f'<td>{cell}</td>' for cell in diagnostic_cells(row))}</tr>"
        for row in seen.diagnostics
    ]
    told = f"At step {seen.diagnostics[0].step:,}. Dead and dormant neurons: on transitions of the replay."
    return f"{_table(('network', 'layer', *DIAGNOSTICS.values()), rows)}<p class='small'>{told}</p>"


def _features(seen: Inspection) -> str:
    found, all_of_them = seen.features(MOST), seen.policy.n_obs
    start, critics = found[0].links_at_start is not None, bool(seen.critics)
    full = seen.actor.layers[0].n_out
    top = max(feature.actor_weight for feature in found) or 1.0
    top_critic = max(feature.critic_weight for feature in found) or 1.0
    rows = []
    for feature in found:
        actor = feature.actor_links is not None
        cells = [_bar(feature.actor_weight / top, f"{feature.actor_weight:.1%}") if actor else ""]
        cells += [_links(feature, full) if actor else ""]
        cells += [_bar(feature.critic_weight / top_critic, f"{feature.critic_weight:.1%}")] if critics else []
        rows.append(f"<tr><th>{escape(feature.name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    names = [
        "feature",
        f"{seen.actor.name}'s weight",
        f"{seen.actor.name}'s links of {full}",
        *(["critics' weight"] if critics else []),
    ]
    less = f" The {MOST} of {all_of_them} observations with most weight are shown." if all_of_them > MOST else ""
    mark = " The mark shows the number at the start." if start else ""
    told = "Weight is a feature's share of all magnitudes in the first layer; a feature with large values needs less."
    about = f"{told}{mark}{less}"
    return f"{_table(names, rows)}<p class='small'>{about}</p>"


def _links(feature: Feature, full: int) -> str:
    now, before = feature.actor_links or 0, feature.links_at_start
    if before is None:
        return _bar(now / full, f"{now}")
    change = f" <i class='{'up' if now > before else 'down'}'>{now - before:+d}</i>" if now != before else ""
    return _bar(now / full, f"{now}{change}", mark=before / full)


def _wiring(seen: Inspection) -> str:
    policy = seen.policy
    order = _order(seen)
    names = policy_names(policy)
    parts = []
    last = len(policy.layers) - 1
    for number, layer in enumerate(policy.layers):
        weights = _with_gaps(layer)
        title = f"Layer {number + 1}: {layer.n_in} → {layer.n_out}, {layer.links:,} links"
        if number == 0 and last:
            chosen = weights[:, [names.index(name) for name in order]].T
            inputs = f"{len(order)} of {policy.n_obs} observations" if len(order) < policy.n_obs else "observations"
            parts.append(_rows(f"{title}; {inputs} × neurons", order, chosen))
        elif number == last:
            outputs = list(action_names(policy.task, policy.n_act))
            outputs += [f"log-std, {name}" for name in outputs] if layer.n_out > policy.n_act else []
            parts.append(_rows(f"{title}; actions × neurons", outputs, weights))
        else:
            parts.append(
                f"<figure class='square'>{matrix(weights, what=title)}<figcaption>{title}; "
                "neurons × neurons</figcaption></figure>"
            )
    told = "One pixel per position: blue is a positive weight, red a negative one, pale a small one."
    return f"{''.join(parts)}<p class='small'>{told}</p>"


def _order(seen: Inspection) -> list[str]:
    """Names of the observations shown, by decreasing weight."""
    return [feature.name for feature in seen.features(MOST) if feature.actor_links is not None]


def _with_gaps(layer: PolicyLayer) -> NDArray[np.float32]:
    """(outputs, inputs), NaN without a link."""
    weights = np.full((layer.n_out, layer.n_in), np.nan, dtype=np.float32)
    weights[layer.rows(), layer.columns] = layer.weights
    return weights


def _rows(title: str, names: list[str], weights: NDArray[np.float32]) -> str:
    labels = "".join(f"<span>{escape(name)}</span>" for name in names)
    return (
        f"<figure><div class='rows' style='--rows:{len(names)}'><div class='names'>{labels}</div>"
        f"{matrix(weights, what=title)}</div><figcaption>{title}</figcaption></figure>"
    )


def _movement(seen: Inspection) -> str:
    movement = seen.movement
    if movement is None:
        return ""
    survived, alone = {}, {}
    for layer, bits in movement.wiring.items():
        name = layer_name(layer)
        survived[name] = movement.survived(layer).tolist()
        if (without := movement.without_input(layer)).any():
            alone[name] = (without / bits.shape[2]).tolist()
    parts = []
    for lines, title in (
        (survived, "Share of the initial links that still exist"),
        (alone, "Share of a layer's neurons without incoming links"),
    ):
        if lines:
            drawn = curves(lines, movement.steps, what=title)
            parts.append(f"<figure>{drawn}<figcaption>{title}</figcaption></figure>")
    if (seen.actor.name, 0) in movement.wiring:
        parts.append(_heat(seen, movement))
    return f"<p>{movement}</p>{''.join(parts)}"


def _heat(seen: Inspection, movement: Movement) -> str:
    links = movement.per_input((seen.actor.name, 0)) / seen.actor.layers[0].n_out
    names = policy_names(seen.policy)
    order = _order(seen)
    points = np.unique(np.linspace(0, len(links) - 1, min(len(links), COLUMNS)).round().astype(int))
    shares = links[points][:, [names.index(name) for name in order]].T
    steps = [movement.steps[point] for point in points]
    title = f"Links of each feature in the {seen.actor.name}'s first layer: the stronger the colour, the more"
    return f"<figure>{heat(order, shares, steps, what=title)}<figcaption>{title}</figcaption></figure>"


def _neurons(seen: Inspection) -> str:
    if not seen.activity:
        return ""
    drawn = []
    for number, shares in enumerate(seen.activity.active):
        title = f"Hidden layer {number + 1}: {len(shares)} neurons by the share of steps in which they were active"
        picture = histogram(shares, bins=10, what=title, low="never", high="always")
        drawn.append(f"<figure>{picture}<figcaption>{title}</figcaption></figure>")
    result = seen.activity.result
    told = f"In {count(len(result.returns), 'episode')}, {count(result.steps, 'step')}."
    return f"<div class='side'>{''.join(drawn)}</div><p class='small'>{told}</p>"


def _table(names: tuple[str, ...] | list[str], rows: list[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _bar(share: float, text: str, mark: float | None = None) -> str:
    tick = "" if mark is None else f"<u style='left:{mark:.1%}'></u>"
    return f"<div class='bar'><div><s style='width:{share:.1%}'></s>{tick}</div><span>{text}</span></div>"
