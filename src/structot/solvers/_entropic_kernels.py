"""Compiled parts of the entropic Newton method: point, exponential, Hessian, worst cost, entropy.

Notation as in `polytope/_kernels.py`; r = a bᵀ / T the independent plan, ``la`` and ``lb`` the
logarithms of a and b / T (-inf for a zero weight), V the point of the prox in the logarithm, X the
plan, c_B the number of edges of a pool B in each row and column. Blocks (or rows)
``first <= b < last`` only, no state, no GIL.
"""

import numpy as np
from numba import njit

from structot.concave._kernels import block_secant

# Where an edge that can carry nothing stands in the order of V: behind all others.
_LAST = -1e30

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def log_point(first, last, start, row, col, w, C, la, lb, p, q, reg, V):
    """V = log r + (p ⊕ q - C) / (reg w) on the edges of some blocks."""
    linear = C.size > 0
    for e in range(start[first], start[last]):
        i = row[e]
        j = col[e]
        z = p[i] + q[j]
        if linear:
            z -= C[e]
        v = la[i] + lb[j] + z / (reg * w[e])
        V[e] = v if v > _LAST else _LAST


@_jit
def exponentials(first, last, start, row, col, w, floor, X, n, m):
    """X = exp(X) in place, 0 at the floor; row sums, column sums and Σ w X."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    weighted = 0.0
    for e in range(start[first], start[last]):
        if X[e] > floor:
            x = np.exp(X[e])
            X[e] = x
            rows[row[e]] += x
            cols[col[e]] += x
            weighted += w[e] * x
        else:
            X[e] = 0.0
    return rows, cols, weighted


@_jit
def hessian_times(
    first, last, start, row, col, w, order, pool, pools, X, negligible, reg, x, y, n, m
):
    """H (x, y) with H = Σ_B X_B c_B c_Bᵀ / (reg w(B)) over the pools with X_B > negligible."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    for b in range(first, last):
        s = start[b]
        low = 0
        for t in range(pools[b]):
            high = pool[s + t]
            e = s + order[s + low]
            value = X[e]
            if value <= negligible:
                break
            if high == low + 1:
                z = value * (x[row[e]] + y[col[e]]) / (reg * w[e])
                rows[row[e]] += z
                cols[col[e]] += z
            else:
                inside = 0.0
                weight = 0.0
                for k in range(low, high):
                    e = s + order[s + k]
                    inside += x[row[e]] + y[col[e]]
                    weight += w[e]
                z = value * inside / (reg * weight)
                for k in range(low, high):
                    e = s + order[s + k]
                    rows[row[e]] += z
                    cols[col[e]] += z
            low = high
    return rows, cols


@_jit
def _counts(members, s, row, col, n, count, touched):
    """c_B of one pool: ``count`` on the ``touched`` indices, how many these are."""
    found = 0
    for k in members:
        i = row[s + k]
        j = n + col[s + k]
        if count[i] == 0.0:
            touched[found] = i
            found += 1
        count[i] += 1.0
        if count[j] == 0.0:
            touched[found] = j
            found += 1
        count[j] += 1.0
    return found


@_jit
def hessian_diagonal(first, last, start, row, col, w, order, pool, pools, X, reg, n, m):
    """The diagonal of H."""
    D = np.zeros(n + m)
    count = np.zeros(n + m)
    touched = np.empty(n + m, np.int64)
    for b in range(first, last):
        s = start[b]
        low = 0
        for t in range(pools[b]):
            high = pool[s + t]
            e = s + order[s + low]
            if high == low + 1:
                z = X[e] / (reg * w[e])
                D[row[e]] += z
                D[n + col[e]] += z
            else:
                value = X[e]
                weight = 0.0
                for k in range(low, high):
                    weight += w[s + order[s + k]]
                found = _counts(order[s + low : s + high], s, row, col, n, count, touched)
                for k in touched[:found]:
                    D[k] += value * count[k] * count[k] / (reg * weight)
                    count[k] = 0.0
            low = high
    return D


@_jit
def hessian_matrix(start, row, col, w, order, pool, pools, X, reg, n, m):
    """H itself, (n+m, n+m)."""
    H = np.zeros((n + m, n + m))
    count = np.zeros(n + m)
    touched = np.empty(n + m, np.int64)
    for b in range(start.size - 1):
        s = start[b]
        low = 0
        for t in range(pools[b]):
            high = pool[s + t]
            value = X[s + order[s + low]]
            weight = 0.0
            for k in range(low, high):
                weight += w[s + order[s + k]]
            found = _counts(order[s + low : s + high], s, row, col, n, count, touched)
            for k in touched[:found]:
                z = value * count[k] / (reg * weight)
                for t2 in touched[:found]:
                    H[k, t2] += z * count[t2]
            for k in touched[:found]:
                count[k] = 0.0
            low = high
    return H


@_jit
def pool_costs(first, last, start, w, V, reg, table, order, pool, pools, K):
    """K = reg w (V - X) in B(F) from the pools of an uncut prox.

    Written as the mean slope of g over the pool plus the deviation of V from its mean, so that
    nothing cancels when reg is large and the pool sums of K are those of g to rounding.
    """
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s = start[b]
        low = 0
        cumulative = 0.0
        for t in range(pools[b]):
            high = pool[s + t]
            weight = 0.0
            base = V[s + order[s + low]]
            above = 0.0
            for k in range(low, high):
                e = s + order[s + k]
                weight += w[e]
                above += w[e] * (V[e] - base)
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative, weight)
            mean = above / weight
            for k in range(low, high):
                e = s + order[s + k]
                K[e] = w[e] * (slope + reg * ((V[e] - base) - mean))
            cumulative += weight
            low = high


