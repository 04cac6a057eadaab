"""Points in the plane and what moves between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structot._labels import is_index_lists
from structot._typing import Array
from structot.plot._parts import COLORS, Groups, as_plan, axes
from structot.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ENTRIES = 12  # a longer legend covers the picture
_NEGLIGIBLE = 1e-4  # of the heaviest pair: what an interior-point method leaves everywhere
_MARKERS = ("o", "X")  # of source and target points
# Area of the ring of a point that has all of its mass left, and the least share that is shown.
_RING, _LEAST_RING = 160.0, 0.01


def matching(
    X: Any,
    Y: Any,
    result: Result | Array,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
    *,
    max_lines: int = 4000,
    legend: bool | None = None,
    **options: Any,
) -> Axes:
    """Points in the plane and what moves between them, line width by mass, colour by source group.

    A label that occurs on both sides has the same colour on both. Where marginals are relaxed, a
    ring around a point shows the mass it has left, or did not get, by its area.

    Parameters
    ----------
    X, Y
        Points, shapes (n, 2) and (m, 2).
    result
        An answer of `solve` for these points, or a plan.
    source_groups, target_groups
        One label per point, or lists of indices; None draws one colour.
    ax
        Where to draw; a new figure by default.
    max_lines
        Only the heaviest pairs are drawn, so that a dense plan stays readable; none that carries
        less than a ten-thousandth of the heaviest.
    legend
        Whether to name the markers and the groups; by default in a new figure only.
    **options
        As in matplotlib's ``LineCollection``, for the lines.

    Examples
    --------
    >>> import structot as sot
    >>> X, Y = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]
    >>> ax = matching(X, Y, sot.solve_sample(X, Y))
    >>> len(ax.collections)
    3
    """
    P = as_plan(result)
    X, Y = _plane("X", X, P.shape[0]), _plane("Y", Y, P.shape[1])
    alone = ax is None
    ax = axes(ax)
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba_array

    rows, cols = np.nonzero(P > _NEGLIGIBLE * P.max(initial=0.0))
    mass = P[rows, cols]
    heaviest = np.argsort(-mass, kind="stable")[:max_lines]
    rows, cols, mass = rows[heaviest], cols[heaviest], mass[heaviest]
    source, target, names = _colors(source_groups, target_groups, P.shape)
    strength = mass / mass.max(initial=1e-300)
    lines = to_rgba_array(source[rows])
    # Many lines at full strength would fill the plane with one colour.
    lines[:, 3] = (0.03 + 0.67 * strength) * min(1.0, 8.0 / np.sqrt(1.0 + strength.sum()))
    segments = list(np.stack([X[rows], Y[cols]], axis=1))
    shown = {"colors": lines, "linewidths": 0.3 + 1.2 * strength, "zorder": 1, **options}
    ax.add_collection(LineCollection(segments, **shown))
    for points, color, size, marker in zip((X, Y), (source, target), (18, 22), _MARKERS):
        ax.scatter(
            *(points[:, 0], points[:, 1], size * min(1.0, (200 / len(points)) ** 0.7), color),
            marker=marker,
            edgecolors="white",
            linewidths=0.4 if len(points) <= 200 else 0.15,
            zorder=2,
        )
    rings = isinstance(result, Result) and (result.unbalanced, result.mass) != (None, None)
    if rings:
        _rings(ax, (X, Y), result)  # type: ignore[arg-type]
    ax.set(xticks=[], yticks=[], aspect="equal")
    if alone if legend is None else legend:
        _legend(ax, names, rings)
    return ax


def _rings(ax: Axes, points: tuple[Array, Array], result: Result) -> None:
    """What was left at each point, as a share of its weight, by area."""
    for where, rest, weights, style in zip(
        points, result.left, result.weights, ("-", ":"), strict=True
    ):
        with np.errstate(invalid="ignore"):
            share = np.where(weights > 0, np.maximum(rest, 0.0) / weights, 0.0)
        some = share > _LEAST_RING
        ax.scatter(
            *(where[some, 0], where[some, 1], _RING * share[some]),
            facecolors="none",
            edgecolors="0.25",
            linewidths=0.8,
            linestyles=style,
            zorder=3,
        )


def _legend(ax: Axes, names: dict[str, str], rings: bool = False) -> None:
    """Beside the picture: what the markers are, then the groups by colour."""
    from matplotlib.lines import Line2D

    few = names if len(names) <= _MOST_ENTRIES else {}
    entries = [
        *(("source", "0.4", _MARKERS[0]), ("target", "0.4", _MARKERS[1])),
        *((name, color, "s") for name, color in few.items()),
    ]
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="", label=name)
        for name, color, marker in entries
    ]
    if rings:
        ring = Line2D([], [], color="0.25", marker="o", linestyle="", label="left behind (area)")
        ring.set_markerfacecolor("none")
        ring.set_markersize(9)
        handles.append(ring)
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False
    )


def _plane(name: str, points: Any, size: int) -> Array:
    points = np.asarray(points, float)
    if points.shape != (size, 2):
        raise ValueError(
            f"{name} must hold {size} points of the plane, shape ({size}, 2); got {points.shape}. "
            "Of points with more coordinates pass two, or their first two principal components."
        )
    return points


def _colors(
    source: Any, target: Any, shape: tuple[int, ...]
) -> tuple[Array, Array, dict[str, str]]:
    """A colour per source point and per target point, and of each group that has a name.

    Equal labels have equal colours; a side without groups has one colour.
    """
    sides = source, target
    if not any(groups is None or is_index_lists(groups) for groups in sides):
        masked = np.ma.MaskedArray
        lists = [g.tolist() if isinstance(g, masked) else list(g) for g in sides]  # mask as None
        both = Groups.of("labels", lists[0] + lists[1], sum(shape))
        parts = np.split(both.number, [shape[0]])
        found = [Groups(number, both.names) for number in parts]
    else:
        of = zip(("source_groups", "target_groups"), sides, shape, strict=True)
        found = [Groups.of(name, groups, size) for name, groups, size in of]
        if target is None:
            found[1] = Groups(found[1].number + len(COLORS) - 1, ())  # black
    palette = np.array(COLORS)
    names = {
        name: COLORS[k % len(COLORS)] for side in found[::-1] for k, name in enumerate(side.names)
    }
    first, second = (palette[side.number % len(palette)] for side in found)
    return first, second, names
