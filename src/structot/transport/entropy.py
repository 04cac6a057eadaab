"""The entropy of a plan relative to the independent one, without cancellation.

Notation: ``r = a bᵀ / T`` the independent plan, ``d`` the metric, h(x, r) = x log(x/r) - x + r.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .kernels import BoolArray, FloatArray

_jit = njit(cache=True, nogil=True, error_model="numpy")

# Relative distance of x from r below which h is summed as a series: ten terms are exact there.
_NEAR = 1.0 / 64.0


@_jit
def surplus(x: float, r: float) -> float:
    """h(x, r) = x log(x/r) - x + r, to an absolute error of a few eps · |x - r|.

    Near x = r the three terms cancel to (x - r)²/(2r); the series Σ_k (-t)^k / (k (k-1)) of
    (1 + t) log(1 + t) - t, k >= 2, has no such trouble.
    """
    if x <= 0.0:
        return r
    if r <= 0.0:
        return np.inf
    t = (x - r) / r
    if abs(t) > 0.5:
        return x * np.log(x / r) - (x - r)
    if abs(t) > _NEAR:
        return x * np.log1p(t) - (x - r)
    series = 0.0
    for k in range(10, 1, -1):
        series = 1.0 / (k * (k - 1)) - t * series
    return r * t * t * series


@_jit
def surpluses(x: FloatArray, r: FloatArray) -> FloatArray:
    """h(x, r) = x log(x / r) - x + r, entry by entry, for two vectors.

    Examples
    --------
    >>> import numpy as np
    >>> surpluses(np.array([2.0, 0.0]), np.array([2.0, 0.5]))
    array([0. , 0.5])
    """
    out = np.empty(x.size)
    for k in range(x.size):
        out[k] = surplus(x[k], r[k])
    return out


@_jit
def _sums(
    P: FloatArray, a: FloatArray, b: FloatArray, d: FloatArray, allowed: BoolArray
) -> tuple[float, float]:
    total = 0.0
    lost = 0.0  # what rounding has taken from total
    change = 0.0
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            if allowed.size == 0 or allowed[i, j]:
                r = a[i] * b[j]
                weight = d[i, j] if d.size > 1 else d[0, 0]
                term = weight * surplus(P[i, j], r)
                new = total + term
                lost += (total - new) + term if total >= term else (term - new) + total
                total = new
                change += weight * abs(P[i, j] - r)
    return total + lost, change


def relative_entropy(
    P: FloatArray,
    a: FloatArray,
    b: FloatArray,
    metric: FloatArray | float = 1.0,
    allowed: BoolArray | None = None,
    total: float | None = None,
) -> tuple[float, float]:
    """Σ d (P log(P/r) - P + r) over the allowed pairs, and Σ d |P - r|, r = a bᵀ / T.

    The rounding error of the first is a few eps times the sum of both. T is ``total``, by default
    that of a.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> float(np.exp(relative_entropy(np.diag(half), half, half)[0]).round(12))
    2.0
    """
    d = np.array(metric, dtype=float, ndmin=2)
    inside = np.empty((0, 0), bool) if allowed is None else np.ascontiguousarray(allowed)
    plan = np.ascontiguousarray(P, dtype=float)
    T = a.sum() if total is None else total
    entropy, change = _sums(plan, a, b / T, np.ascontiguousarray(d), inside)
    return float(entropy), float(change)
