"""The paper's Figure 1: clustered point clouds, plans of three kinds, concentration against α.

Notation: X, Y points; ys, yt their classes; M = |X_i - Y_j|²; α threshold of g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structot.concave import ThresholdSqrt
from structot.datasets.synthetic import ClusterProblem, clusters
from structot.experiments._runner import Records, Report, Settings, Task
from structot.experiments._sweep import names as plan_names
from structot.experiments._sweep import sweep, words
from structot.experiments._tables import certificate, reached, table
from structot.result import Result
from structot.solvers.solve import solve
from structot.structures.groups import Groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "block_concentration", "compute"]

N_POINTS, N_CLASSES = 100, 3
SHOWN = (100.0, 4e3, 1e4)  # thresholds whose plans are drawn
REG = 0.05  # of the mean cost
TOL = 1e-4


def block_concentration(plan: np.ndarray, source: np.ndarray, target: np.ndarray) -> float:
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
    labels = data.source_labels, data.target_labels
    return {
        **certificate(result, TOL),
        "concentration": block_concentration(result.plan, *labels),
        "linear": result.value_linear,
        "plan": result.plan if seed == 0 else np.zeros((0, 0)),
    }


def _solve(kind: str, data: ClusterProblem, alpha: float) -> Result:
    options: dict[str, Any] = {}
    if kind == "entropic":
        options["reg"] = REG * data.cost.mean()
    elif kind == "structured":
        labels = data.source_labels, data.target_labels
        options["structure"] = Groups(*labels, ThresholdSqrt(alpha))
    return solve(data.cost, tol=TOL, time_limit=60.0, **options)


def _data(seed: int, n: int = N_POINTS) -> ClusterProblem:
    return clusters(n, n_classes=N_CLASSES, seed=seed)


def _alphas(settings: Settings) -> list[float]:
    """Denser where the plan changes, between a tenth and once a block's total cost."""
    alphas = [10.0, 1e3, 2e3, 6e3, 8e3, 2e4, 1e5]
    if not settings.quick:
        alphas += [30.0, 300.0, 3e3, 5e3, 7e3, 9e3, 1.2e4, 1.5e4, 3e4, 5e4]
    return sorted({*SHOWN, *alphas})


@dataclass(frozen=True)
class Clusters:
    """EMD, entropic and structured plans of the same clouds."""

    name: str = "clusters"
    title: str = "Clustered point clouds: plans, and concentration of mass against α (Figure 1)"
    needs: tuple[str, ...] = ()

    def tasks(self, settings: Settings, done: Records) -> list[Task]:
        """One plan each."""
        seeds = settings.seeds or (1 if settings.quick else 5)
        return sweep(compute, seeds, _alphas(settings))

    def report(self, settings: Settings, done: Records) -> Report:
        """Concentration by method and α."""
        seeds = sorted({int(key.rsplit("-", 1)[1]) for key in done})
        alphas = _alphas(settings)

        def over_seeds(name: str, field: str = "concentration") -> list[float]:
            return [done[f"{name}-{seed}"][field] for seed in seeds]

        curve = [float(np.mean(over_seeds(f"alpha-{alpha:g}"))) for alpha in alphas]
        plain = {kind: float(np.mean(over_seeds(kind))) for kind in ("emd", "entropic")}
        worst = max(record["gap"] for record in done.values())
        names = plan_names(alphas)
        rows = [
            (
                words(name, REG),
                float(np.mean(over_seeds(name))),
                float(np.max(over_seeds(name, "gap"))),
                float(np.median(over_seeds(name, "seconds"))),
            )
            for name in names
        ]
        seconds = "median seconds"
        text = (
            f"{N_POINTS} points in {N_CLASSES} classes on either side; draws: {len(seeds)}. "
            "Concentration is the share of the mass that goes to the main target class of its "
            f"source class. It falls from {curve[0]:.2f} at α = {alphas[0]:g} to {curve[-1]:.2f} "
            f"at α = {alphas[-1]:g}, where plain transport has {plain['emd']:.2f}. "
            "In between the best plan may pass from one pairing of the classes to another, so that "
            f"a single draw need not fall evenly. Largest certified gap: {worst:.1e}.\n\n"
            + table(["plan", "concentration", "largest gap", seconds], rows)
        )
        results = {
            "alpha": alphas,
            "concentration": curve,
            "concentration_by_seed": [over_seeds(f"alpha-{alpha:g}") for alpha in alphas],
            **{f"concentration_{kind}": value for kind, value in plain.items()},
            "seeds": seeds,
            "largest_gap": worst,
            "gaps_reached": reached(done.values()),
        }
        figures: dict[str, Callable[[], Figure]] = {
            "clusters": lambda: draw_plans(done),
            "concentration": lambda: draw_concentration(results),
        }
        return Report(results, text, figures)


def draw_plans(done: Records) -> Figure:
    """Matchings above, plans below, as in the paper."""
    import matplotlib.pyplot as plt

    from structot import plot

    data = _data(0)
    labels = data.source_labels, data.target_labels
    names = plan_names(SHOWN[::-1])
    figure, axes = plt.subplots(2, len(names), figsize=(13, 5.4), layout="constrained")
    for name, (top, bottom) in zip(names, axes.T, strict=True):
        record = done[f"{name}-0"]
        plot.matching(data.X, data.Y, record["plan"], *labels, ax=top)
        plot.plan(record["plan"], *labels, ax=bottom).set(xlabel="", ylabel="")
        share = f"concentration {record['concentration']:.2f}"
        top.set_title(f"{words(name, REG)}\n{share}", fontsize=9)
    axes[1, 0].set(xlabel="target points", ylabel="source points")
    return figure


def draw_concentration(results: dict[str, Any]) -> Figure:
    """Concentration against α, one faint line per draw."""
    import matplotlib.pyplot as plt

    from structot.plot import COLORS

    figure, ax = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
    by_seed = np.array(results["concentration_by_seed"])
    if by_seed.shape[1] > 1:
        ax.plot(results["alpha"], by_seed, color=COLORS[0], alpha=0.25, linewidth=0.8)
    ax.plot(results["alpha"], results["concentration"], "o-", color=COLORS[0], markersize=4)
    for kind, style, color in (("emd", "--", COLORS[5]), ("entropic", ":", COLORS[2])):
        level = results[f"concentration_{kind}"]
        ax.axhline(level, linestyle=style, color=color, label={"emd": "EMD"}.get(kind, kind))
    ax.lines[-3].set_label("structured")
    ax.set(xscale="log", xlabel="threshold α", ylabel="concentration of mass in blocks")
    ax.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENT = Clusters()
