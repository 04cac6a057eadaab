"""Two checkouts in one run: how much slower or faster is the second, case by case?

    python -m benchmarks.versions OLD_CHECKOUT NEW_CHECKOUT --out versions.json

Each version works in a process of its own, which imports and compiles once; then the two take
turns, so that both meet the same noise. A figure is the ratio of the medians of the turns. Newton
methods take other numbers of steps after any change of the last digit, so that cases run over
several seeds and the geometric mean over them is what counts. ``--table`` takes the timed rows of
the benchmark of 0.1 instead, each with the problems and the size it has there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TURNS = 5
SEEDS = (11, 12, 13)


def _solve(M: Any, **options: Any) -> Callable[[], Any]:
    import structot as sot

    return lambda: sot.solve(M, time_limit=10.0, **options)


def _case(name: str, seed: int) -> Callable[[], Any]:
    """What a version has to do; built outside the timing."""
    import structot as sot
    from structot.datasets import clusters

    c = sot.concave
    if name in TABLE:
        return _row(name)
    kind, _, detail = name.partition(" ")
    size = {"both": 300, "own": 200, "charge": 500, "plain": 500, "exact": 500, "sum": 200}
    data = clusters(size.get(kind, 80), n_classes=10 if kind in size else 3, seed=seed)
    M, ys, yt = data.cost, data.source_labels, data.target_labels
    if kind == "both":
        return _solve(M, structure=sot.Groups(ys, yt, c.ThresholdSqrt(float(detail)), units="cost"))
    if kind == "sum":
        groups = sot.Groups(ys, yt, c.ThresholdSqrt(float(detail)), units="cost")
        return _solve(M, structure=0.3 * sot.Modular() + groups)
    if kind == "own":
        return _solve(
            M, structure=sot.Groups(ys, None, c.ThresholdSqrt(float(detail)), units="cost")
        )
    if kind == "charge":
        charge = sot.Modular() + sot.Coverage(ys, weights=0.02, units="block")
        return _solve(M, structure=charge, reg=float(detail) * M.mean())
    if kind == "plain":
        return _solve(M, reg=float(detail) * M.mean())
    if kind == "exact":
        return _solve(M)
    if kind == "splitting":
        windows = [list(range(i, i + 12)) for i in range(0, 70, 6)]
        return _solve(M, structure=sot.Groups(windows, yt, c.Sqrt(), units="block"), tol=1e-3)
    if kind == "cut":
        return _solve(M, structure=sot.Modular() + sot.ChainCut(M.mean()), tol=1e-3)
    if kind == "mirror_prox":
        groups = sot.Groups(ys, yt, c.ThresholdSqrt(1000.0), units="cost")
        return _solve(M, structure=groups, method="mirror_prox", max_iter=60)
    if kind == "linear_program":
        groups = sot.Groups(ys, yt, c.Truncation(1000.0), units="cost")
        return _solve(M, structure=groups, method="linear_program")
    if kind == "small":
        small = clusters(12, n_classes=3, seed=seed)
        groups = sot.Groups(small.source_labels, small.target_labels, c.Sqrt(), units="block")
        return lambda: [sot.solve(small.cost, structure=groups) for _ in range(20)]
    if kind == "sentences":
        rng = np.random.default_rng(seed)
        words = [f"w{i}" for i in range(300)]
        mover = sot.text.WordMover((words, rng.normal(size=(300, 50))))
        texts = [" ".join(rng.choice(words, 10)) for _ in range(40)]
        return lambda: mover.pairwise(texts, n_jobs=1)
    raise ValueError(name)


def _row(name: str) -> Callable[[], Any]:
    """What a row of the benchmark of 0.1 times; thresholds in units of cost."""
    import structot as sot
    from structot.datasets import clusters, two_moons

    c = sot.concave
    kind, _, detail = name.removeprefix("row ").partition(" ")

    def groups(data: Any, g: Any, own: bool = False) -> Any:
        targets = None if own else data.target_labels
        return sot.Groups(data.source_labels, targets, g, units="cost")

    if kind == "paper":
        data = clusters(100, n_classes=3, seed=0)
        return _solve(data.cost, structure=groups(data, c.ThresholdSqrt(5.0)), tol=1e-2)
    if kind == "pieces":
        data = clusters(int(detail), n_classes=3, seed=0)
        block = data.cost.sum() / 9
        g = c.PiecewiseLinear([0.01 * block, 0.1 * block], [1.0, 0.3, 0.05])
        return _solve(data.cost, structure=groups(data, g), tol=1e-6)
    if kind == "sum":
        problems = [clusters(300, n_classes=3, seed=seed) for seed in (3, 4, 5, 6, 7)]
        sums = [0.3 * sot.Modular() + groups(x, c.ThresholdSqrt(float(detail))) for x in problems]
        return lambda: [sot.solve(x.cost, structure=F) for x, F in zip(problems, sums)]
    if kind == "moons":
        moons = two_moons(100, seed=0)
        near = [sot.groups.neighborhoods(x, int(detail)) for x in (moons.X, moons.Y)]
        structure = sot.Groups(*near, c.ThresholdSqrt(1.0), units="cost")
        return lambda: sot.solve(moons.cost, structure=structure, tol=1e-3)
    data = clusters(2000 if kind == "grown" else 1000, n_classes=10, seed=0)
    M = data.cost
    if kind == "charge":
        charge = sot.Coverage(data.source_labels, weights=0.02, units="block")
        return _solve(M, structure=sot.Modular() + charge, reg=0.05 * M.mean(), tol=1e-6)
    if kind == "own":
        return _solve(
            M / M.max(), structure=groups(data, c.ThresholdSqrt(float(detail)), True), tol=1e-3
        )
    M = M if kind == "squares" else M**0.5
    return lambda: sot.solve(M, structure=groups(data, c.ThresholdSqrt(float(detail))))


TABLE = (
    *("row paper", "row pieces 100", "row pieces 300"),
    *(
        f"row {kind} {alpha}"
        for kind in ("distances", "squares")
        for alpha in (5, 400, 50000, 5000)
    ),
    *("row own 0.01", "row own 1", "row charge", "row grown 400"),
    *(f"row sum {alpha}" for alpha in (5, 400, 5000, 50000)),
    *("row moons 5", "row moons 10"),
)
CASES = (
    *(f"both {alpha}" for alpha in (5, 400, 5000, 50000)),
    *("sum 400", "sum 50000", "own 5", "own 400"),
    *("charge 0.05", "charge 0.01", "plain 0.05", "plain 0.005", "exact"),
    *("splitting", "cut", "mirror_prox", "linear_program", "small", "sentences"),
)


def work() -> None:
    """A worker: a case and a seed per line of input, seconds and steps per line of output."""
    warnings.simplefilter("ignore")
    ready: dict[tuple[str, int], Callable[[], Any]] = {}
    for line in sys.stdin:
        name, seed = json.loads(line)
        if (name, seed) not in ready:
            ready[name, seed] = _case(name, seed)
            ready[name, seed]()  # compilation and first touch
        begin = time.perf_counter()
        answer = ready[name, seed]()
        seconds = time.perf_counter() - begin
        steps, gap = getattr(answer, "n_iter", 0), getattr(answer, "gap", 0.0)
        print(json.dumps([seconds, int(steps), float(gap)]), flush=True)


class Version:
    """A checkout with its worker."""

    def __init__(self, root: Path) -> None:
        here = Path(__file__).resolve().parents[1]
        environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{here}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.versions", "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, name: str, seed: int) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, seed]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(old: Version, new: Version, name: str, turns: int) -> dict[str, Any]:
    """Medians over the turns of both versions, for every seed, and the mean of their ratios."""
    rows = []
    for seed in (0,) if name in TABLE else SEEDS:
        found = [(old.run(name, seed), new.run(name, seed)) for _ in range(turns)]
        medians = [float(np.median([pair[k][0] for pair in found])) for k in (0, 1)]
        (_, old_steps, old_gap), (_, new_steps, new_gap) = found[-1]
        rows.append(
            {
                "seed": seed,
                "seconds": medians,
                "ratio": medians[1] / medians[0],
                "steps": [old_steps, new_steps],
                "gaps": [old_gap, new_gap],
            }
        )
    ratio = float(np.exp(np.mean([np.log(row["ratio"]) for row in rows])))
    return {"case": name, "ratio": ratio, "seeds": rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.versions", description=__doc__)
    parser.add_argument("old", type=Path, nargs="?")
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--table", action="store_true", help="the rows of the benchmark of 0.1")
    parser.add_argument("--only", nargs="*", help="cases whose names begin so")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.work:
        work()
        return
    old, new = Version(options.old), Version(options.new)
    results = []
    for name in TABLE if options.table else CASES:
        if options.only and not any(name.startswith(only) for only in options.only):
            continue
        results.append(compare(old, new, name, options.turns))
        row = results[-1]
        steps = "  ".join(f"{a}→{b}" for a, b in (seed["steps"] for seed in row["seeds"]))
        seconds = "  ".join(f"{a:.3f}→{b:.3f}" for a, b in (s["seconds"] for s in row["seeds"]))
        print(f"{name:16s} {row['ratio']:.2f}   steps {steps}   seconds {seconds}", flush=True)
    mean = float(np.exp(np.mean([np.log(row["ratio"]) for row in results])))
    print(f"{'all':16s} {mean:.2f}   (geometric mean; below 1 the second is faster)")
    old.close()
    new.close()
    if options.out is not None:
        options.out.write_text(json.dumps({"ratio": mean, "cases": results}, indent=1))


if __name__ == "__main__":
    main()
