"""What the benchmark says: docs/benchmarks.md, and the few lines of the README, from results.json.

Nothing in either is typed in by hand; a test compares both with the results.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import structot
from benchmarks.rows import Row, markdown, measured

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
MARKS = "<!-- benchmark ratios -->", "<!-- end of benchmark ratios -->"

# What the README shows: a sentence, and the rows it sums up by task and by the beginnings of their
# baselines.
LINES = (
    ("the paper's mirror prox (n = 100, gap 1e-2)", "mirror_prox", "mirror prox"),
    ("HiGHS on the linear program (n = 100 and 300, gap 1e-6)", "linear_program", "HiGHS"),
    ("HiGHS on the linear program of routes (n = 300, gap 1e-6)", "routes", "HiGHS"),
    (
        "POT's group lasso, which proves nothing (n = 300, 1000, ten classes, gaps 1e-3, 1e-4)",
        "block_units",
        "POT sinkhorn_lpl1_mm",
    ),
    (
        "POT's log-domain Sinkhorn (n = 1000, fixed charge with entropy, gap 1e-6)",
        "fixed_charge",
        "POT sinkhorn_log",
    ),
    ("plain Word Mover's Distance (SICK, bigrams, gap 1e-3)", "sentences", "POT emd2"),
)

PROSE = """\
# Benchmarks

Written by `make bench` from `benchmarks/results.json`; `python -m benchmarks.run --table` writes it
again without measuring. {version} with {packages}, on {cores} cores.

Every figure is a ratio within one run: ours and the peer in turns on the same problem, medians.
"Gap" is the certified gap of our answer; the answers of the peers carry no certificate. Rows
without a goal are shown for orientation. {met} of {judged} goals are met.

![How far each figure is from its goal](../benchmarks/results.png)

What the problems are: two-dimensional Gaussian classes with uniform weights and squared distances,
unless the row says otherwise. "Both sides" and "own targets" are groups in block units with
`Discount(d)`, labels on both sides or on the source alone, timed in processor seconds with one
thread for either; their seeds were drawn after all constants were chosen (`benchmarks/seeds.py`).
Thresholds α are in units of cost, as in the paper, so what they mean depends on the
scale of the costs: the goals at n = 1000 are for distances, where α = 5000 is about a tenth of what
a block costs in all, the hard regime; the same α with squared distances are shown below them. The
problem `0.3 Modular + Groups` costs no more per step than `Groups` alone, but is another problem,
with its own number of steps.

## Goals that are missed

{missed}

## All figures

{table}
"""


def read(path: Path = RESULTS) -> tuple[dict[str, Any], list[Row]]:
    """The environment and the rows of the last run."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    names = {field.name for field in fields(Row)}
    before = {"version": stored["environment"]["structot"]}  # of rows that do not tell their own
    rows = [
        Row(**{k: v for k, v in (before | row).items() if k in names}) for row in stored["rows"]
    ]
    return stored["environment"], rows


def page(environment: dict[str, Any], rows: list[Row]) -> str:
    """docs/benchmarks.md."""
    judged = [row for row in rows if row.limit is not None]
    missed = [row for row in judged if not row.met]
    lines = [
        f"- {row.case}, against {row.against}: {measured(row)}, the goal is {row.goal}."
        for row in missed
    ]
    packages = ("python", "numpy", "scipy", "numba", "POT")
    return PROSE.format(
        version=_versions(rows),
        packages=", ".join(f"{name} {environment[name]}" for name in packages),
        cores=environment["cores"],
        met=len(judged) - len(missed),
        judged=len(judged),
        missed="\n".join(lines) or "None.",
        table=markdown(rows),
    )


def with_ratios(text: str, rows: list[Row]) -> str:
    """The README with the ratios of these rows between its two marks."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    lines = [f"{_versions(rows)}. Our time against that of", ""]
    for sentence, task, against in LINES:
        summed = [row for row in rows if row.task == task and row.against.startswith(against)]
        ratios = [row.ratio for row in summed]
        lines.append(f"- {sentence}: {_span(min(ratios), max(ratios))}")
    return f"{before}{MARKS[0]}\n\n" + "\n".join(lines) + f"\n\n{MARKS[1]}{after}"


def write() -> None:
    """Both files, from the results there are."""
    environment, rows = read()
    PAGE.write_text(page(environment, rows), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    README.write_text(with_ratios(text, rows), encoding="utf-8")


def _versions(rows: list[Row]) -> str:
    """Which versions were measured, and that this is another one where it is."""
    versions = sorted({row.version for row in rows})
    text = f"Measured with version {' and '.join(versions)}"
    if versions == [structot.__version__]:
        return text
    return f"{text} (this is {structot.__version__}, and `make bench` has not been run since)"


def _span(low: float, high: float) -> str:
    """The best and the worst ratio in words."""
    if high < 1.0:
        low, high, word = 1.0 / high, 1.0 / low, "faster"
    elif low >= 1.0:
        word = "its time"
    else:
        return f"from {1 / low:.2g}× faster to {high:.2g}× its time"
    return f"{low:.3g}× {word}" if low == high else f"{low:.3g} to {high:.3g}× {word}"
