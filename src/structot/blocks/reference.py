"""The block kernels once more in plain NumPy and SciPy: their referee, and the path for user g.

Same names, arguments and results as in ``_kernels.py``, except that ``table`` is the
``ConcaveTable`` itself, so that concave functions written in Python can be called.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from structot.concave import ConcaveTable

Array = np.ndarray


def _secants(table: ConcaveTable, b: int, weights: Array, base: float = 0.0) -> Array:
    """Slopes of g_b along the steps of ``weights``, starting at weight ``base``."""
    before = base + np.concatenate([[0.0], np.cumsum(weights[:-1])])[: weights.size]
    return table.secant(b, before, weights)


def prox_blocks(first, last, start, w, V, rho, floor, totals, table, order, count, X, pool, pools):
    """Decreasing isotonic regression of V_(k) - s_k / rho, block by block."""
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        weights, point = w[block], V[block].copy()  # X may be V itself
        level = floor + table.slope(b, totals[b]) / rho
        candidates = np.flatnonzero(point > level)
        sequence = candidates[np.argsort(-point[candidates], kind="stable")]
        length = sequence.size
        order[block][:length] = sequence
        count[b] = length
        X[block] = floor
        pools[b] = 0
        if length == 0:
            continue
        slopes = _secants(table, b, weights[sequence])
        fit = isotonic_regression(
            point[sequence] - slopes / rho, weights=weights[sequence], increasing=False
        )
        X[block][sequence] = np.maximum(fit.x, floor)
        ends = fit.blocks[1:]
        ends = ends[fit.x[ends - 1] > floor]
        pool[block][: ends.size] = ends
        pools[b] = ends.size


def single_blocks(first, last, start, w, table, K):
    """What every edge costs alone."""
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        K[block] = w[block] * table.secant(b, 0.0, w[block])


def greedy_blocks(first, last, start, w, P, table, K):
    """Edmonds' greedy algorithm."""
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        order = np.argsort(-P[block], kind="stable")
        weights = w[block][order]
        K[block][order] = weights * _secants(table, b, weights)


def extension_blocks(first, last, start, w, P, table, order, count):
    """f(P) for P >= 0, by Edmonds' greedy algorithm on the positive entries."""
    value = 0.0
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        used = np.flatnonzero(P[block] > 0)
        sequence = used[np.argsort(-P[block][used], kind="stable")]
        order[block][: sequence.size] = sequence
        count[b] = sequence.size
        weights = w[block][sequence]
        value += float(P[block][sequence] @ (weights * _secants(table, b, weights)))
    return value


def entropy_blocks(first, last, start, w, Z, table, K):
    """KL projection of Z > 0 onto the base polytope."""
    for b in range(first, last):
        block = slice(start[b], start[b + 1])
        order = np.argsort(-Z[block] / w[block], kind="stable")
        weights, point = w[block][order], Z[block][order]
        gains = weights * _secants(table, b, weights)
        K[block][order] = point * isotonic_regression(gains / point, weights=point).x


def minimize_blocks(first, last, start, w, shift, table, inside, minimum):
    """Best prefix in the order of -shift/w."""
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


def euclidean_blocks(first, last, start, w, Z, table, K):
    """Divide and conquer with the concave-of-sum minimisation."""
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
