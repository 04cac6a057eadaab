"""Heat maps: plans, costs, and the mass between groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structot._typing import Array
from structot.plot._parts import Groups, as_plan, axes
from structot.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MOST_ROWS = 250  # a finer heat map than this does not fit the pixels of a small figure
_MOST_NAMES = 15  # more names than this do not fit beside a heat map
_MOST_NUMBERS = 12  # more numbers than this do not fit into a row of one


def plan(
    result: Result | Array,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
    *,
    colorbar: bool | None = None,
    **options: Any,
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
    colorbar
        Whether a bar tells the mass of a colour; by default in a new figure only.
    **options
        As in matplotlib's ``imshow``, e.g. ``cmap="viridis"`` or ``norm="log"``.

    Examples
    --------
    >>> import structot as sot
    >>> ax = plan(sot.solve([[0.0, 1.0], [1.0, 0.0]]), ["a", "b"], cmap="Greens")
    >>> ax.get_xlabel()
    'target points'
    """
    P = as_plan(result)
    alone = ax is None
    ax = axes(ax, (4.6, 4))
    from matplotlib.colors import PowerNorm

    if not {"norm", "vmin", "vmax"} & set(options):
        # A square root keeps faint blocks visible.
        options["norm"] = PowerNorm(0.5, vmin=0.0)
    # A tile of a large plan shows the mass in it: leaving out every other pair would lose a sparse
    # plan.
    image = _heat_map(ax, P, source_groups, target_groups, pool=np.add, **options)
    ax.set(xlabel="target points", ylabel="source points")
    if alone if colorbar is None else colorbar:
        ax.figure.colorbar(image, ax=ax, label="mass", shrink=0.9)
    return ax


def costs(
    result: Result,
    source_groups: Any = None,
    target_groups: Any = None,
    ax: Axes | None = None,
    **options: Any,
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
    **options
        As in matplotlib's ``imshow``, for both maps.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[0.0, 1.0], [1.0, 0.0]]
    >>> [map.get_title() for map in costs(sot.solve(M)).child_axes[::2]]
    ['ground cost M', 'worst cost K']
    """
    ax = axes(ax, (8, 3.6))
    ax.set_axis_off()
    for left, name, cost in (
        (0.0, "ground cost M", result.ground_cost),
        (0.54, "worst cost K", result.worst_cost),
    ):
        inset = ax.inset_axes((left, 0.0, 0.4, 1.0))
        finite = np.where(np.isfinite(cost), cost, np.nan)  # forbidden pairs stay white
        # Of a tile with some forbidden pairs the others are shown: fmax passes over NaN.
        image = _heat_map(inset, finite, source_groups, target_groups, pool=np.fmax, **options)
        bar = ax.inset_axes((left + 0.41, 0.0, 0.015, 1.0))
        ax.figure.colorbar(image, cax=bar)
        bar.tick_params(labelsize=7)
        inset.set_title(name, fontsize=10)
    return ax


def block_mass(
    result: Result,
    ax: Axes | None = None,
    *,
    colorbar: bool | None = None,
    **options: Any,
) -> Axes:
    """The share of all mass that goes from each source group to each target group.

    Parameters
    ----------
    result
        An answer of `solve` with a structure that has groups.
    ax
        Where to draw; a new figure by default.
    colorbar
        Whether to show a bar; by default in a new figure without numbers in its cells.
    **options
        As in matplotlib's ``imshow``.

    Examples
    --------
    >>> import structot as sot
    >>> result = sot.solve([[0.0, 1.0], [1.0, 0.0]], structure=sot.Groups(["a", "b"], ["x", "y"]))
    >>> [text.get_text() for text in block_mass(result).texts]
    ['50 %', '0 %', '0 %', '50 %']
    """
    mass, source, target = result.block_mass()
    share = mass / result.plan.sum()
    numbered = max(share.shape) <= _MOST_NUMBERS
    alone = ax is None
    ax = axes(ax, (1.6 + 0.55 * min(share.shape[1], 12), 1.2 + 0.5 * min(share.shape[0], 12)))
    image = ax.imshow(share, **{"cmap": "Blues", "aspect": "auto", "vmin": 0.0, **options})
    if numbered:
        for (k, l), x in np.ndenumerate(share):
            color = "white" if x > 0.6 * share.max() else "black"
            text = f"{100 * x:.0f} %"
            ax.text(l, k, text, color=color, ha="center", va="center", fontsize=8)
    for axis, names in ((ax.yaxis, source), (ax.xaxis, target)):
        shown = len(names) <= _MOST_NAMES
        axis.set_ticks(range(len(names)) if shown else [])
        axis.set_ticklabels(["–" if x is None else str(x) for x in names] if shown else [])
    ax.tick_params(length=0, labelsize=9)
    ax.set(xlabel="target group", ylabel="source group")
    if (alone and not numbered) if colorbar is None else colorbar:
        ax.figure.colorbar(image, ax=ax, label="share of all mass", shrink=0.9)
    return ax


def _heat_map(
    ax: Axes,
    values: Array,
    source_groups: Any,
    target_groups: Any,
    *,
    pool: np.ufunc,
    **options: Any,
) -> AxesImage:
    """Rows and columns sorted by group, tiles of many pairs pooled into one."""
    n, m = values.shape
    ax.set(xticks=[], yticks=[])
    rows = _sort(ax.yaxis, ax.axhline, Groups.of("source_groups", source_groups, n))
    cols = _sort(ax.xaxis, ax.axvline, Groups.of("target_groups", target_groups, m))
    tiles = _pooled(_pooled(values[rows][:, cols], pool).T, pool).T
    shown = {"cmap": "Blues", "aspect": "auto", "interpolation": "nearest", **options}
    return ax.imshow(tiles, extent=(-0.5, m - 0.5, n - 0.5, -0.5), **shown)


def _sort(axis: Any, draw: Any, groups: Groups) -> Array:
    """The order of the points by group; borders and names of the groups on their axis."""
    order = np.argsort(groups.number, kind="stable")
    number = groups.number[order]
    borders = 1 + np.flatnonzero(np.diff(number))
    # So many groups that their borders would cover the map are better seen without.
    for border in borders if len(borders) <= max(40, number.size // 10) else ():
        draw(border - 0.5, color="0.4", linestyle="--", linewidth=0.7)
    named = [k for k in range(len(groups.names)) if (number == k).any()]
    if named and len(named) <= _MOST_NAMES:
        axis.set_ticks([np.flatnonzero(number == k).mean() for k in named])
        axis.set_ticklabels([groups.names[k] for k in named], fontsize=8)
        axis.set_tick_params(length=0)
    return order


def _pooled(values: Array, pool: np.ufunc) -> Array:
    """At most `_MOST_ROWS` rows, each the pool of about equally many."""
    size = len(values)
    if size <= _MOST_ROWS:
        return values
    return pool.reduceat(
        values, np.linspace(0, size, _MOST_ROWS, endpoint=False).astype(int), axis=0
    )
