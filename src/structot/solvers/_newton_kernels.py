"""Compiled parts of the Newton methods: the point of the prox, its marginals, its pool matrix.

Notation as in `polytope/_kernels.py`; z = p ⊕ q, C a linear cost beside the layer (may be empty).
A pool B is a set of edges that share one value; c_B counts its edges per row and column.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shift_point(first, last, start, row, col, w, Y, C, p, q, rho, V):
    """V = Y + (p ⊕ q - C) / (rho w) on the edges of some blocks."""
    linear = C.size > 0
    for e in range(start[first], start[last]):
        z = p[row[e]] + q[col[e]]
        if linear:
            z -= C[e]
        V[e] = Y[e] + z / (rho * w[e])


@njit(cache=True, nogil=True)
def marginals(first, last, start, row, col, w, Y, order, pool, pools, X, n, m):
    """Row sums, column sums, Σ w X² and Σ |X - Y| over the edges of some blocks."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    square = 0.0
    moved = 0.0
    for e in range(start[first], start[last]):
        moved += Y[e]
    for b in range(first, last):
        if pools[b] == 0:
            continue
        s = start[b]
        for k in range(pool[s + pools[b] - 1]):
            e = s + order[s + k]
            x = X[e]
            rows[row[e]] += x
            cols[col[e]] += x
            square += w[e] * x * x
            moved += abs(x - Y[e]) - Y[e]
    return rows, cols, square, moved


@njit(cache=True, nogil=True)
def count_pools(first, last, start, pool, pools):
    """Number of pools, and twice the number of their edges (at least the entries of c_B)."""
    number = 0
    entries = 0
    for b in range(first, last):
        number += pools[b]
        if pools[b]:
            entries += 2 * pool[start[b] + pools[b] - 1]
    return number, entries


@njit(cache=True, nogil=True)
def pool_matrix(
    first, last, start, row, col, w, order, pool, pools, n, m, indptr, indices, data, weight
):
    """The rows c_B in CSR form, and w(B); returns the number of entries."""
    count = np.zeros(n + m)
    position = 0
    t = 0
    indptr[0] = 0
    for b in range(first, last):
        s = start[b]
        low = 0
        for r in range(pools[b]):
            high = pool[s + r]
            begin = position
            total = 0.0
            for k in range(low, high):
                e = s + order[s + k]
                total += w[e]
                i = row[e]
                j = n + col[e]
                if count[i] == 0.0:
                    indices[position] = i
                    position += 1
                count[i] += 1.0
                if count[j] == 0.0:
                    indices[position] = j
                    position += 1
                count[j] += 1.0
            for k in range(begin, position):
                data[k] = count[indices[k]]
                count[indices[k]] = 0.0
            weight[t] = total
            t += 1
            indptr[t] = position
            low = high
    return position


@njit(cache=True, nogil=True)
def dense_hessian(indptr, indices, data, theta, H):
    """H += Σ_B theta_B c_B c_Bᵀ (lower triangle)."""
    for t in range(theta.size):
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k]
            x = theta[t] * data[k]
            for r in range(indptr[t], indptr[t + 1]):
                j = indices[r]
                if j <= i:
                    H[i, j] += x * data[r]
