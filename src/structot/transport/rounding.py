"""Rounding a matrix into the transport polytope U(a, b), exactly.

Notation: ``P`` the matrix, ``Q`` = P scaled down until no marginal is exceeded, ``r = a - Q1`` and
``c = b - Q'1`` the rests, ``T`` the total mass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structot._checks import with_marginals

from . import kernels
from ._flow import InfeasibleError, push_rest
from .kernels import BoolArray, FloatArray

_EPS = float(np.finfo(np.float64).eps)
# Relative error of the mass of one point that is rounding.
_POINT = 64.0 * _EPS
# A point with less than this part of the mean mass is light.
_LIGHT = 1e-3
# Passes of the rank-one rest over the allowed pairs before single paths are searched.
_SPREADS = 8


class Split(NamedTuple):
    """P rounded = scaled + row_rest column_rest' / sum(row_rest); no rest, nothing to add.

    Examples
    --------
    >>> import numpy as np
    >>> split = split_rounding(np.eye(2), np.full(2, 0.5), np.full(2, 0.5))
    >>> split.scaled
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    scaled: FloatArray
    row_rest: FloatArray
    column_rest: FloatArray


def marginal_error(P: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """(|P1 - a|_1 + |P'1 - b|_1) / T, from error-free sums.

    Examples
    --------
    >>> import numpy as np
    >>> marginal_error(np.eye(2), np.ones(2), np.array([1.5, 0.5]))
    0.5
    """
    P, a, b = with_marginals("P", P, a, b)
    r, c = kernels.residuals(P, a, b)
    total = float(a.sum())
    error = float(np.abs(r).sum() + np.abs(c).sum())
    return error / total if total > 0.0 else error


def rounding_limit(a: FloatArray, b: FloatArray) -> float:
    """L1 error of one marginal that doubles cannot avoid: 4 eps T, and |sum(a) - sum(b)|."""
    supply, demand = math.fsum(a.tolist()), math.fsum(b.tolist())
    return 4.0 * _EPS * supply + abs(supply - demand)


def split_rounding(P: FloatArray, a: FloatArray, b: FloatArray, overwrite: bool = False) -> Split:
    """Q = diag(x) P diag(y) <= P with Q1 <= a, Q'1 <= b, and the rests r = a - Q1, c = b - Q'1.

    The rows are scaled down first, then the columns [altschuler2017]. The rounded plan is
    Q + r c' / sum(r); a convex, positively homogeneous f is at most f(Q) + f(r c') / sum(r) there.

    Parameters
    ----------
    P
        Matrix to round, n x m; negative entries are cut off at 0.
    a, b
        Marginals, non-negative, with equal totals T.
    overwrite
        Whether Q may take the memory of P.

    Returns
    -------
    Split
        (Q, r, c), all non-negative. Q = P and r = c = 0 when P is in U(a, b) to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> Q, r, c = split_rounding(np.eye(2), np.array([0.5, 1.0]), np.array([1.0, 0.5]))
    >>> Q.diagonal(), r, c
    (array([0.5, 0.5]), array([0. , 0.5]), array([0.5, 0. ]))
    """
    Q = (np.asarray if overwrite else np.array)(P, dtype=np.float64, order="C")
    if Q.min(initial=0.0) < 0.0:
        np.maximum(Q, 0.0, out=Q)
    # No weight, no mass, not even a trace of it within the limit below.
    Q[a == 0.0] = 0.0
    Q[:, b == 0.0] = 0.0
    r, c = kernels.residuals(Q, a, b)
    if not (np.isfinite(r).all() and np.isfinite(c).all()):
        raise ValueError(
            "P, a and b must be finite to be rounded, but a row or column sum is NaN or infinite; "
            "round the last finite iterate instead."
        )
    limit = rounding_limit(a, b)
    # Of every point, not only in all: a little mass that is missing may be all that a point has.
    # What the totals differ by is left to the heaviest.
    unequal = abs(math.fsum(a.tolist()) - math.fsum(b.tolist()))
    settled = True
    for rest, weights in ((r, a), (c, b)):
        slack = _POINT * weights
        slack[np.argmax(slack)] += unequal
        settled = settled and bool((np.abs(rest) <= slack).all())
    if settled and np.abs(r).sum() <= limit and np.abs(c).sum() <= limit:
        return Split(Q, np.zeros_like(r), np.zeros_like(c))
    if (r < 0.0).any():
        Q *= _shrink(a, r)[:, None]
        r, c = kernels.residuals(Q, a, b)
    if (c < 0.0).any():
        Q *= _shrink(b, c)
        r, c = kernels.residuals(Q, a, b)
    return Split(Q, np.maximum(r, 0.0), np.maximum(c, 0.0))


def _shrink(weights: FloatArray, rest: FloatArray) -> FloatArray:
    """min(1, weight / sum), where the sum is weight - rest."""
    scale = np.ones_like(weights)
    np.divide(weights, weights - rest, out=scale, where=rest < 0.0)
    return scale


def round_plan(
    P: FloatArray,
    a: FloatArray,
    b: FloatArray,
    allowed: BoolArray | None = None,
    overwrite: bool = False,
) -> FloatArray:
    """A plan in U(a, b) with |plan - P|_1 <= 2 (|P1 - a|_1 + |P'1 - b|_1) [altschuler2017].

    The marginals are right to 1e-15 T if the totals of a and b agree that well. A P that is in
    U(a, b) to rounding comes back unchanged.

    With `allowed`, mass of P on forbidden pairs is dropped, and the rest r c' is first spread over
    the allowed pairs in proportion. What then remains goes along shortest augmenting paths: a row
    that lacks mass takes some from a column it may use, the former owner of that mass looks for
    another column, and so on. Such a path exists as long as any feasible plan does, so the search
    is also the proof of infeasibility when it fails. (The bound above does not hold then: a path
    may move its mass several times.)

    Parameters
    ----------
    P
        Matrix to round, n x m; negative entries are cut off at 0.
    a, b
        Marginals, non-negative, with equal totals T.
    allowed
        Boolean n x m; False where no mass may go.
    overwrite
        Whether the plan may take the memory of P, if P is a C-contiguous array of float64.

    Returns
    -------
    FloatArray
        The plan, non-negative; zero where a_i = 0, b_j = 0 or the pair is forbidden.

    Raises
    ------
    InfeasibleError
        If more than rounding errors must use a forbidden pair.

    Examples
    --------
    >>> import numpy as np
    >>> round_plan(np.diag([0.6, 0.5]), np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    array([[0.5 , 0.  ],
           [0.25, 0.25]])
    """
    P, a, b = with_marginals("P", P, a, b)
    if allowed is not None and np.shape(allowed) != P.shape:
        raise ValueError(f"allowed has shape {np.shape(allowed)}, but P has {P.shape}.")
    if allowed is not None and not np.all(allowed):
        Q = _round_allowed(np.where(allowed, P, 0.0), a, b, np.ascontiguousarray(allowed))
    else:
        Q = _add_rest(*split_rounding(P, a, b, overwrite))
    return _complete_light_points(Q, a, b) if _is_skewed(a) or _is_skewed(b) else Q


def _is_skewed(weights: FloatArray) -> bool:
    """Whether a rounding error of the total is much beside the mass of some point."""
    least = np.min(weights, where=weights > 0, initial=np.inf)
    return bool(least * weights.size < _LIGHT * weights.sum())


def _complete_light_points(Q: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Give points what rounding has left them short of, in place.

    The rests of heavy points are rounding errors of their own, of either sign, and what one of
    them has too much a light one may lack. It takes it from the heaviest partner it has.
    """
    for side, (plan, own, partner) in enumerate(((Q, a, b), (Q.T, b, a))):
        rest = kernels.residuals(Q, a, b)[side]
        for i in np.flatnonzero((rest > _POINT * own) & (rest <= _LIGHT * own)):
            used = np.flatnonzero(plan[i])
            j = used[np.argmax(partner[used])]
            if partner[j] * _POINT > rest[i]:
                plan[i, j] += rest[i]
    return Q


def _add_rest(Q: FloatArray, r: FloatArray, c: FloatArray) -> FloatArray:
    """Q + r c' / T_rest, in place; the larger total as divisor never exceeds a marginal."""
    total = max(r.sum(), c.sum())
    if total > 0.0:
        kernels.add_outer(Q, r, c, 1.0 / total)
    return Q


def _round_allowed(P: FloatArray, a: FloatArray, b: FloatArray, allowed: BoolArray) -> FloatArray:
    Q, r, c = split_rounding(P, a, b, overwrite=True)
    if allowed[np.ix_(r > 0.0, c > 0.0)].all():
        return _add_rest(Q, r, c)
    for _ in range(_SPREADS):
        total = max(r.sum(), c.sum())
        # Restricted to allowed pairs the rank-one rest stays within r and c: still a lower part.
        Q += np.where(allowed, (r / total)[:, None] * c, 0.0) if total > 0.0 else 0.0
        r, c = (np.maximum(rest, 0.0) for rest in kernels.residuals(Q, a, b))
        if r.sum() > 0.5 * total:
            break
    for _ in range(2):  # the second time for what the first lost to rounding
        push_rest(Q, allowed, r, c)
        left = min(r.sum(), c.sum())
        r, c = (np.maximum(rest, 0.0) for rest in kernels.residuals(Q, a, b))
    # Totals of parts of a and b that should agree do so only up to a rounding error per weight.
    if left > _EPS * (a.shape[0] + b.shape[0]) * a.sum():
        raise InfeasibleError(
            f"allowed leaves no plan with the marginals a and b: {left:.3g} of the total mass "
            f"{a.sum():.3g} would have to use a forbidden pair; allow more pairs (a finite cost) "
            "or change the weights."
        )
    return Q


def fill_columns(
    P: FloatArray,
    b: FloatArray,
    spread: FloatArray,
    allowed: BoolArray | None = None,
    overwrite: bool = False,
) -> FloatArray:
    """P with the column sums b: every column scaled, a column of nothing filled like ``spread``.

    The row sums come out as they may; ``overwrite``: in the memory of P. InfeasibleError where b
    has mass in a column without any allowed pair of positive spread.

    Examples
    --------
    >>> import numpy as np
    >>> fill_columns(np.array([[1.0, 0.0], [3.0, 0.0]]), np.ones(2), np.array([1.0, 1.0]))
    array([[0.25, 0.5 ],
           [0.75, 0.5 ]])
    """
    total = P.sum(axis=0)
    empty = np.flatnonzero((b > 0.0) & ~(total > 1e-300))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = np.where((b > 0.0) & (total > 1e-300), b / total, 0.0)
        Q = np.multiply(P, factors, out=P if overwrite else None)
    for j in empty:
        share = spread if allowed is None else np.where(allowed[:, j], spread, 0.0)
        if not share.sum() > 0.0:
            raise InfeasibleError(
                f"column {j} has mass {b[j]:.6g}, and no allowed pair to take it; allow one."
            )
        Q[:, j] = b[j] * share / share.sum()
    return Q
