"""Compiled parts of the Newton method: the point of the prox, marginals, the Hessian, bounds.

Notation as in `blocks/kernels.py`; z = p ⊕ q, C a linear cost beside the layer (may be empty).
A pool B is a set of edges that share one value; c_B counts its edges per row and column.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shift_point(first, last, edges, Y, carries, C, p, q, rho, slopes, V, busy):
    """V = Y + (p ⊕ q - C) / (rho w) on the edges of some blocks.

    Y is 0 in blocks that do not carry anything, and may be empty if none does. Of these a block
    stays idle, and its V unwritten, if no V exceeds its least slope / rho: then X = 0 there.
    """
    start, row, col, w = edges
    linear = C.size > 0
    for b in range(first, last):
        busy[b] = carries[b]
        e = start[b]
        while not busy[b] and e < start[b + 1]:
            z = p[row[e]] + q[col[e]]
            if linear:
                z -= C[e]
            busy[b] = z > slopes[b] * w[e]
            e += 1
        if busy[b]:
            for e in range(start[b], start[b + 1]):
                z = p[row[e]] + q[col[e]]
                if linear:
                    z -= C[e]
                V[e] = z / (rho * w[e])
            if carries[b]:
                for e in range(start[b], start[b + 1]):
                    V[e] += Y[e]


@njit(cache=True, nogil=True)
def marginals(first, last, edges, pools, Y, n, m):
    """Row sums, column sums, Σ w X² and Σ |X - Y| - Y over the edges of some blocks with X > 0."""
    start, row, col, w = edges
    X, order = pools.X, pools.order
    rows = np.zeros(n)
    cols = np.zeros(m)
    square = 0.0
    moved = 0.0
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
def subgradient(first, last, edges, pools, prox, K):
    """K = p ⊕ q - C + ρ w (Y - X) on the edges of blocks in use; ``prox`` is (Y, C, p, q, ρ)."""
    start, row, col, w = edges
    Y, C, p, q, rho = prox
    for b in range(first, last):
        if pools.n_pools[b] > 0:
            for e in range(start[b], start[b + 1]):
                K[e] = p[row[e]] + q[col[e]] + rho * w[e] * (Y[e] - pools.X[e])
            if C.size > 0:
                for e in range(start[b], start[b + 1]):
                    K[e] -= C[e]


@njit(cache=True, nogil=True)
def add_loose(first, last, edges, used, share, rho, parts, n, m):
    """C += share / (ρ w) on all edges of the used ones of some blocks.

    Returns the sums of the same over rows and columns, which belong on the diagonal.
    """
    start, row, col, w = edges
    groups, run, place, C = parts.groups, parts.run, parts.place, parts.C
    diagonal = np.zeros(n + m)
    for b in range(first, last):
        if used[b]:
            for e in range(start[b], start[b + 1]):
                i, j, x = row[e], n + col[e], share[e] / (rho * w[e])
                diagonal[i] += x
                diagonal[j] += x
                if run[i] < groups:
                    C[place[i], place[j]] += x
                else:
                    C[place[j], place[i]] += x
    return diagonal


@njit(cache=True, nogil=True)
def times_loose(first, last, edges, used, share, rho, x, n):
    """The product of x with the part of H that `add_loose` makes."""
    start, row, col, w = edges
    out = np.zeros(x.size)
    for b in range(first, last):
        if used[b]:
            for e in range(start[b], start[b + 1]):
                i, j = row[e], n + col[e]
                change = (x[i] + x[j]) * share[e] / (rho * w[e])
                out[i] += change
                out[j] += change
    return out


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
def repair(edges, pools, d, n, rho, level, share):
    """share = max(0, X + change), the change of active edges that a step d of the model makes.

    ``level`` holds c_B · d / (ρ w(B)) per pool of several edges, the answer of pools as a whole;
    what loose edges add is share (d_i + d_j) / (ρ w).
    """
    start, row, col, w = edges
    X, order = pools.X, pools.order
    t = 0
    for b in range(start.size - 1):
        s = start[b]
        for e in range(s, start[b + 1]):
            moved = share[e] * (d[row[e]] + d[n + col[e]]) if X[e] > 0.0 else 0.0
            share[e] = moved / (rho * w[e])
        low = 0
        for r in range(pools.n_pools[b]):
            high = pools.end[s + r]
            together = 0.0
            if high - low > 1:
                together = level[t]
                t += 1
            for k in range(low, high):
                e = s + order[s + k]
                share[e] = max(0.0, X[e] + together + share[e])
            low = high


@njit(cache=True, nogil=True)
def bound_potentials(edges, busy, Y, X, p, q, rho):
    """c-transform of K = p ⊕ q + rho w (Y - X) on the edges, from u = p; Y may be empty (zero).

    In blocks that are not busy X = Y = 0. Returns u, v with u ⊕ v <= K; +inf for a point without
    edges.
    """
    start, row, col, w = edges
    n, m = p.size, q.size
    centred = Y.size > 0
    least = np.full(m, np.inf)  # v - q
    for b in range(busy.size):
        for e in range(start[b], start[b + 1]):
            change = 0.0
            if busy[b]:
                change = rho * w[e] * (Y[e] - X[e] if centred else -X[e])
            least[col[e]] = min(least[col[e]], change)
    u = np.full(n, np.inf)  # u - p
    for b in range(busy.size):
        for e in range(start[b], start[b + 1]):
            change = 0.0
            if busy[b]:
                change = rho * w[e] * (Y[e] - X[e] if centred else -X[e])
            u[row[e]] = min(u[row[e]], change - least[col[e]])
    for i in range(n):
        u[i] += p[i]
    for j in range(m):
        least[j] += q[j]
    return u, least


@njit(cache=True, nogil=True)
def fill_rests(edges, pools, P, r, c, everywhere):
    """P += what rows lack (r) and columns lack (c), on edges that carry mass already, in place.

    What no such edge can take goes anywhere, if it may: a row after the other, from the first
    column that lacks something on. r and c become what is left.
    """
    start, row, col, _ = edges
    for b in range(start.size - 1):
        s = start[b]
        count = pools.end[s + pools.n_pools[b] - 1] if pools.n_pools[b] > 0 else 0
        for k in range(count):
            e = s + pools.order[s + k]
            i, j = row[e], col[e]
            x = min(r[i], c[j])
            P[i, j] += x
            r[i] -= x
            c[j] -= x
    if everywhere:
        j = 0
        for i in range(r.size):
            while r[i] > 0.0 and j < c.size:
                x = min(r[i], c[j])
                P[i, j] += x
                r[i] -= x
                c[j] -= x
                if c[j] <= 0.0:
                    j += 1


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
