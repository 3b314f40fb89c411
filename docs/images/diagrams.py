"""Draws docs/images/quads.svg and docs/images/layout.svg, the diagrams of docs/performance.md.

python docs/images/diagrams.py
"""

from __future__ import annotations

from pathlib import Path

COLOURS = ["#2f6fde", "#d9731a", "#2a9d5c", "#a04fc4"]  # one per input

# The card is opaque, so the diagram is readable on a page of either colour.
STYLE = """
  .card { fill: #f6f8fa; stroke: #d0d7de; }
  .cell { fill: #ffffff; stroke: #8c959f; }
  .faint { fill: #e4e8ec; stroke: #b6bec8; }
  text { font: 15px system-ui, sans-serif; fill: #1f2328; }
  .head { font-weight: 600; }
  .small { font-size: 13px; fill: #57606a; }
  .neuron { fill: #ffffff; stroke: #57606a; stroke-width: 1.5; }
  .arrow { stroke: #57606a; stroke-width: 1.5; fill: none; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #161b22; stroke: #30363d; }
    .cell { fill: #0d1117; stroke: #6e7681; }
    .faint { fill: #21262d; stroke: #484f58; }
    text { fill: #e6edf3; }
    .small { fill: #9da7b3; }
    .neuron { fill: #0d1117; stroke: #9da7b3; }
    .arrow { stroke: #9da7b3; }
  }
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{words}</text>'


def cell(x: float, y: float, width: float, words: str = "", colour: str | None = None, kind: str = "cell") -> str:
    tint = f' style="fill:{colour};fill-opacity:.28;stroke:{colour}"' if colour else ""
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="26" rx="3" class="{kind}"{tint}/>'
    return box + (text(x + width / 2, y + 18, words) if words else "")


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="card" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
            *parts,
            "</svg>\n",
        ]
    )


def quad(left: float, title: str, where: str, input_of: list[int]) -> list[str]:
    """One quad: `input_of` names the input whose link reaches each of the four outputs."""
    inputs = sorted(set(input_of))
    parts = [text(left + 130, 34, title, "head"), text(left + 130, 54, where, "small")]
    rows = [85 + 36 * output for output in range(4)]
    middle = sum(rows) / 4
    heights = {i: middle + 36 * (n - (len(inputs) - 1) / 2) for n, i in enumerate(inputs)}
    for output, i in enumerate(input_of):
        ends = f'x1="{left + 55:g}" y1="{heights[i]:g}" x2="{left + 205:g}" y2="{rows[output]:g}"'
        parts.append(f'<line {ends} stroke="{COLOURS[i]}" stroke-width="2.5"/>')
    for i in inputs:
        parts.append(f'<circle cx="{left + 55:g}" cy="{heights[i]:g}" r="11" class="neuron"/>')
        parts.append(text(left + 30, heights[i] + 5, f"x{chr(0x2080 + i)}"))
    for output, y in enumerate(rows):
        parts.append(f'<circle cx="{left + 205:g}" cy="{y}" r="11" class="neuron"/>')
        parts.append(text(left + 234, y + 5, f"y{chr(0x2080 + output)}"))
    parts.append(text(left + 130, 240, "weights in memory", "small"))
    parts += [cell(left + 58 + 36 * n, 250, 36, f"w{chr(0x2080 + n)}", COLOURS[i]) for n, i in enumerate(input_of)]
    loads = "1 load" if len(inputs) == 1 else f"{len(inputs)} loads"
    parts.append(text(left + 130, 304, f"{loads} of activations,"))
    parts.append(text(left + 130, 324, "4 multiply-adds"))
    return parts


def quads() -> str:
    parts = quad(10, "One input", "dense layers, blocks of 4", [0, 0, 0, 0])
    parts += quad(290, "Two inputs", "most quads at 50% sparsity", [0, 1, 0, 1])
    parts += quad(570, "Four inputs", "very sparse layers, leftovers", [0, 1, 2, 3])
    return svg(840, 345, "Three forms of a quad: four outputs fed by one, two or four inputs", parts)


def layout() -> str:
    """One link: a row of the input times a weight, added to a row of the output."""
    vectors, width, names = 4, 62, ["x₀", "x₁", "x₂", "x₃"]
    parts = [text(200, 34, "Input activations, feature-major", "head"), text(200, 54, "one row per feature", "small")]
    for row, name in enumerate(names):
        y = 70 + 34 * row
        parts.append(text(34, y + 18, name))
        for v in range(vectors):
            parts.append(cell(55 + width * v, y, width, colour=COLOURS[0] if row == 2 else None))
        parts.append(cell(55 + width * vectors, y, 26, kind="faint"))
    parts.append(text(55 + width / 2, 222, "8 samples", "small"))
    parts.append(text(55 + width * vectors + 13, 222, "padding", "small"))
    parts.append('<path class="arrow" d="M350 151 H408 M476 151 H528 m-8 -5 l8 5 l-8 5"/>')
    parts.append(cell(412, 138, 60, "× w", COLOURS[1]))
    parts.append(text(442, 190, "one link:", "small"))
    parts.append(text(442, 208, "one weight,", "small"))
    parts.append(text(442, 226, "whole vectors", "small"))
    parts.append(text(690, 34, "Output activations", "head"))
    parts.append(text(690, 54, "stay in registers until the row is done", "small"))
    for row, name in enumerate(["y₀", "y₁", "y₂", "y₃"]):
        y = 70 + 34 * row
        parts.append(text(550, y + 18, name))
        for v in range(vectors):
            lit = row == 2
            parts.append(cell(570 + width * v, y, width, "+ w·x₂" if lit else "", COLOURS[0] if lit else None))
        parts.append(cell(570 + width * vectors, y, 26, kind="faint"))
    return svg(870, 242, "Feature-major activations: a link multiplies one row by one weight", parts)


if __name__ == "__main__":
    folder = Path(__file__).parent
    (folder / "quads.svg").write_text(quads())
    (folder / "layout.svg").write_text(layout())
