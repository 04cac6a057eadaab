"""One plan per family of structures, on the same points: the pictures of docs/theory.md.

    python examples/theory.py [FOLDER [NAME ...]]

Every plan comes with its certificate; the gap stands in the title.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import structot as sot
from structot.concave import Sqrt

LABELS = np.repeat([0, 1, 2], 4)
# Near ties between blocks need a small gap; functions without a fast prox get a larger one.
TOL, SLOW_TOL = 1e-6, 1e-3
SLOW = ("rank", "logdet", "set_function", "convex")


def cloud(seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of four points on both sides; the target is turned, so that classes mix."""
    data = sot.datasets.clusters(
        12, n_classes=3, spread=0.45, separation=1.2, shift=2.0, rotation=0.35, seed=seed
    )
    order = [np.lexsort((points[:, 0], LABELS)) for points in (data.X, data.Y)]
    return data.X[order[0]], data.Y[order[1]]


def structures(X: np.ndarray, Y: np.ndarray, M: np.ndarray) -> dict[str, sot.structures.Structure]:
    """Each family in the form in which one would use it on these points."""
    price = float(M.mean())
    near = [sot.groups.neighborhoods(points, 2) for points in (X, Y)]
    superclass = np.array([0, 0, 1])[LABELS]
    indicators = np.eye(3)[LABELS]
    center = [points - points.mean(axis=0) for points in (X, Y)]

    def spread(P: np.ndarray) -> float:
        return float(np.sum(M * P) + 6.0 * price * np.sum(P**2))

    plain = sot.Modular()
    return {
        "modular": plain,
        "groups": sot.Groups(LABELS, LABELS, Sqrt(), units="cost"),
        "overlapping": sot.Groups(*near, Sqrt(), units="cost"),
        "hierarchy": sot.Hierarchy(
            [LABELS, superclass], [LABELS, superclass], Sqrt(), units="cost"
        ),
        "coverage": plain + sot.Coverage(LABELS, LABELS, weights=2.0 * price),
        "routes": sot.Routes(LABELS, LABELS, charge=0.3),
        "rank": plain + 2.0 * price * sot.Rank(indicators, indicators),
        "logdet": plain + price * sot.LogDet(*center, sigma=1.0),
        "chain_cut": plain + sot.ChainCut(0.1 * price),
        "graph_cut": plain + sot.GraphCut(*map(knn_pairs, near), 0.1 * price),
        "set_function": plain + sot.SetFunction(classes_reached(price)),
        "convex": sot.ConvexCost(spread, lambda P: M + 12.0 * price * P),
    }


def classes_reached(price: float) -> Callable[[np.ndarray], float]:
    """A user's own function: √ of the number of target points that each source class reaches."""

    def value(mask: np.ndarray) -> float:
        reached = [mask[k == LABELS].any(axis=0) for k in range(3)]
        return price * sum(float(np.sqrt(row.sum())) for row in reached)

    return value


def knn_pairs(groups: list[np.ndarray]) -> list[tuple[int, int]]:
    """Neighbours as pairs of indices, each once."""
    pairs = {(min(i, int(j)), max(i, int(j))) for i, g in enumerate(groups) for j in g if j != i}
    return sorted(pairs)


def draw(X: np.ndarray, Y: np.ndarray, result: sot.Result, title: str, path: Path) -> None:
    """The points with their transport lines, and the plan beside them."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(6.4, 2.9), width_ratios=(1.25, 1), layout="constrained"
    )
    sot.plot.matching(X, Y, result, source_groups=LABELS, target_groups=LABELS, ax=left)
    sot.plot.plan(result, LABELS, LABELS, ax=right)
    left.set_title("")
    right.set_title("")
    figure.suptitle(f"{title}   (gap {result.gap:.0e})", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path, only: list[str]) -> None:
    """Solve and draw every family, or those named."""
    folder.mkdir(parents=True, exist_ok=True)
    X, Y = cloud()
    M = np.linalg.norm(X[:, None] - Y[None], axis=2)
    for name, structure in structures(X, Y, M).items():
        if only and name not in only:
            continue
        start = time.perf_counter()
        result = sot.solve(M, structure=structure, tol=SLOW_TOL if name in SLOW else TOL)
        seconds = time.perf_counter() - start
        print(f"{name:13s} {result.method:15s} gap {result.gap:.1e}  {seconds:.2f} s")
        draw(X, Y, result, name.replace("_", " "), folder / f"theory_{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"), sys.argv[2:])
