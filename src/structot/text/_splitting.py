"""Compiled solver of one sentence pair: splitting with certificates.

Notation. M the cost (n, m), a and b weights of sum 1, P a plan, u and v potentials; copies, blocks,
the metric d and the model of F as in `_blocks`. F = C + Σ_b F_b with C = M for a fixed charge and
C = 0 for a concave g. S, X, D, A are arrays over the copies: the state, the prox, its distance from
the plan Z with the right marginals, and the anchor; W_e the sum of d over the copies of an edge,
the metric of Z; p and q the multipliers of the marginals. A step is that of `solvers.splitting`:

    Z = projection of (Σ ρ d_c S_c - C) / (ρ W) onto {Z1 = a, Zᵀ1 = b},
    X = prox(2Z - S),   D = X - Z,   S <- S + 2D, drawn back towards the anchor A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave.base import LINEAR, STEP
from structot.text._blocks import (
    Array,
    Copies,
    Ints,
    Model,
    add_center,
    charges,
    project,
    prox,
)
from structot.text._plans import dot, exact, round_into
from structot.transport.kernels import c_transform_kernel

CONVERGED, LIMIT, NOT_FINITE = 0, 1, 2

_RHO = 0.12  # the first ρ, relative to (mean price) / (mean mass) of an edge
_OFTEN = 10  # iterations between certificates, later a tenth of all
_ENOUGH, _SOME, _LONG = 0.2, 0.8, 0.2  # when the anchor moves, as in `splitting`
_CHANGE, _DECAY = 4.0, 0.93  # largest change of ρ at the t-th move: 1 + change · decay^t
_FREE = 1e-2  # metric of an edge that costs nothing, relative to the mean cost

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Pair(NamedTuple):
    """One problem: linear cost C, marginals, blocks, and the projection in the metric W."""

    C: Array
    a: Array
    b: Array
    copies: Copies
    inverse: Array  # 1 / W, (n, m)
    columns: Array  # its column sums
    schur: Array  # inverse of the Schur complement, (n, n); empty if W = 1


class Space(NamedTuple):
    """The state of the iteration, and scratch space."""

    S: Array
    A: Array
    D: Array
    x: Array
    Z: Array
    Z_anchor: Array
    K: Array
    p: Array
    q: Array
    order: Ints
    spare: Array


@_jit
def _inverse_schur(inverse: Array, columns: Array) -> Array:
    """Inverse of the Laplacian diag(B1) - B diag(1/columns) Bᵀ of B = 1/W, pinned at row 0.

    Gauss-Jordan without pivoting, which a positive definite matrix does not need.
    """
    n, m = inverse.shape
    schur = np.zeros((n, n))
    for i in range(n):
        for k in range(n):
            if k != i:
                for j in range(m):
                    schur[i, k] -= inverse[i, j] * inverse[k, j] / columns[j]
                schur[i, i] -= schur[i, k]  # zero row sums without cancellation
    for k in range(1, n):
        pivot = 1.0 / schur[k, k]
        schur[k, k] = 1.0
        for j in range(1, n):
            schur[k, j] *= pivot
        for i in range(1, n):
            if i != k:
                factor = schur[i, k]
                schur[i, k] = 0.0
                for j in range(1, n):
                    schur[i, j] -= factor * schur[k, j]
    for i in range(n):
        schur[0, i] = schur[i, 0] = 0.0
    return schur


@_jit
def make_pair(M: Array, a: Array, b: Array, edge: Ints, start: Ints, model: Model) -> Pair:
    """The metric of the copies: uniform for a fixed charge, the cost for a concave g.

    Each edge divides its metric and its cost equally among its copies.
    """
    n, m = M.shape
    count = np.zeros(n * m)
    for e in edge:
        count[e] += 1.0
    cost = M.ravel()
    free = _FREE * cost.mean() if cost.max() > 0.0 else 1.0
    W = np.ones(n * m)
    if model.kind != STEP:
        for e in range(n * m):
            W[e] = cost[e] if cost[e] > 0.0 else free
    d, w = np.empty(edge.size), np.empty(edge.size)
    for c in range(edge.size):
        e = edge[c]
        d[c] = W[e] / count[e]
        w[c] = cost[e] / count[e]
    inverse, columns = np.empty((n, m)), np.zeros(m)
    for i in range(n):
        for j in range(m):
            inverse[i, j] = 1.0 / W[i * m + j]
            columns[j] += inverse[i, j]
    uniform = model.kind == STEP
    schur = np.empty((0, 0)) if uniform else _inverse_schur(inverse, columns)
    C = M.copy() if uniform else np.zeros((n, m))
    return Pair(C, a, b, Copies(edge, start, d, w), inverse, columns, schur)


@_jit
def make_space(pair: Pair) -> Space:
    """Arrays of the right sizes."""
    n, m = pair.C.shape
    size, start = pair.copies.edge.size, pair.copies.start
    longest = 0
    for k in range(start.size - 1):
        longest = max(longest, start[k + 1] - start[k])
    S, A, D, x = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    Z, Z_anchor, K = np.empty((n, m)), np.empty((n, m)), np.empty((n, m))
    order, spare = np.empty(longest, np.int64), np.empty((4, longest))
    return Space(S, A, D, x, Z, Z_anchor, K, np.empty(n), np.empty(m), order, spare)


@_jit
def to_marginals(V: Array, pair: Pair, p: Array, q: Array) -> None:
    """V <- V + (p ⊕ q) / W with the marginals a and b, in place."""
    a, b, inverse, columns, schur = pair.a, pair.b, pair.inverse, pair.columns, pair.schur
    n, m = V.shape
    for j in range(m):
        q[j] = b[j]
    for i in range(n):
        p[i] = a[i]
        for j in range(m):
            p[i] -= V[i, j]
            q[j] -= V[i, j]
    for j in range(m):
        q[j] /= columns[j]
    for i in range(n):
        for j in range(m):
            p[i] -= inverse[i, j] * q[j]
    if schur.size == 0:
        # W = 1: the Schur complement is m times the identity on vectors of sum 0.
        for i in range(n):
            p[i] /= m
    else:
        right = p.copy()
        for i in range(n):
            p[i] = 0.0
            for k in range(n):
                p[i] += schur[i, k] * right[k]
    for i in range(n):
        for j in range(m):
            q[j] -= inverse[i, j] * p[i] / columns[j]
    for i in range(n):
        for j in range(m):
            V[i, j] += (p[i] + q[j]) * inverse[i, j]


@_jit
def _spread(Z: Array, edge: Ints, x: Array) -> None:
    """The same plan for every copy."""
    flat = Z.ravel()
    for c in range(x.size):
        x[c] = flat[edge[c]]


@_jit
def _gather(x: Array, pair: Pair, Z: Array) -> None:
    """Z = Σ_c d_c x_c / W."""
    edge, d = pair.copies.edge, pair.copies.d
    flat, scale = Z.ravel(), pair.inverse.ravel()
    flat[:] = 0.0
    for c in range(x.size):
        flat[edge[c]] += d[c] * x[c]
    for e in range(flat.size):
        flat[e] *= scale[e]


@_jit
def objective(P: Array, pair: Pair, model: Model, space: Space) -> float:
    """<C, P> + Σ_b f_b(P)."""
    _spread(P, pair.copies.edge, space.x)
    value = charges(space.x, pair.copies, model, space.order)
    C = pair.C
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            value += C[i, j] * P[i, j]
    return value


@_jit
def _advance(pair: Pair, model: Model, rho: float, space: Space) -> float:
    """Z, its multipliers and D = X - Z from S; the norm of D."""
    S, D, Z, edge, d = space.S, space.D, space.Z, pair.copies.edge, pair.copies.d
    _gather(S, pair, Z)
    C, inverse = pair.C, pair.inverse
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            Z[i, j] -= C[i, j] * inverse[i, j] / rho
    to_marginals(Z, pair, space.p, space.q)
    flat = Z.ravel()
    for c in range(S.size):
        D[c] = 2.0 * flat[edge[c]] - S[c]
    prox(D, pair.copies, model, rho, space.order, space.spare)
    total = 0.0
    for c in range(S.size):
        D[c] -= flat[edge[c]]
        total += d[c] * D[c] * D[c]
    return np.sqrt(total)


@_jit
def _proved(K: Array, pair: Pair, u: Array, v: Array) -> float:
    """a·u + b·v after c-transforms from u: a lower bound of <P, K> over U(a, b)."""
    c_transform_kernel(K, u, v)
    c_transform_kernel(K, u, v)
    return dot(pair.a, u) + dot(pair.b, v)


@_jit
def _bound(pair: Pair, model: Model, rho: float, space: Space, u: Array, v: Array) -> float:
    """What K = C + (the multipliers ρ d (Z - S), projected onto the base polytopes) proves."""
    S, x, edge, d, K = space.S, space.x, pair.copies.edge, pair.copies.d, space.K
    flat, cost = space.Z.ravel(), K.ravel()
    for c in range(S.size):
        x[c] = rho * d[c] * (flat[edge[c]] - S[c])
    project(x, pair.copies, model, space.order, space.spare)
    K[:] = pair.C
    for c in range(S.size):
        cost[edge[c]] += x[c]
    p = space.p
    for i in range(u.size):
        u[i] = rho * p[i]
    return _proved(K, pair, u, v)


@_jit
def _move_anchor(pair: Pair, space: Space, moves: int) -> float:
    """The full step as the new anchor, with ρ changed by the returned factor.

    The factor lets the plan and the multipliers Y = S - Z come equally far from anchor to anchor.
    """
    S, A, D, edge, d = space.S, space.A, space.D, pair.copies.edge, pair.copies.d
    flat, anchor = space.Z.ravel(), space.Z_anchor.ravel()
    plan, multipliers = 0.0, 0.0
    for c in range(S.size):
        z = flat[edge[c]] - anchor[edge[c]]
        y = S[c] - A[c] - z
        plan += d[c] * z * z
        multipliers += d[c] * y * y
    factor = 1.0
    if plan > 0.0 and multipliers > 0.0:
        largest = 1.0 + _CHANGE * _DECAY**moves
        factor = min(max((multipliers / plan) ** 0.25, 1.0 / largest), largest)
    for c in range(S.size):
        z = flat[edge[c]]
        S[c] = z + (S[c] + 2.0 * D[c] - z) / factor
        A[c] = S[c]
    return factor


@_jit
def _pull(space: Space, steps: int) -> None:
    """Halpern's step: the full step, drawn back towards the anchor."""
    S, A, D = space.S, space.A, space.D
    pull = 1.0 / (steps + 1.0)
    for c in range(S.size):
        moved = S[c] + 2.0 * D[c]
        S[c] = moved + pull * (A[c] - moved)


