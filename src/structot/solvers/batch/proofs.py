"""The rule of `structot.certificate` for compiled code: safe bounds, and when a gap is closed.

Notation. K in B(F) a cost the adversary may play, (u, v) potentials with u ⊕ v <= K; a·u + b·v less
its rounding error is a lower bound. The rule itself is not written again: the functions of
`certificate` that decide are compiled as they stand there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from structot import certificate
from structot.blocks.polytope import add_exactly
from structot.solvers.batch.layers import Array
from structot.transport.kernels import c_transform_kernel, residuals

CONVERGED, LIMIT, NOT_FINITE = 0, 1, 2

_jit = njit(cache=True, nogil=True, error_model="numpy")

is_converged = _jit(certificate.is_converged)
absolute_tolerance = _jit(certificate.absolute_tolerance)
bound_rounding = _jit(certificate.rule.bound_rounding)


class Goal(NamedTuple):
    """When to stop: value - bound <= tol |value| + atol, or after so many iterations."""

    tol: float
    atol: float  # beside the rounding error of the value, which always counts as nothing
    max_iter: int


class Proof(NamedTuple):
    """A cost K in B(F), and potentials with u ⊕ v <= K."""

    K: Array
    u: Array
    v: Array


class Outcome(NamedTuple):
    """What came out beside the plan and the proof."""

    value: float
    structured: float  # the value without the entropy
    bound: float
    atol: float
    n_iter: int
    code: int


@_jit
def make_proof(n: int, m: int) -> Proof:
    """Zero potentials."""
    return Proof(np.zeros((n, m)), np.zeros(n), np.zeros(m))


@_jit
def keep(best: Proof, new: Proof) -> None:
    """Copy a proof."""
    best.K[:] = new.K
    best.u[:] = new.u
    best.v[:] = new.v


@_jit
def dot(x: Array, y: Array) -> float:
    """Σ x y."""
    total, lost = 0.0, 0.0
    for k in range(x.size):
        total, lost = add_exactly(total, lost, x[k] * y[k])
    return total + lost


@_jit
def transport_bound(proof: Proof, a: Array, b: Array) -> float:
    """a·u + b·v, safe."""
    u, v = proof.u, proof.v
    size = 0.0
    for i in range(a.size):
        size += a[i] * abs(u[i])
    for j in range(b.size):
        size += b[j] * abs(v[j])
    if not np.isfinite(size):
        return -np.inf
    return dot(a, u) + dot(b, v) - bound_rounding(a.size * b.size) * size


@_jit
def proved(proof: Proof, a: Array, b: Array) -> float:
    """The bound of the cost K by c-transforms from u, which change the potentials."""
    K, u, v = proof
    c_transform_kernel(K, u, v)
    c_transform_kernel(K, u, v)
    bound = transport_bound(proof, a, b)
    if bound < 0.0 and K.min() >= 0.0:
        u[:] = 0.0
        v[:] = 0.0
        return 0.0
    return bound


@_jit
def tolerance(
    value: float, magnitude: float, goal: Goal, P: Array, proof: Proof, a: Array, b: Array
) -> float:
    """What counts as nothing beside the value, `certificate.infeasibility` of the plan included."""
    rows, columns = residuals(P, a, b)
    missed = 0.0
    for i in range(a.size):
        missed += abs(rows[i] * proof.u[i])
    for j in range(b.size):
        missed += abs(columns[j] * proof.v[j])
    return absolute_tolerance(value, magnitude, goal.tol, 2.0 * missed, goal.atol)
