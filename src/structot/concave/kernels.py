"""Compiled scalar forms of the concave functions g of `structot.concave`.

Notation: x >= 0 a point, h >= 0 a step, (kind, params) a packed function, b a block of a packed
table, whose function is outer[b] * g_b(inner[b] * x). Nothing is checked here; a kind without a
compiled form (CUSTOM) gives NaN. The formulas are those of the NumPy reference, where they are
explained.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from structot.concave.base import (
    LINEAR,
    LOG,
    PIECEWISE_LINEAR,
    POWER,
    SQRT,
    STEP,
    THRESHOLD_SQRT,
    TRUNCATION,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# NumPy's rules for division spare a test per quotient. Zero divisors are still excluded by hand, so
# that the same code runs uncompiled.
_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def _piece(params: Array, x: float) -> int:
    """Index of the piece to the right of x; params = [K breaks, K+1 slopes, K values]."""
    low, high = 0, (params.size - 1) // 3
    while low < high:
        middle = (low + high) // 2
        if params[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@_jit
def _piecewise_secant(params: Array, x: float, h: float) -> float:
    count, k = (params.size - 1) // 3, _piece(params, x)
    if h == 0.0:
        return params[count + k]
    mean, done = 0.0, 0.0
    while done < h:
        reach = min(params[k] - x, h) if k < count else h
        mean += params[count + k] * ((reach - done) / h)
        done = reach
        k += 1
    return mean


@_jit
def _power_secant(p: float, x: float, h: float) -> float:
    if x == 0.0:
        return h ** (p - 1.0) if h > 0.0 or p == 1.0 else np.inf
    ratio = h / x
    growth = p * math.log1p(ratio)
    if growth > 1.0:
        return ((x + h) ** p - x**p) / h
    return x ** (p - 1.0) * (p if ratio < 1e-17 else math.expm1(growth) / ratio)


@_jit
def _threshold_secant(alpha: float, scale: float, x: float, h: float) -> float:
    y = max(x - alpha, 0.0)
    below = min(max(alpha - x, 0.0), h)
    above = h - below
    mean = 1.0 / (math.sqrt(y / scale + 0.25) + math.sqrt((y + above) / scale + 0.25))
    return below / h + above / h * mean if h > 0.0 else mean


@_jit
def secant(kind: int, params: Array, x: float, h: float) -> float:
    """(g(x + h) - g(x)) / h without cancellation; the right slope where h = 0."""
    if kind == LINEAR:
        return 1.0
    if kind == THRESHOLD_SQRT:
        return _threshold_secant(params[0], params[1], x, h)
    if kind == SQRT:
        return 1.0 / (math.sqrt(x) + math.sqrt(x + h)) if x + h > 0.0 else np.inf
    if kind == POWER:
        return _power_secant(params[0], x, h)
    if kind == LOG:
        ratio = h / (params[0] + x)
        return params[0] / (params[0] + x) * (math.log1p(ratio) / ratio if ratio > 0.0 else 1.0)
    if kind == TRUNCATION:
        if h > 0.0:
            return min(max(params[0] - x, 0.0), h) / h
        return 1.0 if x < params[0] else 0.0
    if kind == PIECEWISE_LINEAR:
        return _piecewise_secant(params, x, h)
    if kind == STEP:
        if x > 0.0:
            return 0.0
        return 1.0 / h if h > 0.0 else np.inf
    return np.nan


@_jit
def block_secant(
    kind: Ints,
    offset: Ints,
    params: Array,
    outer: Array,
    inner: Array,
    b: int,
    x: float,
    h: float,
) -> float:
    """Mean slope of block b over [x, x + h]."""
    scale, own = outer[b] * inner[b], params[offset[b] : offset[b + 1]]
    return scale * secant(kind[b], own, inner[b] * x, inner[b] * h)
