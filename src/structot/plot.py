"""Pictures of plans: functions of a result and an axis, which they return.

Colours are from the colour-blind-safe palette of Okabe and Ito.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structot.result import Result
from structot.structures._grouping import group_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLORS", "matching", "plan"]

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def plan(
    result: Result,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """The plan as a heat map, rows and columns sorted by group, dashed borders between groups.

    Parameters
    ----------
    result
        An answer of `solve`.
    source_groups, target_groups
        One label per point, or lists of indices; None leaves the order as it is.
    ax
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import structot as sot
    >>> ax = plan(sot.solve([[0.0, 1.0], [1.0, 0.0]]), ["a", "b"])
    >>> ax.get_xlabel()
    'target points'
    """
    ax = _axes(ax)
    rows, row_borders = _sorted_by_group("source_groups", source_groups, result.plan.shape[0])
    cols, col_borders = _sorted_by_group("target_groups", target_groups, result.plan.shape[1])
    P = result.plan[rows][:, cols]
    # Mass per pair relative to an even spread; a square root keeps faint blocks visible.
    ax.imshow(np.sqrt(P / P.max()), cmap="Blues", aspect="auto", interpolation="nearest")
    for border in row_borders:
        ax.axhline(border - 0.5, color="0.4", linestyle="--", linewidth=0.7)
    for border in col_borders:
        ax.axvline(border - 0.5, color="0.4", linestyle="--", linewidth=0.7)
    ax.set(xticks=[], yticks=[], xlabel="target points", ylabel="source points")
    return ax


def matching(
    X: Any,
    Y: Any,
    result: Result,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
    *,
    max_lines: int = 4000,
) -> Axes:
    """Points in the plane and what moves between them, line width by mass, colour by source group.

    Parameters
    ----------
    X, Y
        Points, shapes (n, 2) and (m, 2).
    result
        An answer of `solve` for these points.
    source_groups, target_groups
        One label per point, or lists of indices; None draws one colour.
    ax
        Where to draw; a new figure by default.
    max_lines
        Only the heaviest pairs are drawn, so that a dense plan stays readable.

    Examples
    --------
    >>> import structot as sot
    >>> X, Y = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]
    >>> ax = matching(X, Y, sot.solve_sample(X, Y))
    >>> len(ax.collections)
    3
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba_array

    ax = _axes(ax)
    X, Y = np.asarray(X, float), np.asarray(Y, float)
    rows, cols = np.nonzero(result.plan > 0)
    mass = result.plan[rows, cols]
    heaviest = np.argsort(-mass, kind="stable")[:max_lines]
    rows, cols, mass = rows[heaviest], cols[heaviest], mass[heaviest]
    source, target = _colors(source_groups, len(X)), _colors(target_groups, len(Y))
    strength = mass / mass.max()
    lines = to_rgba_array(source[rows])
    # Many lines at full strength would fill the plane with one colour.
    lines[:, 3] = (0.03 + 0.67 * strength) * min(1.0, 8.0 / np.sqrt(strength.sum()))
    segments = list(np.stack([X[rows], Y[cols]], axis=1))
    ax.add_collection(
        LineCollection(segments, colors=lines, linewidths=0.3 + 1.2 * strength, zorder=1)
    )
    for points, color, size, marker in ((X, source, 18, "o"), (Y, target, 22, "X")):
        ax.scatter(
            *(points[:, 0], points[:, 1], size, color),
            marker=marker,
            edgecolors="white",
            linewidths=0.4,
            zorder=2,
        )
    ax.set(xticks=[], yticks=[], aspect="equal")
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(4, 4), layout="constrained")[1]


def _sorted_by_group(name: str, groups: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The order of the points by group, and where a new group begins."""
    if groups is None:
        return np.arange(size), np.arange(0)
    number = group_numbers(name, groups, size)
    order = np.argsort(number, kind="stable")
    return order, 1 + np.flatnonzero(np.diff(number[order]))


def _colors(groups: Any, size: int) -> np.ndarray:
    number = np.zeros(size, int) if groups is None else group_numbers("groups", groups, size)
    return np.array(COLORS)[number % len(COLORS)]
