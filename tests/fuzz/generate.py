"""Random problems, each made from one integer.

Notation. n × m pairs, M the ground cost with +inf on forbidden pairs, a and b the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from fuzz.expressions import FAMILIES, GENERIC, Scene, array

import structot as sot

Array = np.ndarray

ORDINARY, WIDE = 3.0, 12.0  # decades between the smallest and the largest cost of one problem
_WIDE_SHARE = 0.25
# How often there is an entropy term. It takes one layer of blocks: sums of layers mostly refuse it.
_REG_SHARE = {"none": 0.4, "modular": 0.3, "groups": 0.3, "coverage": 0.3, "convex": 0.0}
_REG_SHARE["routes"] = 0.0
_HEADER = "import numpy as np, structot as sot; from math import inf"


@dataclass(frozen=True, eq=False)
class Case:
    """A problem that `solve` must be able to answer: valid input, a feasible plan exists.

    ``wide`` tells costs over twelve decades, and finite prices that mean "forbidden", from ordinary
    costs. ``code`` is the structure as an expression.
    """

    seed: int
    M: Array
    a: Array | None
    b: Array | None
    code: str
    family: str
    wide: bool
    reg: float
    tol: float

    @cached_property
    def structure(self) -> sot.structures.Structure | None:
        return eval(self.code, {"sot": sot, "np": np, "inf": math.inf})

    @property
    def convex(self) -> bool:
        """Whether there is a `ConvexCost`, which has no values on sets of pairs."""
        return self.family == "convex"

    @property
    def routes(self) -> bool:
        """Whether it is made of `Routes`, which prices lanes and not sets of pairs."""
        return self.family == "routes"

    def options(self) -> dict:
        """The keyword arguments of `solve` that belong to the problem."""
        return {"structure": self.structure, "reg": self.reg, "tol": self.tol}

    def line(self, method: str = "auto") -> str:
        """One line of Python that rebuilds the problem and solves it."""
        a, b = ("None" if x is None else array(x) for x in (self.a, self.b))
        call = f"sot.solve({array(self.M)}, {a}, {b}, structure={self.code}"
        limits = f"reg={self.reg!r}, method={method!r}, tol={self.tol!r}, time_limit=20.0"
        return f"{_HEADER}; print({call}, {limits}))"


def case(seed: int, decades: float | None = None) -> Case:
    """The problem with this number.

    Parameters
    ----------
    seed
        Any integer >= 0; the same one always gives the same problem.
    decades
        How far the costs of the problem spread: ``ORDINARY``, ``WIDE``, or None for a draw.
    """
    rng = np.random.default_rng([seed, 2024])
    names = list(FAMILIES)
    share = np.array([FAMILIES[name][1] for name in names], float)
    family = names[int(rng.choice(len(names), p=share / share.sum()))]
    wide = bool(rng.random() < _WIDE_SHARE) if decades is None else decades > ORDINARY
    n, m = _shape(rng, family)
    a, b = _weights(rng, n, m)
    M = _costs(rng, n, m, wide)
    _forbid(rng, M, np.ones(n) / n if a is None else a, np.ones(m) / m if b is None else b)
    unit = _typical(M)
    code = FAMILIES[family][0](Scene(rng, M, unit))
    reg = 0.0
    if rng.random() < _REG_SHARE.get(family, 0.05):
        reg = float(unit * 10.0 ** rng.uniform(-3, 6 if rng.random() < 0.1 else 2))
    tol = 1e-2 if family == "convex" else float(rng.choice([1e-4] * 8 + [1e-2, 1e-8]))
    return Case(seed, M, a, b, code, family, wide, reg, tol)


def _shape(rng: np.random.Generator, family: str) -> tuple[int, int]:
    """Mostly up to 12 points a side, a third of the problems tiny, a few of 20 to 40 points."""
    if family in GENERIC:
        n = int(rng.integers(1, 5))
        return n, int(rng.integers(1, (16 if rng.random() < 0.1 else 10) // n + 1))
    draw = rng.random()
    if draw < 0.33:
        n = int(rng.integers(1, 5))
        return n, int(rng.integers(1, 9 // n + 1))
    low, high = (1, 13) if draw < 0.95 else (20, 41)
    return int(rng.integers(low, high)), int(rng.integers(low, high))


# ---------------------------------------------------------------- weights


def _weights(rng: np.random.Generator, n: int, m: int) -> tuple[Array | None, Array | None]:
    """Weights of both sides with one total, from 1e-6 to 1e6; None stands for uniform ones."""
    draw = rng.random()
    if draw < 0.2:
        return None, None
    a, b = _side(rng, n), _side(rng, m)
    total = 1.0 if draw < 0.7 else 10.0 ** rng.uniform(-6, 6)
    return a * (total / a.sum()), b * (total / b.sum())


def _side(rng: np.random.Generator, size: int) -> Array:
    kind = rng.integers(5)
    if kind == 0:
        weights = np.ones(size)
    elif kind == 1:
        weights = rng.integers(0, 4, size).astype(float)
    elif kind == 2:
        weights = 10.0 ** rng.uniform(-12, 0, size)
    else:
        weights = rng.random(size)
        weights[rng.random(size) < (0.3 if kind == 3 else 0.0)] = 0.0
    if not weights.any():
        weights[int(rng.integers(size))] = 1.0
    return weights


# ---------------------------------------------------------------- costs


def _costs(rng: np.random.Generator, n: int, m: int, wide: bool) -> Array:
    if wide:
        M = _wide_costs(rng, n, m)
    else:
        M = _ordinary_costs(rng, n, m)
    if rng.random() < 0.15:  # points that coincide
        M = M[rng.integers(0, n, n)]
    if rng.random() < 0.15:
        M[rng.random((n, m)) < 0.3] = 0.0
    return M * (10.0 ** rng.uniform(-9, 9) if rng.random() < 0.5 else 1.0)


def _ordinary_costs(rng: np.random.Generator, n: int, m: int) -> Array:
    """Costs within about three decades, zeros apart."""
    kind = rng.integers(12)
    if kind < 3:
        return rng.random((n, m)).round(3)
    if kind < 5:
        return 10.0 ** rng.uniform(-ORDINARY, 0, (n, m))
    if kind < 8:  # squared distances between points, rounded so that some of them tie
        d = int(rng.integers(1, 4))
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        return ((X[:, None] - Y) ** 2).sum(axis=2).round(3)
    if kind < 10:
        return rng.integers(0, 6, (n, m)).astype(float)
    if kind < 11:  # distances on a line, coincident points included
        return np.abs(rng.integers(0, 5, (n, 1)) - rng.integers(0, 5, (1, m))).astype(float)
    return np.full((n, m), rng.choice([0.0, 1.0, 1.0]))


def _wide_costs(rng: np.random.Generator, n: int, m: int) -> Array:
    """Costs over twelve decades, or ordinary ones with prices that mean "forbidden"."""
    if rng.random() < 0.6:
        return 10.0 ** rng.uniform(-WIDE, 0, (n, m))
    M = _ordinary_costs(rng, n, m)
    M[rng.random((n, m)) < rng.uniform(0.05, 0.5)] = 10.0 ** rng.integers(4, 16)
    return M


def _forbid(rng: np.random.Generator, M: Array, a: Array, b: Array) -> None:
    """Set some pairs to +inf, none that a certain feasible plan uses."""
    if rng.random() < 0.8:
        return
    forbidden = rng.random(M.shape) < rng.uniform(0.05, 0.9)
    forbidden[_staircase(rng, a, b)] = False
    if rng.random() < 0.2:  # points without mass need no partner
        forbidden[a == 0], forbidden[:, b == 0] = True, True
    M[forbidden] = np.inf


def _staircase(rng: np.random.Generator, a: Array, b: Array) -> tuple[list[int], list[int]]:
    """The pairs of a plan by the north-west corner rule, over the points with mass.

    Neighbouring pairs of the staircase share a point, so that sums that differ by rounding still
    leave it feasible.
    """
    rows = rng.permutation(np.flatnonzero(a)).tolist()
    cols = rng.permutation(np.flatnonzero(b)).tolist()
    i = k = 0
    used: tuple[list[int], list[int]] = ([rows[0]], [cols[0]])
    left_a, left_b = float(a[rows[0]]), float(b[cols[0]])
    while i < len(rows) - 1 or k < len(cols) - 1:
        if k == len(cols) - 1 or (i < len(rows) - 1 and left_a <= left_b):
            i, left_b = i + 1, left_b - left_a
            left_a = float(a[rows[i]])
        else:
            k, left_a = k + 1, left_a - left_b
            left_b = float(b[cols[k]])
        used[0].append(rows[i])
        used[1].append(cols[k])
    return used


def _typical(M: Array) -> float:
    """A cost such as most pairs have: the median of those that are neither 0 nor forbidden."""
    costs = M[np.isfinite(M) & (M > 0)]
    return float(np.median(costs)) if costs.size else 1.0
