"""Compiled plans of one small problem: exact transport, rounding into U(a, b).

Notation. M the cost (n, m), a and b weights with the same sum T, P a plan, u and v potentials with
u_i + v_j <= M_ij, r and c what rows and columns of a plan lack.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from structot.solvers.batch.layers import Array, Ints
from structot.transport.kernels import add_outer, c_transform_kernel, residuals

_EPS = float(np.finfo(np.float64).eps)
_DUST = 1e-13  # mass that is rounding error, relative to the total
# Errors of the marginals that doubles cannot avoid: of all relative to the total, of each point
# relative to its own mass; those of `transport.rounding`.
_ALL, _POINT = 4.0 * _EPS, 64.0 * _EPS

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def is_plan(r: Array, c: Array, a: Array, b: Array) -> bool:
    """Whether rests like these are rounding errors: of every point, and in all."""
    total, rows, columns = 0.0, 0.0, 0.0
    for i in range(a.size):
        total += a[i]
        rows += abs(r[i])
        if abs(r[i]) > _POINT * a[i]:
            return False
    for j in range(b.size):
        columns += abs(c[j])
        if abs(c[j]) > _POINT * b[j]:
            return False
    return max(rows, columns) <= _ALL * total


@_jit
def round_into(P: Array, a: Array, b: Array) -> None:
    """Make P a plan in place: no negative mass, rows and columns cut down, the rest spread out.

    A P that is a plan to rounding stays as it is: its rest, spread over pairs that it does not use,
    might cost more than all of it.
    """
    n, m = P.shape
    for i in range(n):
        for j in range(m):
            P[i, j] = max(P[i, j], 0.0) if a[i] > 0.0 and b[j] > 0.0 else 0.0
    r, c = residuals(P, a, b)
    if is_plan(r, c, a, b):
        return
    for i in range(n):
        if r[i] < 0.0:
            for j in range(m):
                P[i, j] *= a[i] / (a[i] - r[i])
    r, c = residuals(P, a, b)
    for j in range(m):
        if c[j] < 0.0:
            for i in range(n):
                P[i, j] *= b[j] / (b[j] - c[j])
    r, c = residuals(P, a, b)
    rows, columns = 0.0, 0.0
    for i in range(n):
        r[i] = max(r[i], 0.0)
        rows += r[i]
    for j in range(m):
        c[j] = max(c[j], 0.0)
        columns += c[j]
    if max(rows, columns) > 0.0:
        add_outer(P, r, c, 1.0 / max(rows, columns))


@_jit
def _reach(
    M: Array, P: Array, u: Array, v: Array, row: int, lack: Array, tree: Ints, reach: Array
) -> int:
    """Dijkstra from a row over reduced costs; returns the nearest column that lacks mass.

    Rows are reached from columns at no cost, so that only columns are searched. tree[j] is the row
    before column j, tree[m + i] the column before row i; reach[j] and reach[m + i] are their
    distances, infinite for those that were not settled.
    """
    n, m = P.shape
    open_ = np.ones(m, np.bool_)
    reach[:] = np.inf
    distance = np.full(m, np.inf)
    reach[m + row], tree[m + row] = 0.0, -1
    fresh = np.empty(n, np.int64)  # rows whose pairs were not yet looked at
    fresh[0], number, length = row, 1, 0.0
    while True:
        for k in range(number):
            i = fresh[k]
            for j in range(m):
                # Negative by rounding only.
                through = length + max(M[i, j] - u[i] - v[j], 0.0)
                if open_[j] and through < distance[j]:
                    distance[j], tree[j] = through, i
        column, length = -1, np.inf
        for j in range(m):
            if open_[j] and distance[j] < length:
                column, length = j, distance[j]
        if column < 0:
            return -1
        open_[column] = False
        reach[column] = length
        if lack[column] > 0.0:
            return column
        number = 0
        for i in range(n):
            if P[i, column] > 0.0 and reach[m + i] == np.inf:
                reach[m + i], tree[m + i] = length, column
                fresh[number] = i
                number += 1


@_jit
def exact(M: Array, a: Array, b: Array, P: Array, u: Array, v: Array) -> None:
    """min <P, M> over U(a, b) by successive shortest paths: plan and potentials in place."""
    n, m = M.shape
    P[:] = 0.0
    u[:] = 0.0
    c_transform_kernel(M, u, v)
    lack = b.copy()
    reach = np.empty(m + n)
    tree = np.empty(m + n, np.int64)
    dust = _DUST * a.sum()
    for row in range(n):
        left = a[row]
        while left > dust:
            column = _reach(M, P, u, v, row, lack, tree, reach)
            if column < 0:
                break
            length = reach[column]
            for j in range(m):
                if reach[j] < np.inf:
                    v[j] -= length - reach[j]
            for i in range(n):
                if reach[m + i] < np.inf:
                    u[i] += length - reach[m + i]
            amount = min(left, lack[column])
            i = tree[column]
            while i != row:
                amount = min(amount, P[i, tree[m + i]])
                i = tree[tree[m + i]]
            j = column
            while True:
                i = tree[j]
                P[i, j] += amount
                if i == row:
                    break
                j = tree[m + i]
                P[i, j] -= amount
                if P[i, j] < dust / (n + m):
                    P[i, j] = 0.0
            left -= amount
            lack[column] -= amount
            if lack[column] < dust / (n + m):
                lack[column] = 0.0
    round_into(P, a, b)
    c_transform_kernel(M, u, v)
