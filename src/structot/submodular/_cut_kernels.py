"""Compiled total variation along lines: the taut string.

Notation. Along one line z_1 ... z_n with weights λ_k >= 0 between z_k and z_{k+1}, the projection
onto B(F) is K_k = s_k - s_{k-1} with |s_k| <= λ_k and s_0 = s_n = 0: the string Y - s, Y the
running sum of z, is the shortest path through the tube Y ± λ, whose slopes are X = z - K.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from structot._typing import Array


@njit(cache=True, nogil=True)
def project_lines(Z: Array, weight: Array, K: Array) -> None:
    """argmin_{K in B(F)} Σ (K - Z)² for every row of Z (lines, n); ``weight`` (lines, n - 1)."""
    lines, n = Z.shape
    low, high, path = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    below, above = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    for i in range(lines):
        # The mean changes no difference, and without it the running sum stays small.
        mean = Z[i].mean()
        total = 0.0
        low[0] = high[0] = 0.0
        for k in range(1, n + 1):
            total += Z[i, k - 1] - mean
            radius = weight[i, k - 1] if k < n else 0.0
            low[k], high[k] = total - radius, total + radius
        _taut_string(low, high, path, below, above)
        last = 0.0
        for k in range(1, n + 1):
            # s_k = Y_k - path_k, inside the tube also after rounding: K stays in B(F).
            radius = weight[i, k - 1] if k < n else 0.0
            s = 0.5 * (low[k] + high[k]) - path[k]
            s = min(max(s, -radius), radius)
            K[i, k - 1] = s - last
            last = s


@njit(cache=True, nogil=True)
def _taut_string(low: Array, high: Array, path: Array, below: Array, above: Array) -> None:
    """The shortest path from low[0] = high[0] to low[n] = high[n] between both; O(n) in all.

    From the last fixed point of the string, ``above`` holds the corners of the greatest convex
    function below ``high``, ``below`` those of the least concave one above ``low``. While the first
    slope of the former is at least that of the latter, the string is free to run between them.
    When they cross, one of them is the new point alone, and the string must follow the other up to
    its first corner.
    """
    n = low.size - 1
    fixed, level = 0, low[0]
    path[0] = level
    a0 = a1 = b0 = b1 = 0  # corners are above[a0:a1] and below[b0:b1], after the fixed point
    for k in range(1, n + 1):
        # New corner of the convex chain: the last ones go while they lie above the new segment.
        while a1 > a0:
            j = above[a1 - 1]
            i, y = (above[a1 - 2], high[above[a1 - 2]]) if a1 - a0 > 1 else (fixed, level)
            if (high[j] - y) * (k - j) >= (high[k] - high[j]) * (j - i):
                a1 -= 1
            else:
                break
        above[a1] = k
        a1 += 1
        while b1 > b0:
            j = below[b1 - 1]
            i, y = (below[b1 - 2], low[below[b1 - 2]]) if b1 - b0 > 1 else (fixed, level)
            if (low[j] - y) * (k - j) <= (low[k] - low[j]) * (j - i):
                b1 -= 1
            else:
                break
        below[b1] = k
        b1 += 1
        while True:
            j, i = above[a0], below[b0]
            if (high[j] - level) * (i - fixed) >= (low[i] - level) * (j - fixed):
                break
            if i < j:  # the ceiling came down: the string bends around the floor's corner
                fixed, level = _fix(path, fixed, level, i, low[i])
                b0 += 1
            else:
                fixed, level = _fix(path, fixed, level, j, high[j])
                a0 += 1
    if fixed < n:
        _fix(path, fixed, level, n, low[n])


@njit(cache=True, nogil=True)
def _fix(path: Array, start: int, level: float, end: int, height: float) -> tuple[int, float]:
    """Draw the straight piece of the path up to (end, height)."""
    slope = (height - level) / (end - start)
    for k in range(start + 1, end):
        path[k] = level + slope * (k - start)
    path[end] = height
    return end, height
