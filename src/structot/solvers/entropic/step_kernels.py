"""Compiled parts of a Newton step: what edges and pools do where the multipliers or reg move.

Notation as in `kernels.py`; θ the curvature of edges that move alone: X / (reg w), or a share.
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
def excess(first, last, start, row, col, w, wall, la, lb, total, p, q, reg, n, m):
    """How far p ⊕ q lies beyond the wall of the edges of some blocks: the most per row and column.

    An edge costs at most ``wall``, so that its X exceeds e times the smaller of its weights where
    p ⊕ q exceeds wall + reg w (1 + log(min(a, b) / r)).
    """
    rows = np.zeros(n)
    cols = np.zeros(m)
    for e in range(start[first], start[last]):
        i = row[e]
        j = col[e]
        x = p[i] + q[j] - wall[e] - reg * w[e] * (1.0 + min(-lb[j], total - la[i]))
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
def pool_shares(edges, pools, reg, share, above, theta):
    """θ = X / (reg w), ``share`` of it where X > above is the value of several edges.

    Returns (1 - share) X times the reciprocal of reg for each of these pools, in order.
    """
    start, w = edges.start, edges.w
    order, X = pools.order, pools.X
    for e in range(X.size):
        theta[e] = X[e] / (reg * w[e])
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
                level[number] = (1.0 - share) * x / reg
                number += 1
                for k in range(low, high):
                    theta[s + order[s + k]] *= share
            low = high
    return level[:number]


@_jit
def respond(edges, pools, reg, share, above, theta, s, n, out):
    """out = max(0, X + change), the change that a step s of the multipliers makes in the model.

    Every edge moves alone by θ s, and with its pool by ``1 - share`` of what that does as a whole.
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
                    out[begin + order[begin + k]] += (1.0 - share) * x * rise / (reg * weight)
            low = high
    for e in range(X.size):
        out[e] = max(out[e], 0.0)
