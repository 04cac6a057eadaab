"""From paths to one HTML file: the template of this folder, with the data as JSON inside.

Notation: P plan, X, Y points, M cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

import structot as sot
from structot._labels import Labels
from structot._typing import Array
from structot.explorer.paths import KINDS, Kind
from structot.plot import COLORS

__all__ = ["Clouds", "page"]

_SHARES = 10_000  # a share of a point's mass is a whole number of these in the page
_SHOWN = ("dial", "value", "linear", "concentration", "partners", "gap")  # of a path's table


@dataclass(frozen=True, eq=False)
class Clouds:
    """What is drawn: cost, labels of both sides (None: no groups), and points where there are any.

    Without points the two sides stand opposite each other, in the order of their groups.
    """

    M: Array
    rows: Any = None
    cols: Any = None
    X: Array | None = None
    Y: Array | None = None

    def __post_init__(self) -> None:
        if (self.X is None) != (self.Y is None):
            raise ValueError("pass points of both sides, X and Y, or of neither.")

    def places(self, labels: tuple[Array, Array]) -> tuple[Array, Array]:
        """Where the points stand, (n, 2) and (m, 2): more than two coordinates by the plane of
        largest variance."""
        if self.X is None or self.Y is None:
            return tuple(  # type: ignore[return-value]
                np.column_stack([np.full(len(order), float(side)), 1 - order / max(1, len(order))])
                for side, order in enumerate(map(_ranks, labels))
            )
        if self.X.shape[1] == 1:
            X, Y = (np.column_stack([Z, np.full(len(Z), y)]) for Z, y in ((self.X, 1), (self.Y, 0)))
            height = max(np.ptp(np.concatenate([X, Y])[:, 0]), 1e-300) / 3.0
            return X * [1.0, height], Y * [1.0, height]
        if self.X.shape[1] == 2:
            return self.X, self.Y
        centred = np.concatenate([self.X, self.Y]) - np.concatenate([self.X, self.Y]).mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
        return tuple(np.split(centred @ axes.T, [len(self.X)]))  # type: ignore[return-value]


def page(clouds: Clouds, paths: Mapping[str, sot.Path], *, title: str, lead: str = "") -> str:
    """The page as text: one file, which needs nothing else.

    Parameters
    ----------
    clouds
        Cost, labels and points of the problem.
    paths
        Name of a kind in `KINDS` -> its answers along the dial.
    title, lead
        Above the picture.

    Examples
    --------
    >>> from structot.explorer import Clouds, solve_kind
    >>> M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    >>> labels = [0, 1, 0, 1], [0, 1, 1, 0]
    >>> paths = {"groups": solve_kind(KINDS["groups"], M, *labels, steps=3)}
    >>> page(Clouds(M, *labels), paths, title="Four points")[:15]
    '<!doctype html>'
    """
    folder = resources.files("structot.explorer")
    parts = {
        "STYLE": folder.joinpath("page.css").read_text(encoding="utf-8"),
        "SCRIPT": folder.joinpath("page.js").read_text(encoding="utf-8"),
        "DATA": _embedded({"title": title, "lead": lead, **_data(clouds, paths)}),
    }
    text = folder.joinpath("page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"/*{name}*/", part)
    return text


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no text inside can end: "<" only occurs in strings, where it may be escaped."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _data(clouds: Clouds, paths: Mapping[str, sot.Path]) -> dict[str, Any]:
    n, m = clouds.M.shape
    labels, names = _both_sides(clouds.rows, clouds.cols, n, m)
    first = next(iter(paths.values()))
    sides = {
        side: {
            "points": _rounded(points),
            "groups": number.tolist(),
            "weights": _rounded(weights / weights.sum()),
            "order": _ranks(number).tolist(),
            "cuts": (np.flatnonzero(np.diff(np.sort(_last(number)))) + 1).tolist(),
        }
        for side, points, number, weights in zip(
            ("source", "target"), clouds.places(labels), labels, first[0].weights, strict=True
        )
    }
    return {
        **sides,
        "groups": names,
        "palette": list(COLORS[:-1]),  # black is no colour on a dark page
        "distances": clouds.X is not None,
        "start": _start(first),
        "paths": [_path(KINDS[name], found) for name, found in paths.items()],
    }


def _path(kind: Kind, found: sot.Path) -> dict[str, Any]:
    table = found.table()
    stops = [
        {
            **{name: _number(table[name][k]) for name in _SHOWN},
            "converged": result.converged,
            "plan": _shares(result.plan),
        }
        for k, result in enumerate(found)
    ]
    return {
        "name": kind.name,
        "about": kind.about,
        "dial": kind.dial,
        "ends": list(kind.ends),
        "stops": stops,
    }


def _start(path: sot.Path) -> int:
    """The first stop with three quarters of the concentration that the dial can buy."""
    share = path.table()["concentration"]
    if not np.isfinite(share).all():
        return len(path) // 2
    return int(np.argmax(share >= share.min() + 0.75 * (share.max() - share.min())))


def _shares(P: Array) -> list[list[int]]:
    """Row by row: column, share of the row, column, share, ..., in ten-thousandths, none 0."""
    mass = P.sum(axis=1, keepdims=True)
    shares = np.rint(_SHARES * P / np.where(mass > 0, mass, 1.0)).astype(int)
    lists = []
    for row in shares:
        cols = np.flatnonzero(row)
        lists.append(np.column_stack([cols, row[cols]]).ravel().tolist())
    return lists


def _both_sides(rows: Any, cols: Any, n: int, m: int) -> tuple[tuple[Array, Array], list[str]]:
    """Numbers of the groups of both sides, -1 for none, and their names; equal labels are equal."""
    sides = [[None] * size if side is None else list(side) for side, size in ((rows, n), (cols, m))]
    both = Labels.of("labels", sides[0] + sides[1], n + m)
    numbers = np.split(both.number, [n])
    return (numbers[0], numbers[1]), [str(name) for name in both.classes.tolist()]


def _last(number: Array) -> Array:
    """Points of no group after all others."""
    return np.where(number < 0, number.max(initial=0) + 1, number)


def _ranks(number: Array) -> Array:
    """The place of every point when they are sorted by group."""
    ranks = np.empty(len(number), int)
    ranks[np.argsort(_last(number), kind="stable")] = np.arange(len(number))
    return ranks


def _rounded(values: Array) -> list[Any]:
    """Five digits of the largest: more than a picture can show."""
    scale = np.abs(values).max(initial=0.0)
    digits = 5 - (int(np.ceil(np.log10(scale))) if scale > 0 else 0)
    return np.round(values, digits).tolist()


def _number(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