@_jit
def relative_entropy(first, last, start, row, col, w, la, lb, x):
    """Σ w (x log(x / r) - x + r) over the edges of some blocks."""
    total = 0.0
    for e in range(start[first], start[last]):
        log_r = la[row[e]] + lb[col[e]]
        term = np.exp(log_r) - x[e]
        if x[e] > 0.0:
            term += x[e] * (np.log(x[e]) - log_r)
        total += w[e] * term
    return total


@_jit
def dual_loss(first, last, start, row, col, w, K, la, lb, u, v, reg):
    """Σ w r (exp((u ⊕ v - K) / (reg w)) - 1) over the edges of some blocks."""
    total = 0.0
    for e in range(start[first], start[last]):
        log_r = la[row[e]] + lb[col[e]]
        if log_r > -np.inf:
            growth = (u[row[e]] + v[col[e]] - K[e]) / (reg * w[e])
            total += w[e] * (np.exp(log_r + growth) - np.exp(log_r))
    return total


@_jit
def plain_point(first, last, C, la, lb, p, q, reg, X):
    """X = exp(log r + (p ⊕ q - C) / reg) on some rows; row sums and column sums."""
    m = C.shape[1]
    rows = np.zeros(C.shape[0])
    cols = np.zeros(m)
    for i in range(first, last):
        for j in range(m):
            x = np.exp(la[i] + lb[j] + (p[i] + q[j] - C[i, j]) / reg)
            X[i, j] = x
            rows[i] += x
            cols[j] += x
    return rows, cols


@_jit
def scale_rows(first, last, K, d, la, lb, q, reg, p):
    """p_i with Σ_j r_ij exp((p_i + q_j - K_ij) / (reg d_ij)) = a_i, row by row, in place.

    Newton on the logarithm of the sum, a convex increasing function of p_i: after one step it only
    comes down, to within 1e-3 of the mass here.
    """
    m = K.shape[1]
    for i in range(first, last):
        if la[i] == -np.inf:
            continue
        x = p[i]
        for _ in range(60):
            top = -np.inf
            for j in range(m):
                y = lb[j] + (x + q[j] - K[i, j]) / (reg * d[i, j])
                top = y if y > top else top
            if top == -np.inf:
                break
            total = 0.0
            slope = 0.0
            for j in range(m):
                y = np.exp(lb[j] + (x + q[j] - K[i, j]) / (reg * d[i, j]) - top)
                total += y
                slope += y / (reg * d[i, j])
            excess = top + np.log(total)
            x -= excess * total / slope
            if abs(excess) < 1e-3:
                break
        p[i] = x


@_jit
def coverage_point(first, last, start, row, col, C, la, lb, p, q, reg, price, level, X, n, m):
    """The prox of a coverage function without a sort: log X = min(V, t), t per block.

    t solves Σ (V - t)₊ = price / reg, a convex, decreasing, piecewise linear equation: after one
    Newton step from the last t the iterates rise to the root, exactly, in finitely many steps.
    Row sums, column sums; ``level`` holds t before and after.
    """
    rows = np.zeros(n)
    cols = np.zeros(m)
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    V = np.empty(longest)
    linear = C.size > 0
    for b in range(first, last):
        s = start[b]
        size = start[b + 1] - s
        for k in range(size):
            e = s + k
            z = p[row[e]] + q[col[e]]
            if linear:
                z -= C[e]
            v = la[row[e]] + lb[col[e]] + z / reg
            V[k] = v if v > _LAST else _LAST
        level[b] = _water_level(V[:size], price[b] / reg, level[b])
        top = level[b]
        cap = np.exp(top)
        for k in range(size):
            e = s + k
            x = cap if V[k] >= top else np.exp(V[k])
            X[e] = x
            rows[row[e]] += x
            cols[col[e]] += x
    return rows, cols


@_jit
def _water_level(V, volume, guess):
    """t with Σ (V - t)₊ = volume; +inf for no volume."""
    if volume == 0.0:
        return np.inf
    top = V.max()
    t = guess if guess < top else top
    members = -1
    for _ in range(200):
        count = 0
        above = 0.0
        for k in range(V.size):
            if V[k] > t:
                count += 1
                above += V[k] - top
        if count == 0:  # only the largest, or rounding: the volume stands on it alone
            count = 1
            above = 0.0
        if count == members:
            break
        new = top + (above - volume) / count
        members = count if new >= t else -1
        t = new
    return t


@_jit
def coverage_times(first, last, start, row, col, X, level, reg, x, y, n, m):
    """H (x, y) for a coverage function: the capped edges of a block are one pool."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    for b in range(first, last):
        cap = np.exp(level[b])
        inside = 0.0
        count = 0
        for e in range(start[b], start[b + 1]):
            i = row[e]
            j = col[e]
            z = x[i] + y[j]
            if X[e] == cap:
                inside += z
                count += 1
            else:
                z *= X[e] / reg
                rows[i] += z
                cols[j] += z
        if count > 0:
            z = cap * inside / (reg * count)
            for e in range(start[b], start[b + 1]):
                if X[e] == cap:
                    rows[row[e]] += z
                    cols[col[e]] += z
    return rows, cols
