"""Curves: how a solve converged, and how the answer changes along a dial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structot import _checks
from structot.outcome import Trace
from structot.plot._parts import COLORS, axes
from structot.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from structot.solvers.path import Path

# Column of the table, how it is called, and the look of its curve.
_PANELS = (
    ("linear", "linear cost", COLORS[7], "s"),
    ("concentration", "concentration", COLORS[0], "o"),
    ("partners", "partners", COLORS[5], "^"),
)
_WIDE = 20.0  # dials over a wider range than this factor are shown on a log scale
_FLAT = 0.1  # an axis shows at least this range, relative to its largest value


def path(path: Path, ax: Axes | None = None, *, label: str | None = None, **options: Any) -> Axes:
    """Along a dial: the linear cost, how much travels together, and how far points spread.

    To be read for the elbow: the dials where concentration rises and cost and partners have not yet
    risen with it.

    Parameters
    ----------
    path
        An answer of `solve_path`.
    ax
        Where to draw; its area is shared by panels one above the other (``ax.child_axes``, the
        lowest first). A new figure by default.
    label
        What the dial is called; "reg" or "dial" by default.
    **options
        As in matplotlib's ``plot``, for all curves.

    Examples
    --------
    >>> import structot as sot
    >>> found = sot.solve_path([[0.0, 1.0], [1.0, 0.0]], reg=[0.1, 1.0])
    >>> [part.get_ylabel() for part in path(found).child_axes]
    ['partners', 'linear cost']
    """
    table = path.table()
    shown = [entry for entry in _PANELS if not np.isnan(table[entry[0]]).all()]
    ax = axes(ax, (5.2, 0.8 + 1.35 * len(shown)))
    ax.set_axis_off()
    order = np.argsort(path.dials, kind="stable")
    x = path.dials[order]
    below = None
    for k, (column, ylabel, color, marker) in enumerate(shown[::-1]):
        height = 1.0 / len(shown)
        part = ax.inset_axes((0.0, k * height, 1.0, 0.86 * height), sharex=below)
        style = {"color": color, "marker": marker, "markersize": 4, "linewidth": 1.5, **options}
        part.plot(x, table[column][order], **style)
        part.set_ylabel(ylabel, color=color)
        part.margins(y=0.12)
        _keep_flat(part)
        part.grid(color="0.9", linewidth=0.6)
        part.spines[["top", "right"]].set_visible(False)
        part.tick_params(labelbottom=below is None)
        below = part if below is None else below
    assert below is not None
    if x[0] > 0 and x[-1] > _WIDE * x[0]:
        below.set_xscale("log")
    below.set_xlabel(path.name if label is None else label)
    return ax


def _keep_flat(part: Axes) -> None:
    """A curve that hardly moves looks flat: differences as small as the gaps are not spread out."""
    low, high = part.get_ylim()
    least = _FLAT * max(abs(low), abs(high))
    if high - low < least:
        middle = (low + high) / 2
        part.set_ylim(middle - least / 2, middle + least / 2)
    part.ticklabel_format(axis="y", useOffset=False)


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
    ax = axes(ax, (6, 4.5))
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
