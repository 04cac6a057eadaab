"""Two batches of cells: which type is which, and which cell goes with which.

    python examples/cells.py [FOLDER]

Both batches were sorted into types, but the instrument has changed and so have the proportions. The
types of the second batch serve as groups without names: a plan must find out which is which. Drawn
are, on two principal components, the cells of the second batch (crosses) and where the plan maps
those of the first (dots), coloured by type, and below the mass between the types.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import structot as sot
from structot.datasets import ClusterProblem, cells


def solve(data: ClusterProblem) -> dict[str, sot.Result]:
    """Plain transport (routes at no charge), the discount of `Groups`, and `Routes`."""
    labels = data.source_labels, data.target_labels
    structures = {
        "plain transport": sot.Routes(*labels, charge=0.0),
        "Groups, discount 0.9": sot.Groups(*labels, sot.concave.Discount(0.9)),
        "Routes, charge 0.3": sot.Routes(*labels, charge=0.3),
    }
    return {
        name: sot.solve(data.cost, structure=structure, tol=1e-4)
        for name, structure in structures.items()
    }


def same_type(data: ClusterProblem, result: sot.Result) -> float:
    """The share of the mass that goes from a type to the same type."""
    return float(result.plan[data.source_labels[:, None] == data.target_labels].sum())


def possible(data: ClusterProblem) -> float:
    """The most of it that the proportions of the two batches allow."""
    shares = [np.bincount(y) / y.size for y in (data.source_labels, data.target_labels)]
    return float(np.minimum(*shares).sum())


def draw(data: ClusterProblem, results: dict[str, sot.Result]) -> plt.Figure:
    """Above the cells of batch 1 as the plan maps them into batch 2, below the mass by type."""
    colors = np.array(plt.get_cmap("Set1").colors)
    centre = data.Y.mean(axis=0)
    _, _, components = np.linalg.svd(data.Y - centre, full_matrices=False)
    figure, axes = plt.subplots(2, len(results), figsize=(9.6, 6.6), layout="constrained")
    for (name, result), (top, bottom) in zip(results.items(), axes.T, strict=True):
        for points, labels, marker, alpha in (
            (data.Y, data.target_labels, "x", 0.35),
            (result.barycentric_map(data.Y), data.source_labels, "o", 1.0),
        ):
            at = (points - centre) @ components[:2].T
            top.scatter(*at.T, c=colors[labels], marker=marker, s=16, linewidths=0.8, alpha=alpha)
        top.set(xticks=[], yticks=[])
        top.set_title(name, fontsize=11)
        bottom.imshow(result.block_mass().mass, cmap="Blues", vmin=0.0, vmax=0.25)
        bottom.set(xticks=range(5), yticks=range(5), ylabel="type in batch 1")
        bottom.set_xlabel(
            "type in batch 2\n"
            f"to the same type {same_type(data, result):.0%} of {possible(data):.0%} possible\n"
            f"linear cost {result.value_linear:.1f}, partners {result.partners.mean():.1f}",
            fontsize=10,
        )
    return figure


def main(folder: Path) -> None:
    """Solve, print, draw."""
    folder.mkdir(parents=True, exist_ok=True)
    data = cells(150, 200, seed=0)
    results = solve(data)
    for name, result in results.items():
        print(
            f"{name:22s} same type {same_type(data, result):.2f} (at most {possible(data):.2f})  "
            f"linear cost {result.value_linear:.1f}  partners {result.partners.mean():.1f}  "
            f"routes open {int((result.routes > 0.01).sum())}  gap {result.gap:.1e}"
        )
    draw(data, results).savefig(folder / "cells.png", dpi=80)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
