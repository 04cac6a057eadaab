"""``structot demo``: a look at everything, in minutes and without data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from structot import experiments
from structot.cli._common import Debug
from structot.cli.reproduce import run_experiments

__all__ = ["demo"]

SHOWN = ("clusters", "moons", "colors", "small_digits")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Compute everything anew.")] = False,
    debug: Debug = False,
) -> None:
    """Show what structured transport does: one report.html with figures and certified numbers.

    Point clouds, two moons, colour transfer and adaptation between 8×8 digits, in small versions;
    nothing is downloaded. A second call shows the results of the first.

    Examples:

    - `structot demo`

    - `structot demo --out /tmp/demo --force`
    """
    settings = experiments.Settings(jobs=jobs, quick=True)
    raise typer.Exit(run_experiments(list(SHOWN), out, settings, force=force, debug=debug))
