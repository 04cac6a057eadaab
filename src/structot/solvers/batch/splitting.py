"""Compiled solver of one small problem without entropy: splitting with certificates.

Notation. F = C + Σ_b F_b with a linear cost C (n, m); a and b weights of sum T, P a plan, u and v
potentials; copies, blocks and the metric d as in `layers`. S, X, D, A are arrays over the copies:
the state, the prox, its distance from the plan Z with the right marginals, and the anchor; W_e the
sum of d over the copies of an edge, the metric of Z; p and q the multipliers of the marginals. A
step is that of `solvers.splitting`:

    Z = projection of (Σ ρ d_c S_c - C) / (ρ W) onto {Z1 = a, Zᵀ1 = b},
    X = prox(2Z - S),   D = X - Z,   S <- S + 2D, drawn back towards the anchor A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.blocks.polytope import add_exactly
from structot.solvers.batch.layers import (
    Array,
    Copies,
    Ints,
    Memory,
    add_center,
    extension,
    make_memory,
    project,
    prox,
)
from structot.solvers.batch.plans import exact, round_into
from structot.solvers.batch.proofs import (
    CONVERGED,
    LIMIT,
    NOT_FINITE,
    Goal,
    Outcome,
    Proof,
    bound_rounding,
    dot,
    is_converged,
    keep,
    make_proof,
    proved,
    tolerance,
    transport_bound,
)
from structot.solvers.splitting import CHANGE, DECAY, ENOUGH, LONG, OFTEN, SOME

_RHO = 0.12  # the first ρ, relative to (mean price) / (mean mass) of an edge
_EVEN = 1e-12  # relative differences of a metric that are rounding

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Small(NamedTuple):
    """One problem: linear cost C, marginals, blocks, and the projection in the metric W."""

    C: Array
    a: Array
    b: Array
    copies: Copies
    inverse: Array  # 1 / W, (n, m)
    columns: Array  # its column sums
    schur: Array  # inverse of the Schur complement, (n, n); empty if W is constant


class State(NamedTuple):
    """The state of the iteration, and scratch space."""

    S: Array
    A: Array
    D: Array
    x: Array
    Z: Array
    Z_anchor: Array
    p: Array
    q: Array
    memory: Memory


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
def make_small(C: Array, a: Array, b: Array, copies: Copies) -> Small:
    """The problem with its projection onto the marginals, prepared once."""
    n, m = C.shape
    W = np.zeros(n * m)
    for c in range(copies.edge.size):
        W[copies.edge[c]] += copies.d[c]
    inverse, columns = np.empty((n, m)), np.zeros(m)
    even = W.max() - W.min() <= _EVEN * W.max()
    for i in range(n):
        for j in range(m):
            inverse[i, j] = 1.0 / (W[0] if even else W[i * m + j])
            columns[j] += inverse[i, j]
    schur = np.empty((0, 0)) if even else _inverse_schur(inverse, columns)
    return Small(C, a, b, copies, inverse, columns, schur)


@_jit
def _make_state(problem: Small) -> State:
    n, m = problem.C.shape
    size = problem.copies.edge.size
    S, A, D, x = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    Z, Z_anchor = np.empty((n, m)), np.empty((n, m))
    return State(S, A, D, x, Z, Z_anchor, np.empty(n), np.empty(m), make_memory(problem.copies))


@_jit
def to_marginals(V: Array, problem: Small, p: Array, q: Array) -> None:
    """V <- V + (p ⊕ q) / W with the marginals a and b, in place."""
    a, b, inverse, columns = problem.a, problem.b, problem.inverse, problem.columns
    schur = problem.schur
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
        # W = const: the Schur complement is m/W times the identity on vectors of sum 0.
        scale = 1.0 / (m * inverse[0, 0])
        for i in range(n):
            p[i] *= scale
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
def _gather(x: Array, problem: Small, Z: Array) -> None:
    """Z = Σ_c d_c x_c / W."""
    edge, d = problem.copies.edge, problem.copies.d
    flat, scale = Z.ravel(), problem.inverse.ravel()
    flat[:] = 0.0
    for c in range(x.size):
        flat[edge[c]] += d[c] * x[c]
    for e in range(flat.size):
        flat[e] *= scale[e]


@_jit
def objective(P: Array, C: Array, copies: Copies, x: Array, memory: Memory) -> float:
    """<C, P> + Σ_b f_b(P); ``x`` is space for the copies of P."""
    _spread(P, copies.edge, x)
    value, error = extension(x, copies, memory), 0.0
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            value, error = add_exactly(value, error, C[i, j] * P[i, j])
    return value + error


@_jit
def _advance(problem: Small, rho: float, state: State) -> float:
    """Z, its multipliers and D = X - Z from S; the norm of D."""
    S, D, Z, edge, d = state.S, state.D, state.Z, problem.copies.edge, problem.copies.d
    _gather(S, problem, Z)
    C, inverse, step = problem.C, problem.inverse, 1.0 / rho
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            Z[i, j] -= C[i, j] * inverse[i, j] * step
    to_marginals(Z, problem, state.p, state.q)
    flat = Z.ravel()
    for c in range(S.size):
        D[c] = 2.0 * flat[edge[c]] - S[c]
    prox(D, problem.copies, rho, state.memory)
    total = 0.0
    for c in range(S.size):
        D[c] -= flat[edge[c]]
        total += d[c] * D[c] * D[c]
    return np.sqrt(total)


@_jit
def _prove(problem: Small, rho: float, state: State, proof: Proof) -> float:
    """What K = C + (the multipliers ρ d (Z - S), projected onto the base polytopes) proves."""
    S, x, edge, d = state.S, state.x, problem.copies.edge, problem.copies.d
    flat, cost = state.Z.ravel(), proof.K.ravel()
    proof.K[:] = problem.C
    rounding = bound_rounding(flat.size)
    for c in range(S.size):
        x[c] = rho * d[c] * (flat[edge[c]] - S[c])
        cost[edge[c]] -= rounding * abs(x[c])  # as `certificate.lowered`
    project(x, problem.copies, state.memory)
    for c in range(S.size):
        cost[edge[c]] += x[c]
    for i in range(proof.u.size):
        proof.u[i] = rho * state.p[i]
    return proved(proof, problem.a, problem.b)


@_jit
def _move_anchor(problem: Small, state: State, moves: int) -> float:
    """The full step as the new anchor, with ρ changed by the returned factor.

    The factor lets the plan and the multipliers Y = S - Z come equally far from anchor to anchor.
    """
    S, A, D, edge, d = state.S, state.A, state.D, problem.copies.edge, problem.copies.d
    flat, anchor = state.Z.ravel(), state.Z_anchor.ravel()
    plan, multipliers = 0.0, 0.0
    for c in range(S.size):
        z = flat[edge[c]] - anchor[edge[c]]
        y = S[c] - A[c] - z
        plan += d[c] * z * z
        multipliers += d[c] * y * y
    factor = 1.0
    if plan > 0.0 and multipliers > 0.0:
        largest = 1.0 + CHANGE * DECAY**moves
        factor = min(max((multipliers / plan) ** 0.25, 1.0 / largest), largest)
    for c in range(S.size):
        z = flat[edge[c]]
        S[c] = z + (S[c] + 2.0 * D[c] - z) / factor
        A[c] = S[c]
    return factor


@_jit
def _pull(state: State, steps: int) -> None:
    """Halpern's step: the full step, drawn back towards the anchor."""
    S, A, D = state.S, state.A, state.D
    pull = 1.0 / (steps + 1.0)
    for c in range(S.size):
        moved = S[c] + 2.0 * D[c]
        S[c] = moved + pull * (A[c] - moved)


