"""Compiled base polytopes of disjoint blocks: vertices, extension, projections, minimisation.

Notation as in ``kernels.py``; K is a point of the base polytope.
"""

import numpy as np
from numba import njit

from structot.blocks.kernels import candidates
from structot.blocks.sorting import sort_descending
from structot.concave.kernels import block_secant


@njit(cache=True, nogil=True)
def add_exactly(high, low, x):
    """high + x, and low plus the rounding error of that: together the sum in twice the digits."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


@njit(cache=True, nogil=True)
def last_slopes(first, last, edges, totals, table, out):
    """Slopes of g where a block is complete: no marginal cost per weight is less."""
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        out[b] = block_secant(kind, offset, params, outer, inner, b, totals[b], 0.0)


@njit(cache=True, nogil=True)
def single_blocks(first, last, edges, table, K):
    """K = F({e}): what every edge costs alone."""
    start, w = edges.start, edges.w
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        for e in range(start[b], start[b + 1]):
            K[e] = w[e] * block_secant(kind, offset, params, outer, inner, b, 0.0, w[e])


@njit(cache=True, nogil=True)
def potential_point(first, last, edges, u, v, X):
    """X = (u ⊕ v) / w."""
    start, row, col, w = edges
    for e in range(start[first], start[last]):
        X[e] = (u[row[e]] + v[col[e]]) / w[e]


@njit(cache=True, nogil=True)
def potential_cost(first, last, edges, u, v, X):
    """X = u ⊕ v - w X, in place."""
    start, row, col, w = edges
    for e in range(start[first], start[last]):
        X[e] = (u[row[e]] + v[col[e]]) - w[e] * X[e]


@njit(cache=True, nogil=True)
def greedy_blocks(first, last, edges, P, table, K):
    """Edmonds' vertex: K_(k) = g(W_k) - g(W_k-1) along P sorted downwards."""
    start, w = edges.start, edges.w
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        order = np.arange(size).astype(np.int32)
        sort_descending(P[s : s + size], order, np.empty(size, np.int32))
        cumulative = 0.0
        lost = 0.0
        for k in range(size):
            e = s + order[k]
            below = cumulative + lost
            K[e] = w[e] * block_secant(kind, offset, params, outer, inner, b, below, w[e])
            cumulative, lost = add_exactly(cumulative, lost, w[e])


@njit(cache=True, nogil=True)
def extension_blocks(first, last, edges, P, table, pools):
    """f(P) for P >= 0 over some blocks; only positive entries are sorted, from the last order on.

    Zeros add nothing, whatever their order. Sums carry their rounding errors along: the value is
    right to a few units in the last place however many edges there are.
    """
    start, w = edges.start, edges.w
    order, n_active = pools.order, pools.n_active
    kind, offset, params, outer, inner = table
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    seen = np.zeros(longest, np.uint8)
    value = 0.0
    error = 0.0
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        sequence = order[s : s + size]
        point = P[s : s + size]
        length = candidates(point, 0.0, sequence, n_active[b], seen[:size])
        sort_descending(point, sequence[:length], spare[:length])
        n_active[b] = length
        cumulative = 0.0
        lost = 0.0
        k = 0
        while k < length:
            # Equal entries come in as one: they cost the same in any order.
            x = point[sequence[k]]
            h, missed = w[s + sequence[k]], 0.0
            k += 1
            while k < length and point[sequence[k]] == x:
                h, missed = add_exactly(h, missed, w[s + sequence[k]])
                k += 1
            h += missed
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative + lost, h)
            value, error = add_exactly(value, error, x * h * slope)
            cumulative, lost = add_exactly(cumulative, lost, h)
    return value + error


