"""Compiled plans of one sentence pair: costs, exact transport, rounding into U(a, b).

Notation. M the cost (n, m), a and b weights with the same sum, P a plan, u and v potentials with
u_i + v_j <= M_ij.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from structot.text._blocks import Array, Ints
from structot.transport.kernels import c_transform_kernel

_DUST = 1e-13  # mass that is rounding error, relative to a total of 1

_jit = njit(cache=True, nogil=True, error_model="numpy")


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_distance(x: Array, y: Array) -> float:
    # Reassociation only: vectorised, and equal vectors are at 0 exactly.
    total = 0.0
    for k in range(x.size):
        total += (x[k] - y[k]) * (x[k] - y[k])
    return total


@_jit
def dot(x: Array, y: Array) -> float:
    """Σ x y."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@_jit
def costs(vectors: Array, source: Ints, target: Ints) -> Array:
    """M_ij = |x_i - y_j|."""
    M = np.empty((source.size, target.size))
    for i in range(source.size):
        x = vectors[source[i]]
        for j in range(target.size):
            M[i, j] = math.sqrt(_squared_distance(x, vectors[target[j]]))
    return M


@_jit
def round_into(P: Array, a: Array, b: Array) -> None:
    """Make P a plan in place: no negative mass, rows and columns cut down, the rest spread out."""
    n, m = P.shape
    for i in range(n):
        total = 0.0
        for j in range(m):
            P[i, j] = max(P[i, j], 0.0)
            total += P[i, j]
        if total > a[i]:
            for j in range(m):
                P[i, j] *= a[i] / total
    lack = b.copy()
    totals = np.zeros(m)
    for i in range(n):
        for j in range(m):
            totals[j] += P[i, j]
    for j in range(m):
        scale = b[j] / totals[j] if totals[j] > b[j] else 1.0
        for i in range(n):
            P[i, j] *= scale
        lack[j] = max(b[j] - totals[j], 0.0)
    rest = lack.sum()
    if rest > 0.0:
        for i in range(n):
            total = 0.0
            for j in range(m):
                total += P[i, j]
            scale = max(a[i] - total, 0.0) / rest
            for j in range(m):
                P[i, j] += scale * lack[j]


@_jit
def _reach(
    M: Array, P: Array, u: Array, v: Array, row: int, lack: Array, tree: Ints, reach: Array
) -> int:
    """Dijkstra from a row over reduced costs; returns the nearest column that lacks mass.

    Nodes are the rows, then the columns. tree[k] is the node before k; reach[k] its distance, and
    infinite again in the end if it was not settled.
    """
    n, m = P.shape
    settled = np.zeros(n + m, np.bool_)
    reach[:] = np.inf
    reach[row] = 0.0
    while True:
        node, nearest = -1, np.inf
        for k in range(n + m):
            if not settled[k] and reach[k] < nearest:
                node, nearest = k, reach[k]
        if node < 0 or (node >= n and lack[node - n] > 0.0):
            for k in range(n + m):
                if not settled[k] and k != node:
                    reach[k] = np.inf
            return node - n
        settled[node] = True
        if node < n:
            for j in range(m):
                # Negative by rounding only.
                through = nearest + max(M[node, j] - u[node] - v[j], 0.0)
                if not settled[n + j] and through < reach[n + j]:
                    reach[n + j], tree[n + j] = through, node
        else:
            for i in range(n):
                if P[i, node - n] > 0.0 and not settled[i] and nearest < reach[i]:
                    reach[i], tree[i] = nearest, node


@_jit
def exact(M: Array, a: Array, b: Array, P: Array, u: Array, v: Array) -> None:
    """min <P, M> over U(a, b) by successive shortest paths: plan and potentials in place."""
    n, m = M.shape
    P[:] = 0.0
    u[:] = 0.0
    c_transform_kernel(M, u, v)
    lack = b.copy()
    reach = np.empty(n + m)
    tree = np.empty(n + m, np.int64)
    for row in range(n):
        left = a[row]
        while left > _DUST:
            column = _reach(M, P, u, v, row, lack, tree, reach)
            if column < 0:
                break
            length = reach[n + column]
            for k in range(n + m):
                if reach[k] < np.inf:
                    if k < n:
                        u[k] += length - reach[k]
                    else:
                        v[k - n] -= length - reach[k]
            amount = min(left, lack[column])
            node = tree[n + column]
            while node != row:
                amount = min(amount, P[node, tree[node] - n])
                node = tree[tree[node]]
            node = n + column
            while True:
                i = tree[node]
                P[i, node - n] += amount
                if i == row:
                    break
                node = tree[i]
                P[i, node - n] -= amount
                if P[i, node - n] < _DUST / (n + m):
                    P[i, node - n] = 0.0
            left -= amount
            lack[column] -= amount
            if lack[column] < _DUST / (n + m):
                lack[column] = 0.0
    round_into(P, a, b)
    c_transform_kernel(M, u, v)
