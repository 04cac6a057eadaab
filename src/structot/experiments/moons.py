"""The appendix's two moons: groups are the neighbourhoods of the points, and overlap.

Notation: X, Y points of either moon; N(i) the k nearest neighbours of point i; P plan;
T(i) = Σ_j P_ij Y_j / a_i the barycentric image of X_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structot.concave import ThresholdSqrt
from structot.datasets.synthetic import ClusterProblem, two_moons
from structot.experiments._runner import Records, Report, Settings, Task
from structot.experiments._sweep import names as plan_names
from structot.experiments._sweep import sweep, words
from structot.experiments._tables import certificate, reached, table
from structot.groups import neighborhoods
from structot.solvers.solve import solve
from structot.structures.groups import Groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "compute", "drawn_neighbours_kept", "neighbours_kept"]

N_POINTS, NEIGHBOURS, NOISE = 60, 4, 0.05
SHOWN = (0.3, 0.9)
REG = 0.05  # of the mean cost
TOL = 1e-2
_SMOOTHING = 0.01  # g beyond its threshold: nearly flat, yet increasing


def neighbours_kept(plan: np.ndarray, X: np.ndarray, Y: np.ndarray, k: int) -> float:
    """Share of the pairs i' in N(i) whose images T(i'), T(i) are again among k nearest.

    Examples
    --------
    >>> line = np.arange(6.0)[:, None]
    >>> neighbours_kept(np.eye(6) / 6, line, line + 10, 2)
    1.0
    """
    before, after = _adjacency(X, k), _adjacency(_images(plan, Y), k)
    return float((before & after).sum() / before.sum())


def drawn_neighbours_kept(plan: np.ndarray, X: np.ndarray, Y: np.ndarray, k: int) -> float:
    """Probability that partners j, j', drawn from P for neighbours i, i', are neighbours or equal.

    Unlike `neighbours_kept` it falls when a point's mass is spread, whatever it is spread over.
    """
    before, after = _adjacency(X, k), _adjacency(Y, k) | np.eye(len(Y), dtype=bool)
    R = plan / plan.sum(axis=1, keepdims=True)
    return float((before * (R @ after @ R.T)).sum() / before.sum())


def _images(plan: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return plan @ Y / plan.sum(axis=1, keepdims=True)


def _adjacency(points: np.ndarray, k: int) -> np.ndarray:
    adjacent = np.zeros((len(points), len(points)), bool)
    for i, group in enumerate(neighborhoods(points, k)):
        adjacent[i, group[1:]] = True  # the first is the point itself
    return adjacent


def compute(kind: str, seed: int, *, alpha: float = 0.0, n: int = N_POINTS) -> dict[str, Any]:
    """One plan between the moons of a seed: ``"emd"``, ``"entropic"`` or ``"structured"``."""
    data = _data(seed, n)
    M = data.cost
    options: dict[str, Any] = {}
    if kind == "entropic":
        options["reg"] = REG * M.mean()
    elif kind == "structured":
        options["structure"] = Groups(
            neighborhoods(data.X, NEIGHBOURS),
            neighborhoods(data.Y, NEIGHBOURS),
            ThresholdSqrt(alpha, scale=_SMOOTHING),
            units="block",
            equal_coverage=True,
        )
    result = solve(M, tol=TOL, time_limit=60.0, **options)
    points = result.plan, data.X, data.Y, NEIGHBOURS
    return {
        **certificate(result, TOL),
        "kept": neighbours_kept(*points),
        "drawn_kept": drawn_neighbours_kept(*points),
        "linear": result.value_linear,
        "plan": result.plan if seed == 0 else np.zeros((0, 0)),
    }


def _data(seed: int, n: int = N_POINTS) -> ClusterProblem:
    return two_moons(n, noise=NOISE, seed=seed)


def _alphas(settings: Settings) -> tuple[float, ...]:
    return (0.3, 0.6, 0.9) if settings.quick else (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Moons:
    """Whether neighbours stay neighbours."""

    name: str = "moons"
    title: str = "Two moons with neighbourhood groups (appendix)"
    needs: tuple[str, ...] = ()

    def tasks(self, settings: Settings, done: Records) -> list[Task]:
        """One plan each."""
        seeds = settings.seeds or (1 if settings.quick else 5)
        return sweep(compute, seeds, _alphas(settings))

    def report(self, settings: Settings, done: Records) -> Report:
        """Neighbours kept by method and α."""
        seeds = sorted({int(key.rsplit("-", 1)[1]) for key in done})
        names = plan_names(_alphas(settings))

        def mean(name: str, field: str) -> float:
            return float(np.mean([done[f"{name}-{seed}"][field] for seed in seeds]))

        kept = {name: mean(name, "kept") for name in names}
        drawn = {name: mean(name, "drawn_kept") for name in names}
        gaps = {name: max(done[f"{name}-{seed}"]["gap"] for seed in seeds) for name in names}
        best = max(names[2:], key=lambda name: kept[name])
        text = (
            f"{N_POINTS} points on either moon, groups of a point and its {NEIGHBOURS} nearest "
            f"neighbours on both sides; draws: {len(seeds)}. Neighbours kept: the share of pairs "
            "of neighbours whose barycentric images are again among each other's nearest. "
            f"Structured transport keeps {kept[best]:.0%} at best ({words(best, REG)}), EMD "
            f"{kept['emd']:.0%}, entropic {kept['entropic']:.0%}. The last column counts randomly "
            "drawn partners instead of barycentric images; there spreading the mass over a block "
            f"counts against a plan: EMD {drawn['emd']:.0%}, structured at best "
            f"{max(drawn[name] for name in names[2:]):.0%}.\n\n"
            + table(
                ["plan", "neighbours kept", "largest gap", "plain cost", "drawn partners kept"],
                [
                    [words(name, REG), kept[name], gaps[name], mean(name, "linear"), drawn[name]]
                    for name in names
                ],
            )
        )
        results = {
            "neighbours_kept": kept,
            "drawn_neighbours_kept": drawn,
            "largest_gap": gaps,
            "seeds": seeds,
            "gaps_reached": reached(done.values()),
        }
        figures: dict[str, Callable[[], Figure]] = {"moons": lambda: draw(done)}
        return Report(results, text, figures)


def draw(done: Records) -> Figure:
    """Matchings above, coloured along the source's arc, plans below."""
    import matplotlib.pyplot as plt

    from structot import plot

    data = _data(0)
    names = plan_names(SHOWN[::-1])
    figure, axes = plt.subplots(
        2, len(names), figsize=(12, 5.0), layout="constrained", height_ratios=(0.62, 1)
    )
    along = np.arange(len(data.X)) * 6 // len(data.X)
    for name, (top, bottom) in zip(names, axes.T, strict=True):
        record = done[f"{name}-0"]
        plot.matching(data.X, data.Y, record["plan"], along, ax=top)
        plot.plan(record["plan"], ax=bottom).set(xlabel="", ylabel="")
        top.set_title(f"{words(name, REG)}\nneighbours kept {record['kept']:.0%}", fontsize=9)
    axes[1, 0].set(xlabel="target points along the arc", ylabel="source points along the arc")
    return figure


EXPERIMENT = Moons()
