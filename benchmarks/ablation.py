"""What each option of `solvers.Newton` buys: ``python -m benchmarks.ablation``.

Every option is switched off, or changed where it cannot be, one at a time, on seeds that no tuning
has seen. The figure is the geometric mean, over the seeds, of CPU time to the gap relative to the
defaults on the same problem in the same run. Writes docs/ablation.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import structot as sot
from benchmarks.measure import quietly, say
from benchmarks.seeds import charge, cloud, groups, unseen

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ablation.md"
TOL = 1e-4
LIMIT = 4000  # Newton steps after which a run is stopped, and counted as it stands
CHANGES: dict[str, dict[str, Any]] = {
    "first ρ 10 times larger": {"rho": 10.0},
    "first ρ 10 times smaller": {"rho": 0.1},
    "inner problems 10 times more exact": {"accuracy": 0.03},
    "4 inner steps instead of 12": {"inner_steps": 4},
    "40 inner steps": {"inner_steps": 40},
    "first reach 100 times longer": {"reach": 1.0},
    "first reach 100 times shorter": {"reach": 1e-4},
    "10 times the background": {"background": 3.0},
    "no background": {"background": 0.0},
    "a certificate after every inner problem": {"certify_every": 1},
    "a certificate every 24 steps": {"certify_every": 24},
    "no problem between clusters": {"clusters": 0.0},
    "no search": {"search_every": 0},
    "no polishing": {"polish": 0},
}


def problems(n: int, seed: int) -> dict[str, tuple[Any, Any]]:
    """One of each kind: cost and structure."""
    data = cloud(n, seed)
    M, distances = data.cost, np.sqrt(data.cost)
    labels = data.source_labels, data.target_labels
    # A tenth of what a block costs in all: the hard regime; all of it: nearly plain transport; a
    # ten-thousandth: blocks as a whole.
    hard = 0.1 * float(distances.sum()) / 100
    threshold = sot.concave.ThresholdSqrt
    return {
        "both sides, d = 0.75": (M, groups(data, 0.75, own=False)),
        "own targets, d = 0.75": (M, groups(data, 0.75, own=True)),
        "threshold, hard": (distances, sot.Groups(*labels, threshold(hard), units="cost")),
        "threshold, weak": (distances, sot.Groups(*labels, threshold(10 * hard), units="cost")),
        "threshold, small": (distances, sot.Groups(*labels, threshold(hard / 1e3), units="cost")),
        "fixed charge, own targets": (M, charge(data, own=True)),
    }


def cpu_seconds(M: Any, structure: Any, options: dict[str, Any]) -> tuple[float, bool]:
    """CPU time of a solve, and whether it converged."""
    start = time.process_time()
    method = sot.solvers.Newton(**options)
    result = quietly(
        lambda: sot.solve(M, structure=structure, method=method, tol=TOL, max_iter=LIMIT)
    )
    return time.process_time() - start, bool(result.converged)


def measure(n: int, seeds: list[int]) -> Iterator[dict[str, dict[str, tuple[float, int]]]]:
    """By change and problem: geometric mean of time ratios, and how often the gap was missed.

    After every seed what there is.
    """
    for M, structure in problems(60, 0).values():
        cpu_seconds(M, structure, {})  # compiles
    ratios: dict[str, dict[str, list[float]]] = {}
    missed: dict[str, dict[str, int]] = {}
    for seed in seeds:
        say(f"  seed {seed}")
        for kind, (M, structure) in problems(n, seed).items():
            base, _ = cpu_seconds(M, structure, {})
            for name, options in CHANGES.items():
                seconds, converged = cpu_seconds(M, structure, options)
                ratios.setdefault(name, {}).setdefault(kind, []).append(seconds / base)
                missed.setdefault(name, {}).setdefault(kind, 0)
                missed[name][kind] += not converged
        yield {
            name: {
                kind: (float(np.exp(np.mean(np.log(values)))), missed[name][kind])
                for kind, values in kinds.items()
            }
            for name, kinds in ratios.items()
        }


def table(n: int, seeds: int, results: dict[str, dict[str, tuple[float, int]]]) -> str:
    """The page."""
    kinds = list(problems(20, 0))
    lines = [
        "# What the options of Newton buy",
        "",
        f"Written by `python -m benchmarks.ablation --n {n} --seeds {seeds}`: one option changed",
        "at a time, ten classes, gap 1e-4, on seeds that no tuning has seen. CPU time relative to",
        "the defaults on the same problems in the same run, geometric mean over seeds; above 1 the",
        "default is better. In brackets how often the gap was not reached.",
        "",
        f"| change | {' | '.join(kinds)} | all |",
        f"| --- |{' ---: |' * (len(kinds) + 1)}",
    ]
    for name, row in results.items():
        cells = [f"{x:.2f}" + (f" ({misses})" if misses else "") for x, misses in row.values()]
        every = float(np.exp(np.mean([np.log(x) for x, _ in row.values()])))
        lines.append(f"| {name} | {' | '.join(cells)} | {every:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="benchmarks.ablation", description=__doc__)
    parser.add_argument("--n", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    for done, results in enumerate(measure(arguments.n, unseen(arguments.seeds)), start=1):
        PAGE.write_text(table(arguments.n, done, results), encoding="utf-8")


if __name__ == "__main__":
    main()