@_jit
def _judge(
    value: float, bound: float, goal: Goal, P: Array, best: Proof, problem: Small
) -> tuple[float, bool]:
    """What counts as nothing, and whether the gap is closed."""
    atol = tolerance(value, value, goal, P, best, problem.a, problem.b)
    return atol, is_converged(value, bound, goal.tol, atol)


@_jit
def _iterate(
    problem: Small,
    state: State,
    rho: float,
    value: float,
    bound: float,
    goal: Goal,
    P: Array,
    best: Proof,
) -> Outcome:
    """Steps and certificates from the state S on; P and ``best`` become the best that is known."""
    Q, proof = np.empty(P.shape), make_proof(*P.shape)
    first, last, steps, moves, certify_at = np.inf, np.inf, 0, 0, OFTEN
    for iteration in range(1, goal.max_iter + 1):
        residual = _advance(problem, rho, state)
        if not np.isfinite(residual):
            return Outcome(value, value, bound, 0.0, iteration, NOT_FINITE)
        if iteration >= certify_at or iteration == goal.max_iter:
            certify_at = iteration + max(OFTEN, iteration // 10)
            _gather(state.D, problem, Q)
            for i in range(P.shape[0]):
                for j in range(P.shape[1]):
                    Q[i, j] += state.Z[i, j]
            round_into(Q, problem.a, problem.b)
            candidate = objective(Q, problem.C, problem.copies, state.x, state.memory)
            if candidate < value:
                value = candidate
                P[:] = Q
            new = _prove(problem, rho, state, proof)
            if new > bound:
                bound = new
                keep(best, proof)
            atol, closed = _judge(value, bound, goal, P, best, problem)
            if closed:
                return Outcome(value, value, bound, atol, iteration, CONVERGED)
        if steps == 0:
            first = residual
            state.Z_anchor[:] = state.Z
        rising, last = residual > last, residual
        if steps > 0 and (
            residual <= ENOUGH * first
            or (residual <= SOME * first and rising)
            or steps >= LONG * iteration + OFTEN
        ):
            rho *= _move_anchor(problem, state, moves)
            last, steps, moves = np.inf, 0, moves + 1
        else:
            steps += 1
            _pull(state, steps)
    atol, _ = _judge(value, bound, goal, P, best, problem)
    return Outcome(value, value, bound, atol, goal.max_iter, LIMIT)


@_jit
def solve_plain(C: Array, a: Array, b: Array, goal: Goal, P: Array, best: Proof) -> Outcome:
    """min <C, P> over U(a, b): plan and proof in place."""
    exact(C, a, b, P, best.u, best.v)
    best.K[:] = C
    value, bound = dot(C.ravel(), P.ravel()), transport_bound(best, a, b)
    if bound < 0.0:
        best.u[:] = 0.0
        best.v[:] = 0.0
        bound = 0.0
    atol = tolerance(value, value, goal, P, best, a, b)
    code = CONVERGED if is_converged(value, bound, goal.tol, atol) else LIMIT
    return Outcome(value, value, bound, atol, 1, code)


@_jit
def solve_small(
    C: Array, a: Array, b: Array, copies: Copies, goal: Goal, P: Array, best: Proof
) -> Outcome:
    """min f(P) over U(a, b): the best plan and proof in place; modular if there are no copies.

    The plan of plain transport is the first candidate, so that what costs nothing is found at once.
    """
    if copies.edge.size == 0:
        return solve_plain(C, a, b, goal, P, best)
    K, u, v = best
    K[:] = C
    add_center(K.ravel(), copies)
    exact(K, a, b, P, u, v)
    problem = make_small(C, a, b, copies)
    state = _make_state(problem)
    value = objective(P, C, copies, state.x, state.memory)
    bound = proved(best, a, b)
    atol, closed = _judge(value, bound, goal, P, best, problem)
    if closed or goal.max_iter == 0:
        return Outcome(value, value, bound, atol, 0, CONVERGED if closed else LIMIT)
    inverse, Z, total = problem.inverse, state.Z, a.sum()
    weight = 0.0
    for i in range(a.size):
        for j in range(b.size):
            weight += 1.0 / inverse[i, j]
    rho = _RHO * K.sum() / weight * C.size / total
    for i in range(a.size):
        for j in range(b.size):
            # Between the plan of plain transport and the independent one; Y, the multipliers of the
            # copies, stand for C - u ⊕ v.
            middle = 0.5 * (P[i, j] + a[i] * b[j] / total)
            Z[i, j] = middle + (C[i, j] - u[i] - v[j]) * inverse[i, j] / rho
    _spread(Z, copies.edge, state.S)
    state.A[:] = state.S
    return _iterate(problem, state, rho, value, bound, goal, P, best)
