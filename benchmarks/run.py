"""Run the benchmark: ``python -m benchmarks.run [--quick] [--only NAME ...]``.

Writes ``results.json`` and ``results.png`` beside this file, ``docs/benchmarks.md`` and the ratios
of the README, and prints the table. ``--table`` only redraws and rewrites from the results there
are.
Tasks left out by ``--only`` keep their earlier rows. ``--quick`` runs small versions, for which the
goals mean little, and writes into ``benchmarks/quick``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import structot
from benchmarks import (
    adaptation,
    batch,
    dials,
    entropic,
    images,
    relaxed,
    report,
    routes,
    sentences,
    structures,
    tasks,
)
from benchmarks.draw import draw
from benchmarks.measure import say
from benchmarks.rows import Row, markdown

TASKS = dict(tasks.TASKS)
for _task in (
    dials.block_units,
    dials.paths,
    dials.large,
    structures.modular_part,
    structures.neighborhoods,
    entropic.entropic_groups,
    batch.many_problems,
    routes.routes,
    relaxed.relaxed_marginals,
    adaptation.adaptation,
    images.color_transfer,
    sentences.sentences,
):
    TASKS[_task.__name__] = _task

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Parse the command line, run the tasks, write and print what came out."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small problems, about a minute")
    parser.add_argument(
        "--only", nargs="+", choices=sorted(TASKS), metavar="NAME", help=", ".join(TASKS)
    )
    parser.add_argument("--table", action="store_true", help="measure nothing, rewrite the table")
    arguments = parser.parse_args()
    folder = HERE / "quick" if arguments.quick else HERE
    folder.mkdir(exist_ok=True)

    rows = earlier(folder / "results.json") if arguments.only or arguments.table else {}
    for name in [] if arguments.table else arguments.only or TASKS:
        say(f"{name}: {(TASKS[name].__doc__ or '').splitlines()[0]}")
        start = time.perf_counter()
        measured = TASKS[name](arguments.quick)
        rows[name] = [replace(row, version=structot.__version__) for row in measured]
        say(f"  {name} took {time.perf_counter() - start:.0f} s")
        _write(rows, folder)
    ordered = _ordered(rows)
    draw(ordered, folder / "results.png")
    print(markdown(ordered))
    if not arguments.quick:
        report.write()
    say(f"wrote {folder / 'results.json'} and {folder / 'results.png'}")


def _ordered(rows: dict[str, list[Row]]) -> list[Row]:
    return [row for name in TASKS for row in rows.get(name, [])]


def _write(rows: dict[str, list[Row]], folder: Path) -> None:
    """After every task, so that an interrupted run keeps what it has measured."""
    listed = [{**asdict(row), "met": row.met} for row in _ordered(rows)]
    text = json.dumps({"environment": _environment(), "rows": listed}, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")


def earlier(path: Path) -> dict[str, list[Row]]:
    """The rows of an earlier run, by task."""
    rows: dict[str, list[Row]] = {}
    for row in report.read(path)[1] if path.exists() else ():
        rows.setdefault(row.task, []).append(row)
    return rows


def _environment() -> dict[str, Any]:
    packages = ("structot", "numpy", "scipy", "numba", "POT")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "cores": os.cpu_count(), **versions}


if __name__ == "__main__":
    main()
