"""Compiled parts of the Newton method: the point of the prox, marginals, the Hessian, bounds.

Notation as in `blocks/kernels.py`; z = p ⊕ q, C a linear cost beside the layer (may be empty).
A pool B is a set of edges that share one value; c_B counts its edges per row and column.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shift_point(first, last, edges, Y, C, p, q, rho, V):
    """V = Y + (p ⊕ q - C) / (rho w) on the edges of some blocks; Y may be empty (zero)."""
    start, row, col, w = edges
    linear, centred = C.size > 0, Y.size > 0
    for e in range(start[first], start[last]):
        z = p[row[e]] + q[col[e]]
        if linear:
            z -= C[e]
        V[e] = z / (rho * w[e])
        if centred:
            V[e] += Y[e]


@njit(cache=True, nogil=True)
def marginals(first, last, edges, pools, Y, n, m):
    """Row sums, column sums, Σ w X² and Σ |X - Y| over the edges of some blocks."""
    start, row, col, w = edges
    X, order = pools.X, pools.order
    rows = np.zeros(n)
    cols = np.zeros(m)
    square = 0.0
    moved = 0.0
    for e in range(start[first], start[last]):
        moved += Y[e]
    for b in range(first, last):
        if pools.n_pools[b] == 0:
            continue
        s = start[b]
        for k in range(pools.end[s + pools.n_pools[b] - 1]):
            e = s + order[s + k]
            x = X[e]
            rows[row[e]] += x
            cols[col[e]] += x
            square += w[e] * x * x
            moved += abs(x - Y[e]) - Y[e]
    return rows, cols, square, moved


@njit(cache=True, nogil=True)
def add_active(edges, X, factor, parts):
    """H += factor Σ_e (e_i + e_j)(e_i + e_j)ᵀ / w_e over the edges with X > 0."""
    _, row, col, w = edges
    flipped, place, group, bounds, corner, D, C, E = parts
    for e in range(row.size):
        if X[e] > 0.0:
            i, j, x = row[e], col[e], factor / w[e]
            if flipped:
                i, j = j, i
            i = place[i]
            k = group[i]
            first, size = bounds[k], bounds[k + 1] - bounds[k]
            D[corner[k] + (i - first) * (size + 1)] += x
            C[i, j] += x
            E[j, j] += x


@njit(cache=True, nogil=True)
def add_couplings(first, last, edges, factor, parts):
    """The same over all edges of some blocks, without the diagonal, which does not change."""
    start, row, col, w = edges
    flipped, place, C = parts.flipped, parts.place, parts.C
    for e in range(start[first], start[last]):
        i, j = row[e], col[e]
        if flipped:
            i, j = j, i
        C[place[i], j] += factor / w[e]


@njit(cache=True, nogil=True)
def sums_of_inverses(edges, n, m):
    """Σ 1/w over the edges of every row, then of every column."""
    _, row, col, w = edges
    out = np.zeros(n + m)
    for e in range(row.size):
        out[row[e]] += 1.0 / w[e]
        out[n + col[e]] += 1.0 / w[e]
    return out


@njit(cache=True, nogil=True)
def repair(edges, pools, d, n, share, rho, level, out):
    """out = max(0, X + change), the change that a step d of the mixed model makes on active edges.

    ``level`` holds c_B · d / (rho w(B)) per pool, the answer of unbroken pools; its part is
    1 - share. The other part is that of edges that move alone, (d_i + d_j) / (rho w).
    """
    start, row, col, w = edges
    X, order = pools.X, pools.order
    for e in range(X.size):
        out[e] = 0.0
    t = 0
    for b in range(start.size - 1):
        s = start[b]
        low = 0
        for r in range(pools.n_pools[b]):
            high = pools.end[s + r]
            for k in range(low, high):
                e = s + order[s + k]
                alone = (d[row[e]] + d[n + col[e]]) / (rho * w[e])
                out[e] = max(0.0, X[e] + (1.0 - share) * level[t] + share * alone)
            t += 1
            low = high


@njit(cache=True, nogil=True)
def bound_potentials(edges, Y, X, p, q, rho):
    """c-transform of K = p ⊕ q + rho w (Y - X) on the edges, from u = p; Y may be empty (zero).

    Returns u, v with u ⊕ v <= K; +inf for a point without edges.
    """
    _, row, col, w = edges
    n, m = p.size, q.size
    centred = Y.size > 0
    v = np.full(m, np.inf)
    for e in range(row.size):
        change = -X[e]
        if centred:
            change += Y[e]
        v[col[e]] = min(v[col[e]], q[col[e]] + rho * w[e] * change)
    u = np.full(n, np.inf)
    for e in range(row.size):
        change = -X[e]
        if centred:
            change += Y[e]
        i, j = row[e], col[e]
        u[i] = min(u[i], p[i] + q[j] - v[j] + rho * w[e] * change)
    return u, v


@njit(cache=True, nogil=True)
def keep_least(point, value, code, least, kept):
    """Enter codes into the lists of their points, one row each: the smallest values, in order."""
    width = least.shape[1]
    for k in range(point.size):
        i, x = point[k], value[k]
        if x >= least[i, width - 1]:
            continue
        j = width - 1
        while j > 0 and least[i, j - 1] > x:
            least[i, j] = least[i, j - 1]
            kept[i, j] = kept[i, j - 1]
            j -= 1
        least[i, j] = x
        kept[i, j] = code[k]
