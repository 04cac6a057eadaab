"""One line of the result: what was measured, against what, and whether it meets its goal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.measure import Timing


@dataclass(frozen=True)
class Row:
    """A measured figure and its goal; ``ratio`` is to be at most ``limit``.

    ``ratio`` is ours / baseline in seconds, a growth exponent, a number of n×m arrays, or a share
    of what is allowed, according to ``kind``. Rows without a limit are shown for orientation.
    """

    task: str
    case: str
    against: str
    ratio: float
    limit: float | None
    goal: str
    kind: str = "time"
    ours: float | None = None
    baseline: float | None = None
    gap: float | None = None
    tol: float | None = None
    method: str = ""
    n_iter: int | None = None
    note: str = ""
    version: str = ""  # of structot, when it was measured

    @property
    def met(self) -> bool | None:
        """Whether the ratio and the promised gap were reached; None without a goal."""
        if self.limit is None:
            return None
        certified = self.gap is None or self.tol is None or self.gap <= self.tol
        return bool(self.ratio <= self.limit and certified)


def compare(
    task: str,
    case: str,
    against: str,
    ours: Timing,
    baseline: Timing,
    limit: float | None,
    goal: str,
    *,
    tol: float | None = None,
    note: str = "",
) -> Row:
    """Row of a time ratio; ``ours.answer`` is a Result, from which gap and method are taken."""
    result: Any = ours.answer
    return Row(
        task=task,
        case=case,
        against=against,
        ratio=ours.median / baseline.median,
        limit=limit,
        goal=goal,
        ours=ours.median,
        baseline=baseline.median,
        gap=float(result.gap),
        tol=tol,
        method=str(result.method),
        n_iter=int(result.n_iter),
        note=note,
    )


def growth_exponent(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """Slope of log(seconds) against log(size), least squares."""
    slope = np.polyfit(np.log(np.array([*sizes])), np.log(np.array([*seconds])), 1)[0]
    return float(slope)


def markdown(rows: Iterable[Row]) -> str:
    """The table of docs/benchmarks.md."""
    lines = [
        "| task | against | ours | baseline | measured | goal | met | gap |",
        "| --- | --- | ---: | ---: | ---: | --- | :---: | ---: |",
    ]
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        cells = [
            row.case,
            row.against,
            _seconds(row.ours),
            _seconds(row.baseline),
            measured(row),
            row.goal,
            met,
            "" if row.gap is None else f"{row.gap:.1e}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(row: Row) -> str:
    """The figure in words a reader compares with the goal."""
    if row.kind == "exponent":
        return f"(nm)^{row.ratio:.2f}"
    if row.kind == "memory":
        return f"{row.ratio:.1f} arrays"
    if row.kind == "share":
        return f"{row.ratio:.0%} of it"
    if row.ratio < 1.0:
        return f"{1.0 / row.ratio:.3g}× faster"
    return f"{row.ratio:.3g}× its time"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g} s"
