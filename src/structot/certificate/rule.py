"""What counts as zero: one rule for the loop, the solvers and `verify`.

A bound is made safe: the rounding error of evaluating it is subtracted. A value is known to
``atol``, its own rounding error, at most a tenth of what ``tol`` allows unless the value is no more
than that error itself. Converged means value - bound <= tol |value| + atol; the public gap is
(value - bound) / |value|, nothing else.
"""

from __future__ import annotations

import math

import numpy as np

from structot._typing import Array

EPS = float(np.finfo(float).eps)
# The rounding error of a value, relative to the sum of the absolute terms it is made of; the sums
# themselves carry their errors along.
ROUNDING = 16.0 * EPS
# The largest part of tol · |value| that rounding may take.
_SHARE_OF_TOL = 0.1


def relative_gap(value: float, lower_bound: float) -> float:
    """max(0, value - lower_bound) / |value|, where 0/0 is 0.

    Examples
    --------
    >>> relative_gap(2.0, 1.5), relative_gap(0.0, 0.0), relative_gap(0.0, -1.0)
    (0.25, 0.0, inf)
    """
    missing = value - lower_bound
    if missing <= 0.0:
        return 0.0
    return missing / abs(value) if value != 0.0 else math.inf


def absolute_tolerance(
    value: float, magnitude: float, tol: float, extra: float = 0.0, given: float | None = None
) -> float:
    """What counts as nothing beside this value: its rounding error, within limits, or ``given``.

    ``extra`` is an error beside that of the sum over ``magnitude``; it counts up to the limit only.

    Examples
    --------
    >>> absolute_tolerance(1.0, 1.0, 1e-4) == ROUNDING
    True
    >>> absolute_tolerance(1.0, 1.0, 1e-4, extra=1e-3)
    1e-05
    """
    rounding = ROUNDING * magnitude
    if abs(value) > rounding:
        rounding = min(rounding + extra, _SHARE_OF_TOL * tol * abs(value))
    return rounding if given is None else max(rounding, given)


def is_converged(value: float, lower_bound: float, tol: float, atol: float) -> bool:
    """Whether value - lower_bound <= tol |value| + atol.

    Examples
    --------
    >>> is_converged(1.0, 0.9999, tol=1e-3, atol=0.0), is_converged(1.0, 0.9, tol=1e-3, atol=0.0)
    (True, False)
    """
    return bool(value - lower_bound <= tol * abs(value) + atol)


def safe_sum(terms: Array, pairs: int, size: float | None = None) -> float:
    """Σ terms, less its rounding error: a bound that arithmetic cannot have raised.

    The sum itself is correctly rounded. What it is made of is not: a cost K is in B(F) up to the
    rounding of sums over the ``pairs`` of a block, which grows like their root. ``size`` is the sum
    of the absolute values of all that the terms were made of, by default their own.

    Examples
    --------
    >>> import numpy as np
    >>> terms = np.full(10, 0.1)
    >>> safe_sum(terms, 10) < 1.0, safe_sum(terms, 10) > 1.0 - 1e-12
    (True, True)
    """
    size = float(np.abs(terms).sum()) if size is None else size
    if not math.isfinite(size):
        return -math.inf
    return math.fsum(terms.tolist()) - bound_rounding(pairs) * size


def bound_rounding(pairs: int) -> float:
    """The rounding error of a bound over so many pairs, relative to what it is made of."""
    return (8.0 + 0.5 * math.sqrt(pairs)) * EPS
