"""Draws docs/images/inspected.svg: what `rewirl inspect` prints about the demo's agent.

make demo && .venv/bin/python docs/images/inspected.py runs/demo/seed3
"""

import sys
from pathlib import Path

from rich.console import Console

from rewirl.cli.inspect import report
from rewirl.training.inspection import look

console = Console(record=True, width=106, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115
console.print(f"$ rewirl inspect {sys.argv[1]}\n", style="bold", highlight=False)
console.print(report(look(Path(sys.argv[1]) / "policy.safetensors"), features=24))
Path(__file__).with_name("inspected.svg").write_text(console.export_svg(title="rewirl"))
