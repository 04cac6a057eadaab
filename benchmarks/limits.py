"""Are time limits kept? Every method on a problem that takes longer, and what it took.

python -m benchmarks.limits --out benchmarks/limits.json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structot as sot
from structot.datasets import clusters

SIZES = {1000: (0.5, 1.0, 3.0), 3000: (10.0,)}


def allowed(size: int, limit: float) -> float:
    """What the call may take: a tenth or 0.3 s more, at n = 3000 fifteen per cent."""
    return limit + (max(0.1 * limit, 0.3) if size <= 1000 else 0.15 * limit)


def cases(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, cost and options of problems that are not solved to 1e-12 within the limits."""
    c = sot.concave
    data = clusters(n, n_classes=10)
    M, ys, yt = data.cost, data.source_labels, data.target_labels
    mean = M.mean()
    blocks = sot.Groups(ys, yt, c.Log(0.1), units="block")
    windows = [list(range(i, i + 50)) for i in range(0, n - 50, 25)]
    charge = sot.Modular() + sot.Coverage(ys, weights=0.02, units="block")
    pipes = sot.Groups(ys, yt, c.Truncation(500.0), units="cost")
    yield (
        "newton, thresholds",
        M,
        {"structure": sot.Groups(ys, yt, c.ThresholdSqrt(5.0), units="cost")},
    )
    yield "newton, blocks", M, {"structure": blocks}
    yield "newton, own targets", M, {"structure": sot.Groups(ys, None, c.Log(0.1), units="block")}
    yield "entropic, plain", M, {"reg": 1e-3 * mean}
    yield "entropic, groups", M, {"structure": blocks, "reg": 1e-2 * mean}
    yield "entropic, fixed charge", M, {"structure": charge, "reg": 1e-2 * mean}
    yield "splitting", M, {"structure": blocks, "method": "splitting"}
    yield "splitting, windows", M, {"structure": sot.Groups(windows, yt, c.Log(0.1), units="block")}
    yield "linear_program", M, {"structure": pipes, "method": "linear_program"}
    for method in ("mirror_descent", "saddle_mirror_descent", "mirror_prox"):
        yield method, M, {"structure": blocks, "method": method}
    yield "exact", M, {}
    few = clusters(15, n_classes=3)
    roots = sot.SetFunction(
        lambda S: float(S.any(axis=1).sum()) ** 0.5 + S.any(axis=0).sum() ** 0.5
    )
    yield "a function of the user, 15 × 15", few.cost, {"structure": sot.Modular() + roots}


def measure(n: int, limit: float) -> list[dict[str, Any]]:
    rows = []
    for name, M, options in cases(n):
        begin = time.perf_counter()
        result = sot.solve(M, tol=1e-12, time_limit=limit, **options)
        seconds = time.perf_counter() - begin
        row = {"case": name, "n": n, "limit": limit, "seconds": seconds}
        row |= {"status": result.status.name, "kept": seconds <= allowed(n, limit)}
        rows.append(row)
        print(f"{n:5d} {limit:5.1f} s  {seconds:6.2f} s  {row['status']:12s} {name}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.limits", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/limits.json"))
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    for _, M, options in cases(60):  # imports, compilation
        sot.solve(M, time_limit=0.5, **options)
    rows = [row for n, limits in SIZES.items() for limit in limits for row in measure(n, limit)]
    out.write_text(json.dumps(rows, indent=1) + "\n")
    over = [row for row in rows if not row["kept"]]
    print(f"{len(rows) - len(over)} of {len(rows)} kept")


if __name__ == "__main__":
    main()
