"""Plans made feasible where marginals are relaxed.

Notation. P or Q a plan, x and y the marginals that it has or should have, a and b the weights.
"""

from __future__ import annotations

import math

import numpy as np

from structot._typing import Array
from structot.marginals.sides import TV, Side
from structot.transport import InfeasibleError, fill_columns, round_plan


def sums(P: Array) -> tuple[Array, Array]:
    """P1 and Pᵀ1."""
    return P.sum(axis=1), P.sum(axis=0)


def with_hard_side(Q: Array, A: Side, B: Side, allowed: Array | None, empty: bool) -> Array:
    """Q with its hard side met, if there is one, and the other as it comes; in its memory.

    ``empty``: points without weight stay without.
    """
    if B.hard:
        return fill_columns(Q, B.weights, _spread(A, empty), allowed, overwrite=True)
    if A.hard:
        turned = None if allowed is None else allowed.T
        fill_columns(Q.T, A.weights, _spread(B, empty), turned, overwrite=True)
    return Q


def _spread(side: Side, empty: bool) -> Array:
    """Where mass that has to go somewhere goes: by weight, or anywhere if that may be created."""
    weights = side.weights
    return weights + weights.mean() if isinstance(side, TV) and not empty else weights


def of_mass(Q: Array, sides: tuple[Side, Side], mass: float, allowed: Array | None) -> Array:
    """Q with the given mass, and the nearest marginals that do not exceed a and b; overwrites Q."""
    if mass == 0.0:
        Q.fill(0.0)
        return Q
    x, y = (side.prox(z, 1.0) for side, z in zip(sides, sums(Q), strict=True))
    try:
        return round_plan(Q, x, _same_total(x, y), allowed, overwrite=True)
    except InfeasibleError:
        return _with_dummies(Q, sides[0].weights, sides[1].weights, mass, allowed)


def _with_dummies(Q: Array, a: Array, b: Array, mass: float, allowed: Array | None) -> Array:
    """Rounding with one more point per side, which takes what is not moved."""
    n, m = Q.shape
    plan, pairs = np.zeros((n + 1, m + 1)), np.ones((n + 1, m + 1), bool)
    plan[:n, :m] = Q
    plan[:n, m] = np.maximum(a - Q.sum(axis=1), 0.0)
    plan[n, :m] = np.maximum(b - Q.sum(axis=0), 0.0)
    pairs[:n, :m] = True if allowed is None else allowed
    pairs[n, m] = False
    a, b = np.append(a, b.sum() - mass), np.append(b, a.sum() - mass)
    return np.ascontiguousarray(round_plan(plan, a, _same_total(a, b), pairs)[:n, :m])


def equal_totals(A: Side, B: Side, x: Array, y: Array) -> tuple[Array, Array]:
    """Both marginals with the total of the hard side, or with their geometric mean."""
    if A.hard:
        return x, _same_total(x, y)
    if B.hard:
        return _same_total(y, x), y
    factor = math.sqrt(float(y.sum()) / float(x.sum())) if x.sum() > 0.0 else 1.0
    x = x * factor
    return x, _same_total(x, y)


def _same_total(x: Array, y: Array) -> Array:
    """y with the total of x, to the last bit."""
    y = y * (x.sum() / y.sum()) if y.sum() > 0.0 else y.copy()
    y[np.argmax(y)] += math.fsum(x.tolist()) - math.fsum(y.tolist())
    return y
