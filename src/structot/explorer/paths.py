"""The structures a page offers, each with the range of its dial.

Notation: n, m numbers of source and target points; w the price of a route in units of a block's
total cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import structot as sot
from structot._typing import Array
from structot.structures.base import Structure

__all__ = ["KINDS", "Kind", "available", "solve_kind"]


@dataclass(frozen=True)
class Kind:
    """One structure with a dial.

    Parameters
    ----------
    name, about
        For the button, and for the line below it.
    dial
        What the dial is called.
    ends
        What its smallest and its largest value mean.
    values
        The dials of a path with so many stops, for so many source and target points.
    structure
        The structure of given groups at a dial.
    """

    name: str
    about: str
    dial: str
    ends: tuple[str, str]
    values: Callable[[int, int, int], Array]
    structure: Callable[[Any, Any, float], Structure]


def _discounts(steps: int, n: int, m: int) -> Array:
    return np.linspace(0.0, 0.95, steps)


def _charges(steps: int, n: int, m: int) -> Array:
    """The largest entry of a block falls like 1/n while its cost grows like n²: so w like 1/n."""
    return np.concatenate([[0.0], np.geomspace(0.5, 40.0, steps - 1) / max(n, m)])


def _route_charges(steps: int, n: int, m: int) -> Array:
    return np.linspace(0.0, 0.4, steps)


def _groups(rows: Any, cols: Any, discount: float) -> Structure:
    return sot.Groups(rows, cols, sot.concave.Discount(discount))


def _fixed_charge(rows: Any, cols: Any, weight: float) -> Structure:
    return sot.Modular() + sot.Coverage(rows, cols, weights=weight, units="block")


def _routes(rows: Any, cols: Any, charge: float) -> Structure:
    return sot.Routes(rows, cols, charge)


KINDS = {
    "groups": Kind(
        "groups",
        "A block of pairs gets cheaper the more of it is used. Groups stay together by spreading: "
        "watch the partners.",
        "discount",
        ("plain transport", "groups as a whole"),
        _discounts,
        _groups,
    ),
    "routes": Kind(
        "routes",
        "The plain cost plus a price for every route between two groups, by the share of a "
        "point's mass on it. Groups stay together and points keep their partners.",
        "charge of a route",
        ("plain transport", "few routes"),
        _route_charges,
        _routes,
    ),
    "charge": Kind(
        "fixed charge",
        "The plain cost plus a price for every pair of groups in use, by its largest entry.",
        "price of a block",
        ("plain transport", "few routes"),
        _charges,
        _fixed_charge,
    ),
}


def available(rows: Any, cols: Any) -> list[str]:
    """The kinds that these groups allow: a route needs groups on both sides.

    Examples
    --------
    >>> available([0, 0, 1], None)
    ['groups', 'charge']
    >>> available([0, 0, 1], [0, 1])
    ['groups', 'routes', 'charge']
    """
    both = rows is not None and cols is not None
    return [name for name in KINDS if name != "routes" or both]


def solve_kind(
    kind: Kind,
    M: Array,
    rows: Any,
    cols: Any,
    *,
    steps: int,
    a: Array | None = None,
    b: Array | None = None,
    **options: Any,
) -> sot.Path:
    """The certified path of a kind, one answer per dial; options as in `structot.solve_path`.

    Examples
    --------
    >>> M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    >>> len(solve_kind(KINDS["groups"], M, [0, 1, 0, 1], [0, 1, 1, 0], steps=3))
    3
    """
    dials = kind.values(steps, *M.shape)
    structures = [kind.structure(rows, cols, float(x)) for x in dials]
    return sot.solve_path(M, a, b, structures=structures, **options)
