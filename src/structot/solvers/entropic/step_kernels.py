"""Compiled parts of a Newton step: what edges and pools do where the multipliers or reg move.

Notation as in `kernels.py`; θ the curvature of edges that move alone: X / (reg w), or
the share of it to which an edge of a pool of several is loose (`blocks/kinks.py`).
"""

import numpy as np
from numba import njit

# X explodes where it would grow beyond its marginals by the exponential of this.
_EXPLODES = 10.0
# Curvature is added for every edge as if it were alone: more than is needed.
_GENTLE = 0.3

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def drift(first, last, start, row, col, la, lb, X, n, m):
    """Row sums and column sums of X log(X / r) over the edges of some blocks."""
    rows = np.zeros(n)
    cols = np.zeros(m)
    for e in range(start[first], start[last]):
        if X[e] > 0.0:
            x = X[e] * (np.log(X[e]) - la[row[e]] - lb[col[e]])
            rows[row[e]] += x
            cols[col[e]] += x
    return rows, cols


@_jit
def squared_change(first, last, start, row, col, X, s, n):
    """Σ X (s_i + s_j)² over the edges of some blocks."""
    total = 0.0
    for e in range(start[first], start[last]):
        if X[e] > 0.0:
            x = s[row[e]] + s[n + col[e]]
            total += X[e] * x * x
    return total


@_jit
def excess(first, last, start, row, col, w, wall, la, lb, log_total, p, q, reg, n, m):
    """How far p ⊕ q lies beyond the wall of the edges of some blocks: the most per row and column.

    An edge costs at most ``wall``, so that its X exceeds exp(1) times the smaller of its weights
    where p ⊕ q exceeds wall + reg w (1 + log(min(a, b) / r)).
    """
    rows = np.zeros(n)
    cols = np.zeros(m)
    for e in range(start[first], start[last]):
        i = row[e]
        j = col[e]
        x = p[i] + q[j] - wall[e] - reg * w[e] * (1.0 + min(-lb[j], log_total - la[i]))
        if x > rows[i]:
            rows[i] = x
        if x > cols[j]:
            cols[j] = x
    return rows, cols


@_jit
def stiffen(first, last, start, row, col, w, alone, V, X, a, b, reg, s, softness, theta):
    """Raise θ where a step s would make X explode, until it no longer does; whether it would.

    An edge pays at most ``alone``, so that log X is at least V - alone / (reg w): it explodes where
    that comes to lie far beyond the marginals. ``softness`` is 1 / diag(H): θ rises as if no other
    edge of its row and column did, and at most to where X meets its marginals. Edges without a
    share in the plan yet have no X to go by; the search along the step holds them back.
    """
    found = False
    for e in range(start[first], start[last]):
        i = row[e]
        j = col[e]
        rate = reg * w[e]
        rise = (s[i] + s[a.size + j]) / rate
        if rise > _EXPLODES and X[e] > 0.0:
            limit = max(min(a[i], b[j]), X[e])
            allowed = 1.0 + max(np.log(limit) + alone[e] / rate - V[e], 0.0)
            if rise > allowed + _EXPLODES:
                found = True
                more = _GENTLE * (rise / allowed - 1.0) / (softness[i] + softness[a.size + j])
                theta[e] += min(more, limit / rate)
    return found


@_jit
def subgradient(first, last, start, row, col, w, V, X, reg, K):
    """K = reg w (V - log X) on the edges of some blocks."""
    for e in range(start[first], start[last]):
        K[e] = reg * w[e] * (V[e] - np.log(X[e])) if X[e] > 0.0 else -np.inf


@_jit
def capped_subgradient(first, last, start, row, col, C, la, lb, p, q, reg, caps, X, K):
    """The same where several edges of a block are capped; 1, the share of what is alone, elsewhere.

    ``caps`` are, per block, log X of capped edges, X, and the number of pools of several of them.
    """
    level, cap, n_pools = caps
    for b in range(first, last):
        for e in range(start[b], start[b + 1]):
            K[e] = 1.0
            if n_pools[b] > 0 and X[e] == cap[b]:
                z = p[row[e]] + q[col[e]]
                if C.size > 0:
                    z -= C[e]
                K[e] = z + reg * (la[row[e]] + lb[col[e]] - level[b])


@_jit
def edge_curvatures(edges, pools, reg, above, theta):
    """θ, at first the share to which edges are loose, times X / (reg w); all of it for pools of one
    edge, and of several where X <= above.

    Returns X / reg of the other pools, in order.
    """
    start, w = edges.start, edges.w
    order, X = pools.order, pools.X
    count = 0
    for b in range(start.size - 1):
        count += pools.n_pools[b]
    level = np.empty(count)
    number = 0
    for b in range(start.size - 1):
        s = start[b]
        low = 0
        for t in range(pools.n_pools[b]):
            high = pools.end[s + t]
            x = X[s + order[s + low]]
            if high - low > 1 and x > above:
                level[number] = x / reg
                number += 1
            else:
                for k in range(low, high):
                    theta[s + order[s + k]] = 1.0
            low = high
        for e in range(s, start[b + 1]):
            theta[e] = theta[e] * X[e] / (reg * w[e]) if X[e] > 0.0 else 0.0
    return level[:number]


@_jit
def respond(edges, pools, reg, above, theta, s, n, out):
    """out = max(0, X + change), the change that a step s of the multipliers makes in the model:
    every edge moves alone by θ s, and with its pool.
    """
    start, row, col, w = edges
    order, X = pools.order, pools.X
    for e in range(X.size):
        out[e] = X[e] + theta[e] * (s[row[e]] + s[n + col[e]])
    for b in range(start.size - 1):
        begin = start[b]
        low = 0
        for t in range(pools.n_pools[b]):
            high = pools.end[begin + t]
            x = X[begin + order[begin + low]]
            if high - low > 1 and x > above:
                rise = 0.0
                weight = 0.0
                for k in range(low, high):
                    e = begin + order[begin + k]
                    rise += s[row[e]] + s[n + col[e]]
                    weight += w[e]
                for k in range(low, high):
                    out[begin + order[begin + k]] += x * rise / (reg * weight)
            low = high
    for e in range(X.size):
        out[e] = max(out[e], 0.0)
