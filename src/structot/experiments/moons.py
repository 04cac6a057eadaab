"""The appendix's two moons: groups are the neighbourhoods of the points, and overlap.

Notation: X, Y points of either moon; N(i) the k nearest neighbours of point i; P plan;
T(i) = Σ_j P_ij Y_j / a_i the barycentric image of X_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structot._typing import Array
from structot.concave import ThresholdSqrt
from structot.datasets.synthetic import ClusterProblem, two_moons
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._sweep import Draws, draw_plans, names, record, solve_kind, sweep, words
from structot.experiments._tables import reached, table
from structot.groups import neighborhoods
from structot.structures.groups import Groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "compute", "drawn_neighbours_kept", "neighbours_kept"]

N_POINTS, NEIGHBOURS, NOISE = 60, 4, 0.05
SHOWN = (0.3, 0.9)
TOL = 1e-2
_SMOOTHING = 0.01  # g beyond its threshold: nearly flat, yet increasing


def neighbours_kept(plan: Array, X: Array, Y: Array, k: int) -> float:
    """Share of the pairs i' in N(i) whose images T(i'), T(i) are again among k nearest.

    Examples
    --------
    >>> line = np.arange(6.0)[:, None]
    >>> neighbours_kept(np.eye(6) / 6, line, line + 10, 2)
    1.0
    """
    before, after = _adjacency(X, k), _adjacency(_images(plan, Y), k)
    return float((before & after).sum() / before.sum())


def drawn_neighbours_kept(plan: Array, X: Array, Y: Array, k: int) -> float:
    """Probability that partners j, j', drawn from P for neighbours i, i', are neighbours or equal.

    Unlike `neighbours_kept` it falls when a point's mass is spread, whatever it is spread over.
    """
    before, after = _adjacency(X, k), _adjacency(Y, k) | np.eye(len(Y), dtype=bool)
    R = plan / plan.sum(axis=1, keepdims=True)
    return float((before * (R @ after @ R.T)).sum() / before.sum())


def _images(plan: Array, Y: Array) -> Array:
    return plan @ Y / plan.sum(axis=1, keepdims=True)


def _adjacency(points: Array, k: int) -> Array:
    adjacent = np.zeros((len(points), len(points)), bool)
    for i, group in enumerate(neighborhoods(points, k)):
        adjacent[i, group[1:]] = True  # the first is the point itself
    return adjacent


def compute(kind: str, seed: int, *, alpha: float = 0.0, n: int = N_POINTS) -> dict[str, Any]:
    """One plan between the moons of a seed: ``"emd"``, ``"entropic"`` or ``"structured"``."""
    data = _data(seed, n)
    around = [neighborhoods(points, NEIGHBOURS) for points in (data.X, data.Y)]
    g = ThresholdSqrt(alpha, scale=_SMOOTHING)
    structure = Groups(around[0], around[1], g, units="block", equal_coverage=True)
    result = solve_kind(kind, data.cost, structure, TOL)
    points = result.plan, data.X, data.Y, NEIGHBOURS
    kept, drawn = neighbours_kept(*points), drawn_neighbours_kept(*points)
    return record(result, TOL, seed, kept=kept, drawn_kept=drawn)


def _data(seed: int, n: int = N_POINTS) -> ClusterProblem:
    return two_moons(n, noise=NOISE, seed=seed)


def _alphas(settings: Settings) -> tuple[float, ...]:
    return (0.3, 0.6, 0.9) if settings.quick else (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def tasks(settings: Settings, done: Records) -> list[Task]:
    """One plan each."""
    return sweep(compute, settings, _alphas(settings), draws=1 if settings.quick else 5)


def report(settings: Settings, done: Records) -> Report:
    """Neighbours kept by method and α."""
    draws, plans = Draws(done), names(_alphas(settings))
    kept = {name: draws.mean(name, "kept") for name in plans}
    drawn = {name: draws.mean(name, "drawn_kept") for name in plans}
    gaps = {name: max(draws(name, "gap")) for name in plans}
    best = max(plans[2:], key=lambda name: kept[name])
    text = (
        f"{N_POINTS} points on either moon, groups of a point and its {NEIGHBOURS} nearest "
        f"neighbours on both sides; draws: {len(draws.seeds)}. Neighbours kept: the share of pairs "
        "of neighbours whose barycentric images are again among each other's nearest. "
        f"Structured transport keeps {kept[best]:.1%} at best ({words(best)}), EMD "
        f"{kept['emd']:.1%}, entropic {kept['entropic']:.1%}. The last column counts randomly "
        "drawn partners instead of barycentric images; there spreading the mass over a block "
        f"counts against a plan: EMD {drawn['emd']:.1%}, structured at best "
        f"{max(drawn[name] for name in plans[2:]):.1%}.\n\n"
        + table(
            ["plan", "neighbours kept", "largest gap", "plain cost", "drawn partners kept"],
            [
                [words(name), kept[name], gaps[name], draws.mean(name, "linear"), drawn[name]]
                for name in plans
            ],
        )
    )
    results = {
        "neighbours_kept": kept,
        "drawn_neighbours_kept": drawn,
        "largest_gap": gaps,
        "seeds": draws.seeds,
        "gaps_reached": reached(done.values()),
    }
    caption = (
        "One moon carried onto the other, by plain, entropic and structured transport. Above, "
        "lines from source (dots) to target (crosses), coloured along the source's arc; below, the "
        "same plans as matrices. Look for colours that stay in order."
    )
    return Report(results, text, {"moons": lambda: draw(done)}, {"moons": caption})


def draw(done: Records) -> Figure:
    """Coloured along the source's arc."""
    data = _data(0)
    return draw_plans(
        done,
        data,
        SHOWN[::-1],
        lambda entry: f"neighbours kept {entry['kept']:.0%}",
        colors=(np.arange(len(data.X)) * 6 // len(data.X), None),
        along=" along the arc",
        figsize=(10.5, 4.6),
        height_ratios=(0.62, 1),
    )


EXPERIMENT = Experiment(
    "moons",
    "Two moons with neighbourhood groups (appendix)",
    tasks,
    report,
    "Overlapping groups of neighbours: points that were close stay close on average.",
)
