"""Two point clouds of three classes: plain transport mixes them, structured transport does not.

Solves the clustered point-cloud problem of the paper's Figure 1 for a sweep of thresholds, prints
each certified result and saves one picture.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import structot as sot
from structot.datasets.synthetic import clusters


def within_class(plan: np.ndarray, source: np.ndarray, target: np.ndarray) -> float:
    """Share of the mass that stays in its class."""
    return float(plan[source[:, None] == target[None, :]].sum() / plan.sum())


def main(out: Path) -> Path:
    data = clusters(100, n_classes=3)
    labels = data.source_labels, data.target_labels
    problems = {"plain transport": None}
    for alpha in (1e4, 4e3, 1e3):
        problems[f"structured, α = {alpha:g}"] = sot.Groups(
            *labels, sot.concave.ThresholdSqrt(alpha), units="cost"
        )
    figure, axes = plt.subplots(2, 4, figsize=(12, 6.2), layout="constrained")
    for (name, structure), (top, bottom) in zip(problems.items(), axes.T, strict=True):
        result = sot.solve(data.cost, structure=structure, tol=1e-6)
        share = within_class(result.plan, *labels)
        print(f"{name}\n{result}\n  in class     {share:.0%} of the mass\n")
        sot.plot.matching(data.X, data.Y, result, *labels, ax=top)
        sot.plot.plan(result, *labels, ax=bottom)
        top.set_title(f"{name}\n{share:.0%} of the mass stays in its class", fontsize=10)
        bottom.set(xlabel="", ylabel="")
    axes[1, 0].set(xlabel="target points", ylabel="source points")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "clusters.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the picture")
    print("wrote", main(parser.parse_args().out))
