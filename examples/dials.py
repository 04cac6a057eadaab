"""Plain, by groups, by routes: three plans for the same points, and the path along a discount.

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


def shown(data: ClusterProblem) -> dict[str, sot.Result]:
    """The three answers of the picture; plain transport as routes without a charge."""
    labels = data.source_labels, data.target_labels
    structures = {
        "plain transport": sot.Routes(*labels, charge=0.0),
        "Groups, discount 0.9": sot.Groups(*labels, sot.concave.Discount(0.9)),
        "Routes, charge 0.3": sot.Routes(*labels, charge=0.3),
    }
    return {
        name: sot.solve(data.cost, structure=structure, tol=1e-7)
        for name, structure in structures.items()
    }


def draw(data: ClusterProblem, results: dict[str, sot.Result]) -> plt.Figure:
    """Points and plans side by side, with what each costs below."""
    labels = data.source_labels, data.target_labels
    figure, axes = plt.subplots(2, len(results), figsize=(7.2, 6.2), layout="constrained")
    for (name, result), (top, bottom) in zip(results.items(), axes.T, strict=True):
        sot.plot.matching(data.X, data.Y, result, *labels, ax=top)
        sot.plot.plan(result, *labels, ax=bottom).set(ylabel="")
        top.set_title(name, fontsize=12)
        bottom.set_xlabel(
            f"linear cost {result.value_linear:.1f}\n"
            f"concentration {result.concentration:.0%}\n"
            f"partners {result.partners.mean():.1f}",
            fontsize=12,
        )
    return figure


def along_discounts(data: ClusterProblem, discounts: np.ndarray) -> sot.Path:
    """One answer of `Groups` per discount."""
    labels = data.source_labels, data.target_labels
    structures = [sot.Groups(*labels, sot.concave.Discount(d)) for d in discounts]
    return sot.solve_path(data.cost, structures=structures, tol=1e-3)


def main(folder: Path) -> None:
    """Both pictures, for the clouds of three classes that the tests and the documents use."""
    folder.mkdir(parents=True, exist_ok=True)
    data = clusters(100, n_classes=3)
    results = shown(data)
    for name, result in results.items():
        print(f"{name}\n{result}")
    draw(data, results).savefig(folder / "dials.png", dpi=100)
    path = along_discounts(data, np.linspace(0.0, 0.95, 20))
    print(path)
    path.plot(label="discount").figure.savefig(folder / "path.png", dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
