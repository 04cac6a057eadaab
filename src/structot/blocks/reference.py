"""The block kernels once more in plain NumPy and SciPy: their referee, and the path for user g.

Same names, arguments and results as in ``kernels.py``, ``polytope.py``, ``kinks.py``, except that
``table`` is the ``ConcaveTable`` itself, so that functions written in Python can be called, and
that `loosen_blocks` is exact where ``kinks.py`` takes bounds.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from structot._typing import Array
from structot.blocks.kinks import BEYOND
from structot.concave import ConcaveTable


def _secants(table: ConcaveTable, b: int, weights: Array, base: float = 0.0) -> Array:
    """Slopes of g_b along the steps of ``weights``, starting at weight ``base``."""
    before = base + np.concatenate([[0.0], np.cumsum(weights[:-1])])[: weights.size]
    return table.secant(b, before, weights)


def prox_blocks(first, last, edges, V, rho, floor, totals, table, pools):
    """Decreasing isotonic regression of V_(k) - s_k / rho, block by block."""
    start, w = edges.start, edges.w
    X, order, n_active, end_of_pool, n_pools = pools
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        weights, point = w[block], V[block].copy()  # X may be V itself
        level = floor + table.slope(b, totals[b]) / rho
        candidates = np.flatnonzero(point > level)
        sequence = candidates[np.argsort(-point[candidates], kind="stable")]
        length = sequence.size
        order[block][:length] = sequence
        n_active[b] = length
        X[block] = floor
        n_pools[b] = 0
        if length == 0:
            continue
        slopes = _secants(table, b, weights[sequence])
        fit = isotonic_regression(
            point[sequence] - slopes / rho, weights=weights[sequence], increasing=False
        )
        X[block][sequence] = np.maximum(fit.x, floor)
        ends = fit.blocks[1:]
        ends = ends[fit.x[ends - 1] > floor]
        end_of_pool[block][: ends.size] = ends
        n_pools[b] = ends.size


def prox_busy(first, last, edges, V, rho, floor, totals, table, pools, busy):
    """The same where all of a block that is not busy is known to end at the floor."""
    for b in range(first, last):
        if busy[b]:
            prox_blocks(b, b + 1, edges, V, rho, floor, totals, table, pools)
        else:
            pools.X[edges.start[b] : edges.start[b + 1]] = floor
            pools.n_active[b] = pools.n_pools[b] = 0


def last_slopes(first, last, edges, totals, table, out):
    """Slopes of g where a block is complete."""
    for b in range(first, last):
        out[b] = table.slope(b, totals[b])


def loosen_blocks(first, last, edges, K, pools, reach, table):
    """Shares of elements that come loose, from their exact distance to the next kink."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block, count = slice(start[b], start[b + 1]), pools.n_pools[b]
        if count == 0:
            continue
        ends = pools.end[block][:count]
        sequence = pools.order[block][: ends[-1]]
        sizes = np.diff(ends, prepend=0)
        weights, price = w[block][sequence], K[block][sequence]
        total = np.cumsum(weights)[ends - 1]
        above = np.repeat(np.concatenate([[0.0], total[:-1]]), sizes)
        below = np.repeat(total, sizes)
        up = weights * table.secant(b, above, weights) - price
        rest = np.maximum(below - weights, above)
        down = price - weights * table.secant(b, rest, weights)
        # What is 0 can only rise, above all that is positive.
        distance = w[block] * table.secant(b, total[-1], w[block]) - K[block]
        distance[sequence] = np.where(np.repeat(sizes, sizes) > 1, np.minimum(up, down), 0.0)
        far = 1.0 + np.maximum(distance, 0.0) / reach
        K[block] = np.where(far > BEYOND, 0.0, far**-1.5)


def single_blocks(first, last, edges, table, K):
    """What every edge costs alone."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        K[block] = w[block] * table.secant(b, 0.0, w[block])


def potential_point(first, last, edges, u, v, X):
    """(u ⊕ v) / w."""
    e = slice(edges.start[first], edges.start[last])
    X[e] = (u[edges.row[e]] + v[edges.col[e]]) / edges.w[e]


def potential_cost(first, last, edges, u, v, X):
    """u ⊕ v - w X."""
    e = slice(edges.start[first], edges.start[last])
    X[e] = (u[edges.row[e]] + v[edges.col[e]]) - edges.w[e] * X[e]


def greedy_blocks(first, last, edges, P, table, K):
    """Edmonds' greedy algorithm."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        order = np.argsort(-P[block], kind="stable")
        weights = w[block][order]
        K[block][order] = weights * _secants(table, b, weights)


def extension_blocks(first, last, edges, P, table, pools):
    """f(P) for P >= 0, by Edmonds' greedy algorithm on the positive entries."""
    start, w = edges.start, edges.w
    order, n_active = pools.order, pools.n_active
    value = 0.0
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        used = np.flatnonzero(P[block] > 0)
        sequence = used[np.argsort(-P[block][used], kind="stable")]
        order[block][: sequence.size] = sequence
        n_active[b] = sequence.size
        weights = w[block][sequence]
        value += float(P[block][sequence] @ (weights * _secants(table, b, weights)))
    return value


def entropy_blocks(first, last, edges, Z, table, K):
    """KL projection of Z > 0 onto the base polytope."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        order = np.argsort(-Z[block] / w[block], kind="stable")
        weights, point = w[block][order], Z[block][order]
        gains = weights * _secants(table, b, weights)
        K[block][order] = point * isotonic_regression(gains / point, weights=point).x


def minimize_blocks(first, last, edges, shift, table, inside, minimum):
    """Best prefix in the order of -shift/w."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        order, length, minimum[b] = _best_prefix(table, b, w[block], shift[block], 0.0)
        inside[block] = False
        inside[block][order[:length]] = True


def _best_prefix(
    table: ConcaveTable, b: int, weights: Array, shift: Array, base: float
) -> tuple[Array, int, float]:
    order = np.argsort(shift / weights, kind="stable")
    steps = shift[order] + weights[order] * _secants(table, b, weights[order], base)
    totals = np.concatenate([[0.0], np.cumsum(steps)])
    length = int(np.argmin(totals))
    return order, length, float(totals[length])


def euclidean_blocks(first, last, edges, Z, table, K):
    """Divide and conquer with the concave-of-sum minimisation."""
    start, w = edges.start, edges.w
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        weights, point = w[block], Z[block]
        answer = K[block]
        problems = [(np.arange(point.size), 0.0)] if point.size else []
        while problems:
            subset, base = problems.pop()
            mass = weights[subset].sum()
            whole = mass * float(table.secant(b, base, mass))
            lam = (whole - point[subset].sum()) / subset.size
            shift = -(point[subset] + lam)
            order, length, minimum = _best_prefix(table, b, weights[subset], shift, base)
            scale = abs(whole) + np.abs(shift).sum()
            if length in (0, subset.size) or minimum > -1e-14 * scale:
                answer[subset] = point[subset] + lam
                continue
            inside, outside = subset[order[:length]], subset[order[length:]]
            problems.append((inside, base))
            problems.append((outside, base + weights[inside].sum()))
