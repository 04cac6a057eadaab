"""The paper's Figure 1: clustered point clouds, plans of three kinds, concentration against α.

Notation: X, Y points; ys, yt their classes; M = |X_i - Y_j|²; α threshold of g.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structot._typing import Array
from structot.concave import ThresholdSqrt
from structot.datasets.synthetic import ClusterProblem, clusters
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._sweep import Draws, draw_plans, names, record, solve_kind, sweep, words
from structot.experiments._tables import number, reached, table
from structot.result import Result
from structot.structures.groups import Groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "block_concentration", "compute"]

N_POINTS, N_CLASSES = 100, 3
SHOWN = (100.0, 4e3, 1e4)  # thresholds whose plans are drawn
TOL = 1e-4


def block_concentration(plan: Array, source: Array, target: Array) -> float:
    """Σ_k max_l P(U_k × V_l) / Σ P: the share of the mass that goes to its class's main class.

    It is 1 when each source class goes to one target class as a whole, and about one over the
    number of classes when each is spread over all.

    Examples
    --------
    >>> block_concentration(np.eye(4) / 4, np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.75
    """
    rows, cols = (np.equal.outer(np.unique(labels), labels) for labels in (source, target))
    blocks = rows.astype(float) @ plan @ cols.T.astype(float)
    return float(blocks.max(axis=1).sum() / plan.sum())


def compute(kind: str, seed: int, *, alpha: float = 0.0, n: int = N_POINTS) -> dict[str, Any]:
    """One plan between the clouds of a seed: ``"emd"``, ``"entropic"`` or ``"structured"``."""
    data = _data(seed, n)
    _solve(kind, _data(seed, 6), alpha)  # pays for loading and compilation
    result = _solve(kind, data, alpha)
    share = block_concentration(result.plan, data.source_labels, data.target_labels)
    return record(result, TOL, seed, concentration=share)


def _solve(kind: str, data: ClusterProblem, alpha: float) -> Result:
    structure = Groups(data.source_labels, data.target_labels, ThresholdSqrt(alpha), units="cost")
    return solve_kind(kind, data.cost, structure, TOL)


def _data(seed: int, n: int = N_POINTS) -> ClusterProblem:
    return clusters(n, n_classes=N_CLASSES, seed=seed)


def _alphas(settings: Settings) -> list[float]:
    """Denser where the plan changes, between a tenth and once a block's total cost."""
    alphas = [10.0, 1e3, 2e3, 6e3, 8e3, 2e4, 1e5]
    if not settings.quick:
        alphas += [30.0, 300.0, 3e3, 5e3, 7e3, 9e3, 1.2e4, 1.5e4, 3e4, 5e4]
    return sorted({*SHOWN, *alphas})


def tasks(settings: Settings, done: Records) -> list[Task]:
    """One plan each."""
    return sweep(compute, settings, _alphas(settings))


def report(settings: Settings, done: Records) -> Report:
    """Concentration by method and α."""
    draws, alphas = Draws(done), _alphas(settings)
    mean = {name: draws.mean(name, "concentration") for name in names(alphas)}
    curve = list(mean.values())[2:]
    worst = max(entry["gap"] for entry in done.values())
    rows = [
        (
            words(name),
            share,
            float(np.max(draws(name, "gap"))),
            float(np.median(draws(name, "seconds"))),
        )
        for name, share in mean.items()
    ]
    text = (
        f"{N_POINTS} points in {N_CLASSES} classes on either side; draws: {len(draws.seeds)}. "
        "Concentration is the share of the mass that goes to the main target class of its "
        f"source class. It falls from {number(curve[0])} at α = {alphas[0]:g} to "
        f"{number(curve[-1])} at α = {alphas[-1]:g}, where plain transport has "
        f"{number(mean['emd'])}. "
        "In between the best plan may pass from one pairing of the classes to another, so that "
        f"a single draw need not fall evenly. Largest certified gap: {worst:.1e}.\n\n"
        + table(["plan", "concentration", "largest gap", "median seconds"], rows)
    )
    results = {
        "alpha": alphas,
        "concentration": curve,
        "concentration_by_seed": [draws(f"alpha-{a:g}", "concentration") for a in alphas],
        **{f"concentration_{kind}": mean[kind] for kind in ("emd", "entropic")},
        "seeds": draws.seeds,
        "largest_gap": worst,
        "gaps_reached": reached(done.values()),
    }
    figures = {
        "clusters": lambda: _draw_plans(done),
        "concentration": lambda: draw_concentration(results),
    }
    captions = {
        "clusters": "The first draw: lines from source (dots) to target points (crosses) above, "
        "the same plans as matrices below. From left to right classes are pulled together: the "
        "matrices become blocks.",
        "concentration": "Mean over the draws, and a band from the smallest to the largest of "
        "them. Small thresholds keep classes together, large ones are plain transport.",
    }
    return Report(results, text, figures, captions)


def _draw_plans(done: Records) -> Figure:
    """As in the paper."""
    data = _data(0)
    labels = data.source_labels, data.target_labels
    return draw_plans(
        done,
        data,
        SHOWN[::-1],
        lambda entry: f"concentration {entry['concentration']:.2f}",
        colors=labels,
        groups=labels,
        figsize=(10.5, 4.7),
    )


def draw_concentration(results: dict[str, Any]) -> Figure:
    """Concentration against α: the mean over draws, and a band over all of them."""
    import matplotlib.pyplot as plt

    from structot.plot import COLORS

    figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    alpha, by_seed = results["alpha"], np.array(results["concentration_by_seed"])
    if by_seed.shape[1] > 1:
        low, high = by_seed.min(axis=1), by_seed.max(axis=1)
        ax.fill_between(alpha, low, high, color=COLORS[0], alpha=0.18, linewidth=0)
    label = f"structured, {by_seed.shape[1]} draws"
    ax.plot(alpha, results["concentration"], "o-", color=COLORS[0], markersize=4, label=label)
    for kind, style, color in (("emd", "--", COLORS[5]), ("entropic", ":", COLORS[2])):
        level = results[f"concentration_{kind}"]
        ax.axhline(level, linestyle=style, color=color, label={"emd": "EMD"}.get(kind, kind))
    ax.set(xscale="log", xlabel="threshold α", ylabel="concentration of mass in blocks")
    ax.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENT = Experiment(
    "clusters",
    "Clustered point clouds: plans, and concentration of mass against α (Figure 1)",
    tasks,
    report,
    "Classes that plain transport tears apart travel together as the threshold α falls.",
)
