"""One picture of all goals: how far each figure is below or above its limit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.rows import Row, measured

FLOOR = 1e-4  # of the goal: keeps a vanishing figure on the logarithmic axis
MET, MISSED = "#0072B2", "#D55E00"  # Okabe-Ito: told apart by colour-blind readers and in grey


def draw(rows: Sequence[Row], path: Path) -> None:
    """Bars of measured / goal on a logarithmic axis; left of the line the goal is met."""
    judged = [row for row in rows if row.limit is not None]
    figure, ax = plt.subplots(figsize=(10, 1.2 + 0.42 * len(judged)), layout="constrained")
    for position, row in enumerate(judged):
        share = _share(row)
        ax.barh(
            position,
            share - 1.0,
            left=1.0,
            height=0.6,
            color=MET if row.met else MISSED,
            hatch=None if row.met else "//",
            edgecolor="white",
        )
        text = measured(row)
        if share <= 1.0 and not row.met:
            text += ", gap not reached"
        ax.annotate(
            text,
            (share, position),
            xytext=(-4 if share <= 1.0 else 4, 0),
            textcoords="offset points",
            ha="right" if share <= 1.0 else "left",
            va="center",
            fontsize=8,
        )
    ax.set_xscale("log")
    shares = [_share(row) for row in judged] + [1.0]
    ax.set_xlim(min(shares) / 8.0, max(shares) * 8.0)
    ax.axvline(1.0, color="black", linewidth=1.0)
    labels = [f"{row.case}\nvs {row.against}: {row.goal}" for row in judged]
    ax.set_yticks(range(len(judged)), labels, fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("measured / goal  (left of 1: goal met)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _share(row: Row) -> float:
    """Measured / goal; the caller keeps only rows with a limit."""
    assert row.limit is not None
    return max(row.ratio / row.limit, FLOOR)
