"""What the dial does: the same points at three discounts, and the path between them.

    python examples/dials.py [FOLDER]

Draws the first picture of the README and the path of docs/choosing.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import structot as sot
from structot.datasets.synthetic import ClusterProblem, clusters

SHOWN = (0.0, 0.65, 0.9)  # discounts


def solve(data: ClusterProblem, discounts: np.ndarray, tol: float) -> sot.Path:
    """One answer per discount."""
    labels = data.source_labels, data.target_labels
    structures = [sot.Groups(*labels, sot.concave.Discount(d)) for d in discounts]
    return sot.solve_path(data.cost, structures=structures, tol=tol)


def draw(data: ClusterProblem, path: sot.Path) -> plt.Figure:
    """Points and plans side by side, with what each costs below."""
    labels = data.source_labels, data.target_labels
    figure, axes = plt.subplots(2, len(path), figsize=(9, 6.6), layout="constrained")
    table = path.table()
    for k, (result, (top, bottom)) in enumerate(zip(path, axes.T, strict=True)):
        sot.plot.matching(data.X, data.Y, result, *labels, ax=top)
        sot.plot.plan(result, *labels, ax=bottom).set(ylabel="")
        name = f"discount {path.dials[k]:g}"
        top.set_title(f"{name} (plain transport)" if path.dials[k] == 0 else name, fontsize=11)
        bottom.set_xlabel(
            f"linear cost {table['linear'][k]:.1f}\n"
            f"concentration {table['concentration'][k]:.0%}\n"
            f"partners {table['partners'][k]:.1f}",
            fontsize=11,
        )
    return figure


def main(folder: Path) -> None:
    """Both pictures, for the clouds of three classes that the tests and the documents use."""
    folder.mkdir(parents=True, exist_ok=True)
    data = clusters(100, n_classes=3)
    path = solve(data, np.array(SHOWN), tol=1e-5)
    print(path)
    draw(data, path).savefig(folder / "dials.png", dpi=80)
    path = solve(data, np.linspace(0.0, 0.95, 20), tol=1e-3)
    print(path)
    path.plot(label="discount").figure.savefig(folder / "path.png", dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
