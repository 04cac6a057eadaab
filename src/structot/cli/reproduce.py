"""``structot reproduce``: the paper's experiments by name, resumable."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from structot import experiments
from structot._extras import optional
from structot.cli._common import (
    BAD_INPUT,
    DONE,
    INPUT_ERRORS,
    NO_GAP,
    Debug,
    Interrupted,
    console,
    report_error,
)
from structot.experiments.page import write_html

__all__ = ["reproduce", "run_experiments"]


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help=", ".join(experiments.NAMES) + ", or all."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results and figures.")] = Path(
        "reproduction"
    ),
    data: Annotated[
        Path | None, typer.Option(envvar="STRUCTOT_DATA", help="Folder of the data sets.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repetitions; each experiment has its own default.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, minutes in all.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Compute everything anew.")] = False,
    debug: Debug = False,
) -> None:
    """Run the paper's experiments; stop and resume at will.

    Each writes OUT/NAME/results.json, report.md and its figures; OUT/report.html shows all of
    them. Finished tasks are kept, also after Ctrl-C, and are not computed again.

    Examples:

    - `structot reproduce clusters runtime`

    - `structot reproduce all --quick`

    - `structot reproduce digits --data ~/data --seeds 20 --jobs 2 --out runs`
    """
    wanted = list(experiments.NAMES) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        experiments.get(name)  # an unknown name is refused before anything runs
    settings = experiments.Settings(data=data, seeds=seeds, jobs=jobs, quick=quick)
    raise typer.Exit(run_experiments(wanted, out, settings, force=force, debug=debug))


def run_experiments(
    names: list[str],
    out: Path,
    settings: experiments.Settings,
    *,
    force: bool = False,
    debug: bool = False,
) -> int:
    """Run them one after the other and write the HTML report of all that went well; exit code.

    One that cannot run, for want of data say, does not keep the others from running.
    """
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; pass a folder.")
    optional("matplotlib", "the report")  # before the work, not after it
    finished, code = [], DONE
    try:
        for name in names:
            try:
                report = experiments.run(experiments.get(name), out, settings, force=force)
            except INPUT_ERRORS as error:
                code = max(code, report_error(error, debug, f"{name}: "))
                continue
            finished.append(name)
            if report.results.get("gaps_reached") is False:
                sys.stderr.write(f"{name}: some results did not reach their certified gap.\n")
                code = max(code, NO_GAP)
    except KeyboardInterrupt:
        raise Interrupted("what is finished is kept.") from None
    finally:
        # Also after Ctrl-C: what is finished can be looked at.
        if finished:
            path = write_html(out, _on_disk(out))
            console().print(f"wrote {os.path.abspath(path)}", markup=False)
    return code if finished else max(code, BAD_INPUT)


def _on_disk(out: Path) -> list[str]:
    """The experiments with results in this folder, these and those of earlier runs."""
    # What is written last; a run begun anew has none until it is finished.
    return [name for name in experiments.NAMES if (out / name / "run.json").exists()]
