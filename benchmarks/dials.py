"""Time to a gap in block units on unseen seeds: ``python -m benchmarks.dials [n ...]``.

CPU seconds until the certified gap first falls to 1e-3 and to 1e-4, as a multiple of what
`ot.da.sinkhorn_lpl1_mm` takes on the same clouds in the same run. Writes ``dials.json`` beside this
file (rows of other n stay) and docs/dials_benchmark.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ot

import structot as sot
from benchmarks.measure import quietly, say
from benchmarks.seeds import DISCOUNTS, charge, cloud, groups, unseen
from structot.datasets import ClusterProblem

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "dials_benchmark.md"
GAPS = (1e-3, 1e-4)
# What must hold at n = 1000, as multiples of the peer's time: at 1e-3 and at 1e-4.
GOALS = {0.5: (2.5, 6.0), 0.75: (2.5, 6.0), 10 / 11: (4.0, 12.0)}
LIMIT = 40.0  # times the peer's CPU time after which a solve is stopped


def cases(data: ClusterProblem) -> dict[str, tuple[Any, tuple[float | None, float | None]]]:
    """The structure of every row, and its goals."""
    rows: dict[str, tuple[Any, tuple[float | None, float | None]]] = {}
    for own in (False, True):
        side = "own targets" if own else "both sides"
        for d in DISCOUNTS:
            rows[f"{side}, d = {d:.2f}"] = groups(data, d, own), GOALS[d]
    rows["fixed charge, own targets"] = charge(data, True), (None, 5.0)
    rows["fixed charge, both sides"] = charge(data, False), (None, None)
    return rows


def peer(data: ClusterProblem) -> Callable[[], Any]:
    """POT's group lasso with the options of the other benchmarks."""
    M, a = data.cost, np.full(data.cost.shape[0], 1.0 / data.cost.shape[0])
    return lambda: ot.da.sinkhorn_lpl1_mm(a, data.source_labels, a, M / M.max(), reg=0.05, eta=0.1)


def seconds_to(M: Any, structure: Any, limit: float) -> list[float | None]:
    """CPU seconds to each of the gaps; None where the limit came first."""
    reached: dict[float, float] = {}
    start = time.process_time()

    def watch(state: Any) -> bool:
        now = time.process_time() - start
        for gap in GAPS:
            if state.gap <= gap:
                reached.setdefault(gap, now)
        return now > limit

    quietly(lambda: sot.solve(M, structure=structure, tol=min(GAPS), callback=watch))
    return [reached.get(gap) for gap in GAPS]


def measure(n: int, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """Ratios by row and seed, and the peer's seconds; after every seed what there is."""
    for structure, _ in cases(cloud(60, 0)).values():  # compiles
        seconds_to(cloud(60, 0).cost, structure, 10.0)
    ratios: dict[str, list[list[float | None]]] = {}
    peers = []
    for done, seed in enumerate(seeds, start=1):
        data = cloud(n, seed)
        for name, (structure, _) in cases(data).items():
            begin = time.process_time()
            quietly(peer(data))  # in turns, so that a slow spell hits both
            theirs = time.process_time() - begin
            ours = seconds_to(data.cost, structure, LIMIT * theirs)
            ratios.setdefault(name, []).append([None if x is None else x / theirs for x in ours])
            peers.append(theirs)
            say(f"  n = {n}, seed {seed}, {name}: {ratios[name][-1]}, peer {theirs:.2f} s")
        yield {"seeds": seeds[:done], "peer": statistics.median(peers), "ratios": ratios}


def table(results: dict[str, Any]) -> str:
    """The page: median and worst of every row."""
    lines = [
        "# Groups in block units: time to a certified gap",
        "",
        "Written by `python -m benchmarks.dials`. CPU time until the certified gap is reached, in",
        "multiples of that of `ot.da.sinkhorn_lpl1_mm` (which certifies nothing) on the same",
        "clouds in the same run: ten Gaussian classes, squared distances, `Discount(d)` in block",
        "units. Median and worst over seeds on which nothing was tuned (`benchmarks/seeds.py`).",
        f"A dash: not reached in {LIMIT:.0f} times the peer's time.",
    ]
    data = cloud(20, 0)
    for n in sorted(results, key=int):
        run = results[n]
        lines += ["", f"## n = {n}, {len(run['seeds'])} seeds, peer {run['peer']:.2f} CPU s", ""]
        lines += ["| row | 1e-3 | worst | goal | 1e-4 | worst | goal |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
        for name, (_, goals) in cases(data).items():
            cells = [name]
            for column, goal in enumerate(goals):
                values = [np.inf if x[column] is None else x[column] for x in run["ratios"][name]]
                cells += [_figure(statistics.median(values)), _figure(max(values))]
                cells.append("" if goal is None or n != "1000" else f"≤ {goal:g}×")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _figure(x: float) -> str:
    return f"{x:.1f}×" if np.isfinite(x) else "-"


def main() -> None:
    """Measure the sizes that were asked for and write the page."""
    parser = argparse.ArgumentParser(prog="benchmarks.dials", description=__doc__)
    parser.add_argument("n", nargs="*", type=int)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    path = HERE / "dials.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for n in arguments.n:
        for result in measure(n, unseen(arguments.seeds)):
            results[str(n)] = result
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main()