@_jit
def _iterate(
    pair: Pair,
    model: Model,
    space: Space,
    rho: float,
    value: float,
    bound: float,
    least: float,
    tol: float,
    max_iter: int,
    P: Array,
    u: Array,
    v: Array,
) -> tuple[float, float, int, int]:
    """Steps and certificates from the state S on; P becomes the best plan seen."""
    Q = np.empty(P.shape)
    first, last, steps, moves, certify_at = np.inf, np.inf, 0, 0, _OFTEN
    for iteration in range(1, max_iter + 1):
        residual = _advance(pair, model, rho, space)
        if not np.isfinite(residual):
            return value, bound, iteration, NOT_FINITE
        if iteration >= certify_at or iteration == max_iter:
            certify_at = iteration + max(_OFTEN, iteration // 10)
            _gather(space.D, pair, Q)
            for i in range(u.size):
                for j in range(v.size):
                    Q[i, j] += space.Z[i, j]
            round_into(Q, pair.a, pair.b)
            candidate = objective(Q, pair, model, space)
            if candidate < value:
                value = candidate
                P[:] = Q
            bound = max(bound, _bound(pair, model, rho, space, u, v))
            if value - bound <= tol * max(value, least):
                return value, bound, iteration, CONVERGED
        if steps == 0:
            first = residual
            space.Z_anchor[:] = space.Z
        rising, last = residual > last, residual
        if steps > 0 and (
            residual <= _ENOUGH * first
            or (residual <= _SOME * first and rising)
            or steps >= _LONG * iteration + _OFTEN
        ):
            rho *= _move_anchor(pair, space, moves)
            last, steps, moves = np.inf, 0, moves + 1
        else:
            steps += 1
            _pull(space, steps)
    return value, bound, max_iter, LIMIT


@_jit
def solve_pair(
    M: Array,
    a: Array,
    b: Array,
    edge: Ints,
    start: Ints,
    model: Model,
    tol: float,
    max_iter: int,
    P: Array,
) -> tuple[float, float, int, int]:
    """min f(P) over U(a, b): the best plan in place; its value, the best bound, steps, a code.

    The plan of plain transport is the first candidate, so that what costs nothing is found at once.
    """
    n, m = M.shape
    u, v = np.zeros(n), np.zeros(m)
    exact(M, a, b, P, u, v)
    if model.kind == LINEAR:
        return dot(M.ravel(), P.ravel()), dot(a, u) + dot(b, v), 0, CONVERGED
    pair = make_pair(M, a, b, edge, start, model)
    space = make_space(pair)
    value = objective(P, pair, model, space)
    K = space.K
    K[:] = pair.C
    add_center(K.ravel(), pair.copies, model)
    u[:] = 0.0
    bound = _proved(K, pair, u, v)
    least = max(1e-12 * M.max(), 1e-300)
    if value - bound <= tol * max(value, least):
        return value, bound, 0, CONVERGED
    C, inverse, Z = pair.C, pair.inverse, space.Z
    weight = 0.0
    for i in range(n):
        for j in range(m):
            weight += 1.0 / inverse[i, j]
    rho = _RHO * K.sum() / weight * n * m
    for i in range(n):
        for j in range(m):
            # Y, the multipliers of the copies, stand for C - u ⊕ v.
            Z[i, j] = a[i] * b[j] + (C[i, j] - u[i] - v[j]) * inverse[i, j] / rho
    _spread(Z, edge, space.S)
    space.A[:] = space.S
    return _iterate(pair, model, space, rho, value, bound, least, tol, max_iter, P, u, v)
