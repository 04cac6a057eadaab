"""Compiled sweeps over n x m arrays: Sinkhorn alternation, exact marginals, c-transform.

Notation: ``L`` log kernel, ``f, g`` log potentials, ``u, v`` scalings since the last absorption,
``K = exp(f + g + L)``, so that the plan is ``P_ij = u_i K_ij v_j``; ``a, b`` marginals; ``Q`` a
plan that was scaled down. Arrays are row-major; column results are gathered row by row.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CONVERGED, LIMIT, NOT_FINITE = 0, 1, 2

# Scalings may grow by this factor before they are absorbed into the log potentials. Entries below
# exp(_FLUSH) of their row are stored as 0: even scaled by _LARGE**2 they stay below 1e-160 of it.
_LARGE = 1e50
_SMALL = 1e-50
_FLUSH = -600.0
_NOTHING = 3e-261  # just above exp(_FLUSH)

_jit = njit(cache=True, nogil=True, error_model="numpy")


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(x: FloatArray, y: FloatArray) -> float:
    # Reassociation only: vectorised, and NaN and infinity keep their meaning.
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@_jit
def _largest(x: FloatArray) -> float:
    # Two chains of comparisons, so that one does not wait for the other.
    even = -np.inf
    odd = -np.inf
    for j in range(0, x.shape[0] - 1, 2):
        even = x[j] if x[j] > even else even
        odd = x[j + 1] if x[j + 1] > odd else odd
    even = x[-1] if x[-1] > even else even
    return even if even > odd else odd


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exponentiate(x: FloatArray, bits: NDArray[np.int64]) -> None:
    """x = exp(x) in place for x <= 0, with exp(_FLUSH) below _FLUSH; to 2 units in the last place.

    exp(x) = 2^k exp(t), |t| <= log(2) / 2, by the Taylor polynomial. Adding 1.5 * 2^52 leaves the
    nearest integer k in the low bits, so every step is plain arithmetic that vectorises, unlike the
    library's exp. `bits` is scratch space of the same length.
    """
    power = bits.view(np.float64)
    for j in range(x.shape[0]):
        y = x[j] if x[j] > _FLUSH else _FLUSH
        shifted = y * 1.4426950408889634 + 6755399441055744.0
        k = shifted - 6755399441055744.0
        # log(2) in two parts, the first short enough for k times it to be exact.
        t = (y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        e = 1.0 / 6227020800.0
        e = e * t + 1.0 / 479001600.0
        e = e * t + 1.0 / 39916800.0
        e = e * t + 1.0 / 3628800.0
        e = e * t + 1.0 / 362880.0
        e = e * t + 1.0 / 40320.0
        e = e * t + 1.0 / 5040.0
        e = e * t + 1.0 / 720.0
        e = e * t + 1.0 / 120.0
        e = e * t + 1.0 / 24.0
        e = e * t + 1.0 / 6.0
        e = e * t + 0.5
        e = e * t + 1.0
        x[j] = e * t + 1.0
        power[j] = shifted
    for j in range(x.shape[0]):
        bits[j] = (bits[j] + 1023) << 52  # the double 2^k
    for j in range(x.shape[0]):
        x[j] *= power[j]


@_jit
def row_potentials(
    L: FloatArray, g: FloatArray, a: FloatArray, f: FloatArray, K: FloatArray
) -> None:
    """f_i = log a_i - log sum_j exp(L_ij + g_j), and K = exp(f + g + L), both in place."""
    n, m = L.shape
    bits = np.empty(m, np.int64)
    for i in range(n):
        row = K[i]
        for j in range(m):
            row[j] = L[i, j] + g[j]
        top = _largest(row)
        for j in range(m):
            row[j] -= top
        exponentiate(row, bits)
        total = 0.0
        for j in range(m):
            row[j] = row[j] if row[j] > _NOTHING else 0.0
            total += row[j]
        f[i] = np.log(a[i]) - top - np.log(total)
        scale = a[i] / total
        for j in range(m):
            row[j] *= scale


@_jit
def column_potentials(L: FloatArray, f: FloatArray, b: FloatArray, g: FloatArray) -> None:
    """g_j = log b_j - log sum_i exp(L_ij + f_i), in place, without a strided read."""
    n, m = L.shape
    bits = np.empty(m, np.int64)
    row = np.empty(m)
    top = np.empty(m)
    total = np.zeros(m)
    for j in range(m):
        top[j] = -np.inf
    for i in range(n):
        for j in range(m):
            x = L[i, j] + f[i]
            top[j] = x if x > top[j] else top[j]
    for i in range(n):
        for j in range(m):
            row[j] = L[i, j] + f[i] - top[j]
        exponentiate(row, bits)
        for j in range(m):
            total[j] += row[j]
    for j in range(m):
        g[j] = np.log(b[j]) - top[j] - np.log(total[j])


@_jit
def _scale_rows(K: FloatArray, a: FloatArray, v: FloatArray, u: FloatArray, c: FloatArray) -> bool:
    # u = a / (K v) and c = K' u in one pass; False, and u spoiled, when one leaves its range.
    n, m = K.shape
    for j in range(m):
        c[j] = 0.0
    for i in range(n):
        total = _dot(K[i], v)
        scale = a[i] / total if total > 0.0 else np.inf
        if not (_SMALL <= scale <= _LARGE):
            return False
        u[i] = scale
        for j in range(m):
            c[j] += K[i, j] * scale
    return True


@_jit
def _scale_columns(b: FloatArray, c: FloatArray, v: FloatArray, proposal: FloatArray) -> bool:
    # v = b / c unless a scaling leaves its range; then v is kept and the answer is False.
    for j in range(b.shape[0]):
        scale = b[j] / c[j] if c[j] > 0.0 else np.inf
        if not (_SMALL <= scale <= _LARGE):
            return False
        proposal[j] = scale
    for j in range(b.shape[0]):
        v[j] = proposal[j]
    return True


@_jit
def _column_sums(K: FloatArray, c: FloatArray) -> None:
    n, m = K.shape
    for j in range(m):
        c[j] = 0.0
    for i in range(n):
        for j in range(m):
            c[j] += K[i, j]


@_jit
def _absorb(potential: FloatArray, scaling: FloatArray) -> None:
    for i in range(scaling.shape[0]):
        potential[i] += np.log(scaling[i])
        scaling[i] = 1.0


@_jit
def _column_error(b: FloatArray, c: FloatArray, v: FloatArray) -> float:
    error = 0.0
    for j in range(b.shape[0]):
        error += abs(v[j] * c[j] - b[j])
    return error


@_jit
def _finish(
    L: FloatArray,
    a: FloatArray,
    b: FloatArray,
    K: FloatArray,
    u: FloatArray,
    v: FloatArray,
    f: FloatArray,
    g: FloatArray,
) -> tuple[FloatArray, float]:
    # Fold the scalings into the potentials; K becomes the plan. Its logarithm and its L1 error.
    n, m = K.shape
    log_plan = np.empty((n, m))
    columns = np.zeros(m)
    error = 0.0
    for i in range(n):
        total = _dot(K[i], v)
        error += abs(total * u[i] - a[i])
        for j in range(m):
            K[i, j] *= u[i] * v[j]
            columns[j] += K[i, j]
    for j in range(m):
        error += abs(columns[j] - b[j])
    _absorb(f, u)
    _absorb(g, v)
    for i in range(n):
        for j in range(m):
            log_plan[i, j] = L[i, j] + (f[i] + g[j])
    return log_plan, error


@_jit
def alternate(
    L: FloatArray,
    a: FloatArray,
    b: FloatArray,
    f: FloatArray,
    g: FloatArray,
    goal: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float, int, int]:
    """Scale exp(L) to the marginals a, b > 0 until the L1 error is `goal`; f and g in place.

    The rows of the plan are always right, the error is that of the columns. Scalings live in the
    kernel domain (one multiplication per entry and sweep); when one leaves its range, or a sum
    vanishes, this half step is repeated in the log domain, where nothing can vanish.
    Returns the plan, its logarithm, its L1 error, the number of iterations and a code.
    """
    n, m = L.shape
    K = np.empty((n, m))
    u = np.empty(n)
    v = np.empty(m)
    c = np.empty(m)
    proposal = np.empty(m)
    code = LIMIT
    n_iter = 0
    absorbed = True
    while True:
        if absorbed:
            row_potentials(L, g, a, f, K)
            for i in range(n):
                u[i] = 1.0
            for j in range(m):
                v[j] = 1.0
            _column_sums(K, c)
            absorbed = False
        error = _column_error(b, c, v)
        if error <= goal or not np.isfinite(error):
            code = CONVERGED if error <= goal else NOT_FINITE
            break
        if n_iter == max_iter:
            break
        n_iter += 1
        if not _scale_columns(b, c, v, proposal):
            _absorb(f, u)
            column_potentials(L, f, b, g)
            absorbed = True
        elif not _scale_rows(K, a, v, u, c):
            _absorb(g, v)
            absorbed = True
    log_plan, error = _finish(L, a, b, K, u, v, f, g)
    if not np.isfinite(error):
        code = NOT_FINITE
    return K, log_plan, error, n_iter, code


@_jit
def residuals(P: FloatArray, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """r = a - P1 and c = b - P'1, as if computed in twice the precision (error-free sums).

    Examples
    --------
    >>> r, c = residuals(np.full((2, 2), 0.25), np.array([0.5, 0.75]), np.full(2, 0.5))
    >>> r, c
    (array([0.  , 0.25]), array([0., 0.]))
    """
    n, m = P.shape
    r = np.empty(n)
    c = b.copy()
    low = np.zeros(m)
    for i in range(n):
        high_row = a[i]
        low_row = 0.0
        for j in range(m):
            x = -P[i, j]
            s = high_row + x
            z = s - high_row
            low_row += (high_row - (s - z)) + (x - z)
            high_row = s
        r[i] = high_row + low_row
        for j in range(m):
            x = -P[i, j]
            s = c[j] + x
            z = s - c[j]
            low[j] += (c[j] - (s - z)) + (x - z)
            c[j] = s
    for j in range(m):
        c[j] += low[j]
    return r, c


@_jit
def add_outer(Q: FloatArray, r: FloatArray, c: FloatArray, scale: float) -> None:
    """Q += scale * r c', in place."""
    n, m = Q.shape
    for i in range(n):
        factor = scale * r[i]
        if factor > 0.0:
            for j in range(m):
                Q[i, j] += factor * c[j]


