"""Draws docs/images/demo.svg: the last screen of a run, as `rewirl demo` shows it.

make demo && .venv/bin/python docs/images/demo.py runs/demo/seed3
"""

import sys
from pathlib import Path

from rich.console import Console

from rewirl.cli.display import LiveDisplay
from rewirl.cli.session import summary
from rewirl.training import resume

run = resume(Path(sys.argv[1]))
console = Console(record=True, width=100, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115
shown = LiveDisplay(console)
for row in run.evaluations[-2:]:
    shown.pace.see(row.step, run.config.random_steps, now=row.seconds)
console.print("$ make demo\n", style="bold")
console.print(shown.panel(run))
for line in summary(run):
    console.print(line, highlight=False)
Path(__file__).with_name("demo.svg").write_text(console.export_svg(title="rewirl"))
