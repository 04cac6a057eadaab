"""Compiled solver of one small problem with entropy: blockwise exact ascent of the dual.

Notation. min_P <C, P> + Σ_b price_b max_b P + reg Σ h(P, r) with r = a bᵀ / T and h the relative
entropy; copies and blocks as in `layers`, one layer of fixed charges at most. The dual function of
potentials u, v and a cost K = C + k with k in B(F) is

    a·u + b·v - reg Σ r (exp((u ⊕ v - K) / reg) - 1).

It is smooth, and each of its three blocks of unknowns has a closed form while the others rest: u
and v scale rows and columns as in Sinkhorn's iteration, k cuts off the plan of every block at one
height (the same cut of logarithms as in the projection onto B(F)).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from structot.blocks.polytope import add_exactly
from structot.solvers.batch.layers import Array, Copies, divide, make_memory
from structot.solvers.batch.plans import round_into
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
    tolerance,
)
from structot.solvers.batch.splitting import objective
from structot.transport.entropy import surplus

_OFTEN = 4  # sweeps between certificates, later a tenth of all

_jit = njit(cache=True, nogil=True, error_model="numpy")


@_jit
def _cut(C: Array, u: Array, v: Array, log_r: Array, copies: Copies, reg: float, K: Array) -> None:
    """The best k of every block for these potentials, and K = C + k."""
    m = v.size
    z, flat, logs = np.empty(copies.edge.size), K.ravel(), log_r.ravel()
    K[:] = C
    for c in range(z.size):
        e = copies.edge[c]
        z[c] = u[e // m] + v[e % m] - flat[e] + reg * logs[e]
    for b in range(copies.totals.size):
        divide(z, copies.w, copies.start[b], copies.start[b + 1], copies.outer[b])
    for c in range(z.size):
        flat[copies.edge[c]] += z[c]


@_jit
def _scale_rows(K: Array, v: Array, log_r: Array, log_a: Array, reg: float, u: Array) -> None:
    """u such that the rows of r exp((u ⊕ v - K) / reg) have the sums a."""
    n, m = K.shape
    x = np.empty(m)
    for i in range(n):
        top = -np.inf
        for j in range(m):
            x[j] = (v[j] - K[i, j]) / reg + log_r[i, j]
            top = max(top, x[j])
        total = 0.0
        for j in range(m):
            total += math.exp(x[j] - top)
        u[i] = reg * (log_a[i] - top - math.log(total))


@_jit
def _plan(proof: Proof, log_r: Array, reg: float, P: Array) -> None:
    """P = r exp((u ⊕ v - K) / reg)."""
    K, u, v = proof
    for i in range(u.size):
        for j in range(v.size):
            P[i, j] = math.exp((u[i] + v[j] - K[i, j]) / reg + log_r[i, j])


@_jit
def entropic_bound(proof: Proof, a: Array, b: Array, reg: float) -> float:
    """The dual function, safe: `certificate.entropic_bound` with the metric 1."""
    K, u, v = proof
    total, size, lost, missing = a.sum(), 0.0, 0.0, 0.0
    for i in range(a.size):
        size += a[i] * abs(u[i])
        for j in range(b.size):
            r = a[i] * (b[j] / total)
            growth = math.expm1((u[i] + v[j] - K[i, j]) / reg)
            lost, missing = add_exactly(lost, missing, r * growth)
            size += reg * abs(r * growth)
            size += r * (1.0 + growth) * (abs(u[i]) + abs(v[j]) + abs(K[i, j]))
    for j in range(b.size):
        size += b[j] * abs(v[j])
    if not np.isfinite(size):
        return -np.inf
    bound = dot(a, u) + dot(b, v) - reg * (lost + missing)
    return bound - bound_rounding(K.size) * size


@_jit
def _entropy(P: Array, a: Array, b: Array) -> tuple[float, float]:
    """Σ h(P, r), and Σ |P - r|, to which its rounding error is relative."""
    total, value, error, change = a.sum(), 0.0, 0.0, 0.0
    for i in range(a.size):
        for j in range(b.size):
            r = a[i] * (b[j] / total)
            value, error = add_exactly(value, error, surplus(P[i, j], r))
            change += abs(P[i, j] - r)
    return value + error, change


@_jit
def solve_entropic(
    C: Array, a: Array, b: Array, copies: Copies, reg: float, goal: Goal, P: Array, best: Proof
) -> Outcome:
    """The best plan and proof in place."""
    n, m = C.shape
    log_a, log_b, log_r = np.log(a), np.log(b), np.empty((n, m))
    for i in range(n):
        for j in range(m):
            log_r[i, j] = log_a[i] + log_b[j] - np.log(a.sum())
    log_back = np.ascontiguousarray(log_r.T)
    proof, Q, x = make_proof(n, m), np.empty((n, m)), np.empty(copies.edge.size)
    memory = make_memory(copies)
    K, u, v = proof
    value, structured, bound, atol = np.inf, np.inf, -np.inf, 0.0
    size, certify_at = 0.0, 1
    for sweep in range(1, max(goal.max_iter, 1) + 1):
        _cut(C, u, v, log_r, copies, reg, K)
        _scale_rows(K, v, log_r, log_a, reg, u)
        _scale_rows(np.ascontiguousarray(K.T), u, log_back, log_b, reg, v)
        if sweep < certify_at and sweep < goal.max_iter:
            continue
        certify_at = sweep + max(_OFTEN, sweep // 10)
        _plan(proof, log_r, reg, Q)
        if not np.isfinite(Q.sum()):
            return Outcome(value, structured, bound, atol, sweep, NOT_FINITE)
        round_into(Q, a, b)
        cost = objective(Q, C, copies, x, memory)
        entropy, change = _entropy(Q, a, b)
        if cost + reg * entropy < value:
            value, structured = cost + reg * entropy, cost
            size = cost + reg * (entropy + change)
            P[:] = Q
        new = entropic_bound(proof, a, b, reg)
        if new > bound:
            bound = new
            keep(best, proof)
        atol = tolerance(value, size, goal, P, best, a, b)
        if is_converged(value, bound, goal.tol, atol):
            return Outcome(value, structured, bound, atol, sweep, CONVERGED)
    return Outcome(value, structured, bound, atol, goal.max_iter, LIMIT)