@_jit
def shift_sums(
    X: FloatArray, B: FloatArray, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """X_ij += (p_i + q_j) B_ij in place; the row and column sums of the new X."""
    n, m = X.shape
    rows = np.empty(n)
    columns = np.zeros(m)
    for i in range(n):
        even = 0.0
        odd = 0.0
        for j in range(m):
            X[i, j] += (p[i] + q[j]) * B[i, j]
            columns[j] += X[i, j]
        for j in range(0, m - 1, 2):
            even += X[i, j]
            odd += X[i, j + 1]
        rows[i] = even + odd + (X[i, m - 1] if m % 2 else 0.0)
    return rows, columns


@_jit
def c_transform_kernel(K: FloatArray, u: FloatArray, v: FloatArray) -> None:
    """v_j = min_i (K_ij - u_i), then u_i = min_j (K_ij - v_j) rounded downwards, both in place.

    Rows with a u that is not finite are left out of the first minimum. A column without a finite
    entry keeps its v, a row without one gets u = 0.
    """
    n, m = K.shape
    best = np.empty(m)
    for j in range(m):
        best[j] = np.inf
    for i in range(n):
        if np.isfinite(u[i]):
            for j in range(m):
                x = K[i, j] - u[i]
                best[j] = x if x < best[j] else best[j]
    for j in range(m):
        if best[j] < np.inf:
            v[j] = best[j]
    for i in range(n):
        low = np.inf
        for j in range(m):
            x = K[i, j] - v[j]
            low = x if x < low else low
        if low == np.inf:
            u[i] = 0.0
            continue
        # Only entries that attain the minimum can be violated, by half a unit in the last place:
        # the exact error of the subtraction tells, and one step down then repairs it.
        above = False
        for j in range(m):
            if K[i, j] - v[j] == low:
                z = low - K[i, j]
                above |= (K[i, j] - (low - z)) - (v[j] + z) < 0.0
        u[i] = np.nextafter(low, -np.inf) if above else low