@njit(cache=True, nogil=True)
def entropy_blocks(first, last, edges, Z, table, K):
    """K = argmin over the base polytope of sum K log(K/Z) - K + Z, for Z > 0.

    Order by Z/w downwards; K = Z t, t the increasing isotonic regression of dg/Z, weights Z.
    """
    start, w = edges.start, edges.w
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        order = np.arange(size).astype(np.int32)
        ratio = Z[s : s + size] / w[s : s + size]
        sort_descending(ratio, order, np.empty(size, np.int32))
        gain = np.empty(size)
        weight = np.empty(size)
        end = np.empty(size, np.int64)
        cumulative = 0.0
        top = 0
        for k in range(size):
            e = s + order[k]
            gain[top] = w[e] * block_secant(kind, offset, params, outer, inner, b, cumulative, w[e])
            cumulative += w[e]
            weight[top] = Z[e]
            end[top] = k + 1
            while top > 0 and gain[top] * weight[top - 1] <= gain[top - 1] * weight[top]:
                gain[top - 1] += gain[top]
                weight[top - 1] += weight[top]
                end[top - 1] = end[top]
                top -= 1
            top += 1
        position = 0
        for t in range(top):
            for k in range(position, end[t]):
                e = s + order[k]
                K[e] = Z[e] * gain[t] / weight[t]
            position = end[t]


@njit(cache=True, nogil=True)
def best_prefix(b, base, w, shift, order, table):
    """The prefix of ``order`` that minimises g(base + w(S)) - g(base) + shift(S), and the minimum.

    Sorted by -shift/w downwards some minimiser is a prefix: for each line above g the best set is
    {shift + slope * w < 0}, and g is the infimum of its lines.
    """
    kind, offset, params, outer, inner = table
    best, length = 0.0, 0
    total = 0.0
    cumulative = base
    for k in range(order.size):
        e = order[k]
        total += shift[e] + w[e] * block_secant(
            kind, offset, params, outer, inner, b, cumulative, w[e]
        )
        cumulative += w[e]
        if total < best:
            best, length = total, k + 1
    return length, best


@njit(cache=True, nogil=True)
def minimize_blocks(first, last, edges, shift, table, inside, minimum):
    """Per block, a set that minimises F(S) + shift(S), and the minimum."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        weights, costs = w[s : s + size], shift[s : s + size]
        order = np.arange(size).astype(np.int32)
        sort_descending(-costs / weights, order, np.empty(size, np.int32))
        length, minimum[b] = best_prefix(b, 0.0, weights, costs, order, table)
        for k in range(size):
            inside[s + order[k]] = k < length


@njit(cache=True, nogil=True)
def euclidean_blocks(first, last, edges, Z, table, K):
    """K = argmin over the base polytope of |K - Z|^2 by divide and conquer.

    With lam = (F(A) - Z(A))/|A|, Z + lam is the answer on A if no set S inside A has
    F(S) < (Z + lam)(S); otherwise the minimiser S splits A in two independent problems: F
    restricted to S, and F contracted by S, which is again concave-of-sum from base + w(S) on.
    """
    start, w = edges.start, edges.w
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        weights, point = w[s : s + size], Z[s : s + size]
        order = np.arange(size).astype(np.int32)
        spare = np.empty(size, np.int32)
        key = np.empty(size)
        shift = np.empty(size)
        # Open problems as (low, high, base): the elements order[low:high] on top of weight base.
        low = np.empty(2 * size + 2, np.int64)
        high = np.empty(2 * size + 2, np.int64)
        base = np.empty(2 * size + 2)
        low[0], high[0], base[0] = 0, size, 0.0
        open_problems = 1 if size else 0
        while open_problems:
            open_problems -= 1
            i, j, below = low[open_problems], high[open_problems], base[open_problems]
            subset = order[i:j]
            mass = 0.0
            target = 0.0
            for e in subset:
                mass += weights[e]
                target += point[e]
            whole = mass * block_secant(kind, offset, params, outer, inner, b, below, mass)
            lam = (whole - target) / (j - i)
            magnitude = abs(whole)
            for e in subset:
                shift[e] = -(point[e] + lam)
                key[e] = -shift[e] / weights[e]
                magnitude += abs(shift[e])
            sort_descending(key, subset, spare[i:j])
            length, minimum = best_prefix(b, below, weights, shift, subset, table)
            if length == 0 or length == j - i or minimum > -1e-14 * magnitude:
                for e in subset:
                    K[s + e] = point[e] + lam
                continue
            inside = 0.0
            for k in range(length):
                inside += weights[subset[k]]
            low[open_problems], high[open_problems], base[open_problems] = i, i + length, below
            open_problems += 1
            low[open_problems], high[open_problems] = i + length, j
            base[open_problems] = below + inside
            open_problems += 1
