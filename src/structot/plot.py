"""Pictures of answers: functions of a result and an axis, which they return.

Colours are from the colour-blind-safe palette of Okabe and Ito; heat maps run from white to dark in
one hue, so that they survive a black-and-white printer.

Notation: P plan, M ground cost, K the adversary's worst cost, all of shape (n, m).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structot import _checks
from structot._labels import Labels, index_lists, is_index_lists
from structot._typing import Array
from structot.result import Result, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLORS", "convergence", "costs", "matching", "plan"]

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")

_MOST_ROWS = 250  # a finer heat map than this does not fit the pixels of a small figure


def plan(
    result: Result | Array,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """The plan as a heat map, rows and columns sorted by group, dashed borders between groups.

    Parameters
    ----------
    result
        An answer of `solve`, or a plan.
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
    P = _plan(result)
    ax = _axes(ax)
    # Mass per pair relative to the heaviest; a square root keeps faint blocks visible. A tile of
    # a large plan shows the mass in it: leaving out every other pair would lose a sparse plan.
    _heat_map(ax, P, source_groups, target_groups, pool=np.add, transform=np.sqrt)
    ax.set(xlabel="target points", ylabel="source points")
    return ax


def matching(
    X: Any,
    Y: Any,
    result: Result | Array,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
    *,
    max_lines: int = 4000,
) -> Axes:
    """Points in the plane and what moves between them, line width by mass, colour by source group.

    A label that occurs on both sides has the same colour on both.

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

    P = _plan(result)
    X, Y = _plane("X", X, P.shape[0]), _plane("Y", Y, P.shape[1])
    ax = _axes(ax)
    rows, cols = np.nonzero(P > 0)
    mass = P[rows, cols]
    heaviest = np.argsort(-mass, kind="stable")[:max_lines]
    rows, cols, mass = rows[heaviest], cols[heaviest], mass[heaviest]
    source, target = _colors(source_groups, target_groups, P.shape)
    strength = mass / mass.max(initial=1e-300)
    lines = to_rgba_array(source[rows])
    # Many lines at full strength would fill the plane with one colour.
    lines[:, 3] = (0.03 + 0.67 * strength) * min(1.0, 8.0 / np.sqrt(1.0 + strength.sum()))
    segments = list(np.stack([X[rows], Y[cols]], axis=1))
    ax.add_collection(
        LineCollection(segments, colors=lines, linewidths=0.3 + 1.2 * strength, zorder=1)
    )
    for points, color, size, marker in ((X, source, 18, "o"), (Y, target, 22, "X")):
        ax.scatter(
            *(points[:, 0], points[:, 1], size * min(1.0, (200 / len(points)) ** 0.7), color),
            marker=marker,
            edgecolors="white",
            linewidths=0.4 if len(points) <= 200 else 0.15,
            zorder=2,
        )
    ax.set(xticks=[], yticks=[], aspect="equal")
    return ax


def convergence(
    traces: Result | Trace | Mapping[str, Result | Trace],
    ax: Axes | None = None,
    *,
    show: str = "both",
) -> Axes:
    """Bands from lower bound to value over time, which enclose the optimum, and the gap below.

    Parameters
    ----------
    traces
        One result or trace, or several of the same problem by name.
    ax
        Where to draw; a new figure by default.
    show
        ``"bands"``, ``"gap"`` (value minus bound, relative to the value, on a log scale), or
        ``"both"``: the area of ``ax`` is shared by the two (``ax.child_axes``).

    Examples
    --------
    >>> import structot as sot
    >>> ax = convergence({"exact": sot.solve([[1.0, 2.0], [3.0, 1.0]])}, show="gap")
    >>> ax.get_ylabel()
    'relative gap'
    """
    _checks.one_of("show", show, ("both", "bands", "gap"))
    if not isinstance(traces, Mapping):
        traces = {"": traces}
    if not traces:
        raise ValueError("traces is empty; pass at least one result or trace.")
    histories = {
        name: entry.trace if isinstance(entry, Result) else entry for name, entry in traces.items()
    }
    ax = _axes(ax, (6, 4.5))
    upper = lower = ax
    if show == "both":
        ax.set_axis_off()
        upper = ax.inset_axes((0.0, 0.44, 1.0, 0.56))
        lower = ax.inset_axes((0.0, 0.0, 1.0, 0.4), sharex=upper)
        upper.tick_params(labelbottom=False)
    for number, (name, trace) in enumerate(histories.items()):
        color = COLORS[number % len(COLORS)]
        style = ("-", "--", "-.", ":")[number // 2 % 4]
        if show != "gap":
            _band(upper, trace, color, style, name)
        if show != "bands":
            _gap(lower, trace, color, style, name)
    lower.set_xlabel("seconds")
    _scale_time(lower, histories)
    if show != "gap":
        _focus(upper, histories)
    if any(histories):
        upper.legend(fontsize=8, framealpha=0.9, edgecolor="none")
    return ax


def costs(
    result: Result,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """The ground cost M beside the worst cost K in B(F) that proves the bound.

    A block in which the adversary saves is one that has become cheap: K lies below M there.

    Parameters
    ----------
    result
        An answer of `solve`.
    source_groups, target_groups
        One label per point, or lists of indices; None leaves the order as it is.
    ax
        Where to draw; its area is shared by the two heat maps (``ax.child_axes``,
        each with its scale). A new figure by default.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[0.0, 1.0], [1.0, 0.0]]
    >>> [map.get_title() for map in costs(sot.solve(M)).child_axes[::2]]
    ['ground cost M', 'worst cost K']
    """
    ax = _axes(ax, (8, 3.6))
    ax.set_axis_off()
    for left, name, cost in (
        (0.0, "ground cost M", result.ground_cost),
        (0.54, "worst cost K", result.worst_cost),
    ):
        inset = ax.inset_axes((left, 0.0, 0.4, 1.0))
        finite = np.where(np.isfinite(cost), cost, np.nan)  # forbidden pairs stay white
        # Of a tile with some forbidden pairs the others are shown: fmax passes over NaN.
        image = _heat_map(inset, finite, source_groups, target_groups, pool=np.fmax)
        bar = ax.inset_axes((left + 0.41, 0.0, 0.015, 1.0))
        ax.figure.colorbar(image, cax=bar)
        bar.tick_params(labelsize=7)
        inset.set_title(name, fontsize=10)
    return ax


# --------------------------------------------------------------------------------------------------
# Parts of the above
# --------------------------------------------------------------------------------------------------


def _heat_map(
    ax: Axes,
    values: Array,
    source_groups: Any,
    target_groups: Any,
    *,
    pool: np.ufunc,
    transform: Any = None,
) -> Any:
    n, m = values.shape
    rows, row_borders = _sorted_by_group("source_groups", source_groups, n)
    cols, col_borders = _sorted_by_group("target_groups", target_groups, m)
    tiles = _pooled(_pooled(values[rows][:, cols], pool).T, pool).T
    if transform is not None:
        tiles = transform(tiles / (tiles.max() or 1.0))
    image = ax.imshow(
        tiles,
        cmap="Blues",
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
    )
    # So many groups that their borders would cover the map are better seen without.
    for borders, draw, size in ((row_borders, ax.axhline, n), (col_borders, ax.axvline, m)):
        for border in borders if len(borders) <= max(40, size // 10) else ():
            draw(border - 0.5, color="0.4", linestyle="--", linewidth=0.7)
    ax.set(xticks=[], yticks=[])
    return image


def _pooled(values: Array, pool: np.ufunc) -> Array:
    """At most `_MOST_ROWS` rows, each the pool of about equally many."""
    size = len(values)
    if size <= _MOST_ROWS:
        return values
    return pool.reduceat(
        values, np.linspace(0, size, _MOST_ROWS, endpoint=False).astype(int), axis=0
    )


def _band(ax: Axes, trace: Trace, color: str, style: str, name: str) -> None:
    # A step: value and bound are what they were until the next certificate.
    finite = np.isfinite(trace.value) & np.isfinite(trace.lower_bound)
    when, value, bound = trace.time[finite], trace.value[finite], trace.lower_bound[finite]
    ax.fill_between(when, bound, value, step="post", color=color, alpha=0.13, linewidth=0)
    ax.step(when, value, where="post", color=color, linestyle=style, linewidth=1.4, label=name)
    ax.step(when, bound, where="post", color=color, linestyle=style, linewidth=1.4)
    ax.plot(when[-1:], value[-1:], ".", when[-1:], bound[-1:], ".", color=color, markersize=5)
    ax.set_ylabel("value and bound")


def _gap(ax: Axes, trace: Trace, color: str, style: str, name: str) -> None:
    gap = (trace.value - trace.lower_bound) / np.maximum(np.abs(trace.value), 1e-300)
    shown = np.where(gap > 0, gap, np.nan)
    if np.isfinite(shown).any():
        # A gap of zero lies at no finite place of a log scale: it is drawn at rounding error.
        shown[gap <= 0] = min(1e-16, np.nanmin(shown))
    else:
        shown = np.full(len(gap), 1e-16)
    ax.step(trace.time, shown, where="post", color=color, linestyle=style, label=name)
    ax.plot(trace.time[-1:], shown[-1:], ".", color=color, markersize=5)
    ax.set_yscale("log")
    ax.set_ylabel("relative gap")


def _scale_time(ax: Axes, histories: Mapping[str, Trace]) -> None:
    """Logarithmic when the methods differ by more than a factor of thirty."""
    times = np.concatenate([trace.time[trace.time > 0] for trace in histories.values()])
    last = [trace.time[-1] for trace in histories.values() if len(trace) and trace.time[-1] > 0]
    if len(last) > 1 and max(last) > 30 * min(last):
        ax.set_xscale("log")
        ax.set_xlim(left=times.min())


def _focus(ax: Axes, histories: Mapping[str, Trace]) -> None:
    """Cut off the first bounds and values, which may be far away, so that the end can be seen."""
    best = min(float(np.min(trace.value)) for trace in histories.values())
    proved = max(float(np.max(trace.lower_bound)) for trace in histories.values())
    ends = [(trace.lower_bound[-1], trace.value[-1]) for trace in histories.values()]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    room = max(high - low, 0.1 * abs(best), 2 * (best - proved))
    if np.isfinite(room) and room > 0:
        ax.set_ylim(low - 0.5 * room, high + 0.8 * room)


def _plan(result: Result | Array) -> Array:
    P = np.asarray(result.plan if isinstance(result, Result) else result, float)
    if P.ndim != 2:
        raise ValueError(f"result must be a Result or a plan (n, m); got shape {P.shape}.")
    return P


def _plane(name: str, points: Any, size: int) -> Array:
    points = np.asarray(points, float)
    if points.shape != (size, 2):
        raise ValueError(
            f"{name} must hold one point of the plane per side of the plan, shape ({size}, 2); "
            f"got {points.shape}."
        )
    return points


def _axes(ax: Axes | None, size: tuple[float, float] = (4, 4)) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _sorted_by_group(name: str, groups: Any, size: int) -> tuple[Array, Array]:
    """The order of the points by group, and where a new group begins."""
    if groups is None:
        return np.arange(size), np.arange(0)
    number = _numbers(name, groups, size)
    order = np.argsort(number, kind="stable")
    return order, 1 + np.flatnonzero(np.diff(number[order]))


def _colors(source: Any, target: Any, shape: tuple[int, ...]) -> list[Array]:
    """A colour per source point and per target point; equal labels have equal colours."""
    numbers = [
        np.full(size, default) if groups is None else _numbers(name, groups, size)
        for name, groups, size, default in (
            ("source_groups", source, shape[0], 0),
            ("target_groups", target, shape[1], 7),
        )
    ]
    sides = source, target
    if not any(groups is None or is_index_lists(groups) for groups in sides):
        masked = np.ma.MaskedArray
        lists = [g.tolist() if isinstance(g, masked) else list(g) for g in sides]  # mask as None
        numbers = np.split(_numbers("labels", lists[0] + lists[1], sum(shape)), [shape[0]])
    return [np.array(COLORS)[number % len(COLORS)] for number in numbers]


def _numbers(name: str, groups: Any, size: int) -> Array:
    """The number of the group of each point; of overlapping groups, the first that holds it."""
    if not is_index_lists(groups):
        return Labels.of(name, groups, size).groups
    lists = index_lists(name, groups, size)
    number = len(lists) + np.arange(size)  # a point in none is on its own
    for k in reversed(range(len(lists))):
        number[lists[k]] = k
    return number
