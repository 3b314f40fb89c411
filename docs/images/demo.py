"""Draws the pictures of one run, so that they agree: demo.svg, inspected.svg and cheetah.gif.

make demo && .venv/bin/pip install '.[video]' && .venv/bin/python docs/images/demo.py runs/demo/seed3
"""

import subprocess
import sys
from pathlib import Path

from rich.console import Console

from rewirl.cli.commands.inspect import report
from rewirl.cli.ui.live.run_display import LiveDisplay
from rewirl.cli.ui.session import summary
from rewirl.experiments.analysis.wiring.inspection import look
from rewirl.storage import resume
from rewirl.training import Run

HERE = Path(__file__).parent


def screen(width: int, command: str) -> Console:
    console = Console(record=True, width=width, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115
    console.print(f"$ {command}\n", style="bold", highlight=False)
    return console


def draw_demo(run: Run) -> None:
    """The last screen of `rewirl demo`."""
    console = screen(100, "make demo")
    shown = LiveDisplay(console)
    for row in run.evaluations[-2:]:
        shown.pace.see(row.step, run.config.random_steps, now=row.seconds)
    console.print(shown.panel(run))
    for line in summary(run):
        console.print(line, highlight=False)
    (HERE / "demo.svg").write_text(console.export_svg(title="rewirl"))


def draw_inspection(folder: Path) -> None:
    console = screen(106, f"rewirl inspect {folder}")
    console.print(report(look(folder / "policy.safetensors"), features=24))
    (HERE / "inspected.svg").write_text(console.export_svg(title="rewirl"))


def film(folder: Path) -> None:
    size = ("--seconds", "5", "--width", "480", "--height", "270")
    subprocess.run(
        [sys.executable, "-m", "rewirl", "play", folder, "--gif", HERE / "cheetah.gif", *size],
        check=True,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw_demo(resume(folder))
    draw_inspection(folder)
    film(folder)
