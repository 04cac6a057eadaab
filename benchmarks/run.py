"""Run the benchmark: ``python -m benchmarks.run [--quick] [--only NAME ...]``.

Writes ``results.json`` and ``results.png`` beside this file, puts the table into the README, and
prints it. ``--table`` only redraws and rewrites from the results there are.
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
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks import adaptation, images, sentences, structures, tasks
from benchmarks.draw import draw
from benchmarks.measure import say
from benchmarks.rows import Row, markdown

TASKS = dict(tasks.TASKS)
for _task in (
    structures.modular_part,
    structures.neighborhoods,
    adaptation.adaptation,
    images.color_transfer,
    sentences.sentences,
):
    TASKS[_task.__name__] = _task

HERE = Path(__file__).resolve().parent
MARKS = "<!-- benchmark table -->", "<!-- end of benchmark table -->"


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
        rows[name] = TASKS[name](arguments.quick)
        say(f"  {name} took {time.perf_counter() - start:.0f} s")
        _write(rows, folder)
    ordered = _ordered(rows)
    draw(ordered, folder / "results.png")
    print(markdown(ordered))
    if not arguments.quick:
        readme = HERE.parent / "README.md"
        readme.write_text(with_table(readme.read_text(encoding="utf-8"), ordered), encoding="utf-8")
    say(f"wrote {folder / 'results.json'} and {folder / 'results.png'}")


def _ordered(rows: dict[str, list[Row]]) -> list[Row]:
    return [row for name in TASKS for row in rows.get(name, [])]


def _write(rows: dict[str, list[Row]], folder: Path) -> None:
    """After every task, so that an interrupted run keeps what it has measured."""
    listed = [{**asdict(row), "met": row.met} for row in _ordered(rows)]
    text = json.dumps({"environment": _environment(), "rows": listed}, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")


def with_table(text: str, rows: list[Row]) -> str:
    """The README with the table of these rows between its two marks."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{markdown(rows)}\n\n{MARKS[1]}{after}"


def earlier(path: Path) -> dict[str, list[Row]]:
    """The rows of an earlier run, by task."""
    rows: dict[str, list[Row]] = {}
    if path.exists():
        names = {field.name for field in fields(Row)}
        for entry in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            row = Row(**{key: value for key, value in entry.items() if key in names})
            rows.setdefault(row.task, []).append(row)
    return rows


def _environment() -> dict[str, Any]:
    packages = ("structot", "numpy", "scipy", "numba", "POT")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "cores": os.cpu_count(), **versions}


if __name__ == "__main__":
    main()
