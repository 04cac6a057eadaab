"""The compiled loop over packed problems: each brought to its own units, solved, and brought back.

Notation as in `layout` and `layers`; a unit is a power of two, so that changing units rounds
nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave.base import STEP
from structot.solvers.batch.entropic import solve_entropic
from structot.solvers.batch.layers import Array, Copies, Ints, add_center, make_copies
from structot.solvers.batch.layout import Packed
from structot.solvers.batch.proofs import Goal, Outcome, Proof
from structot.solvers.batch.splitting import solve_small

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Answers(NamedTuple):
    """Plans and proofs of packed problems, flat, and one row of `Outcome` for each of them."""

    P: Array
    K: Array
    u: Array
    v: Array
    outcome: Array


def make_answers(packed: Packed) -> Answers:
    """Space for the answers."""
    C, a, b = packed.C, packed.a, packed.b
    outcome = np.empty((len(packed.shape), len(Outcome._fields)))
    P, K, u, v = (np.empty_like(x) for x in (C, C, a, b))
    return Answers(P, K, u, v, outcome)


@_jit
def _starts(sizes: Ints) -> Ints:
    start = np.zeros(sizes.size + 1, np.int64)
    for k in range(sizes.size):
        start[k + 1] = start[k] + sizes[k]
    return start


@_jit
def _power_of_two(x: float) -> float:
    """The largest power of two that is not above x; 1 where there is none."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if 0.0 < x < np.inf else 1.0


@_jit
def _copies(packed: Packed, k: int, unit: float) -> Copies:
    """The layers of problem k with costs in this unit; weights are costs but for fixed charges."""
    first, last = packed.block[k], packed.block[k + 1]
    kind, start = packed.kind[first:last], _starts(packed.sizes[first:last])
    w = packed.w[packed.copy[k] : packed.copy[k + 1]].copy()
    outer, inner = packed.outer[first:last] / unit, packed.inner[first:last].copy()
    for b in range(kind.size):
        if kind[b] != STEP:
            inner[b] *= unit
            for c in range(start[b], start[b + 1]):
                w[c] /= unit
    return make_copies(
        packed.edge[packed.copy[k] : packed.copy[k + 1]],
        start,
        w,
        _starts(packed.blocks[packed.layer_of[k] : packed.layer_of[k + 1]]),
        kind,
        _starts(packed.param_sizes[first:last]),
        packed.params[packed.param[k] : packed.param[k + 1]],
        outer,
        inner,
    )


@_jit
def _cost_unit(C: Array, copies: Copies) -> float:
    """A power of two near the mean price of an edge."""
    K = C.copy()
    add_center(K, copies)
    mean = 0.0
    for e in range(K.size):
        mean += K[e] / K.size
    return _power_of_two(mean)


@_jit
def _solve(packed: Packed, k: int, reg: float, goal: Goal, P: Array, proof: Proof) -> Outcome:
    """Problem k; plan and proof in place, in the units of the user."""
    a = packed.a[packed.row[k] : packed.row[k + 1]]
    b = packed.b[packed.column[k] : packed.column[k + 1]]
    C = packed.C[packed.cell[k] : packed.cell[k + 1]]
    unit, mass = _cost_unit(C, _copies(packed, k, 1.0)), _power_of_two(a.sum())
    own = Goal(goal.tol, goal.atol / (unit * mass), goal.max_iter)
    copies, cost = _copies(packed, k, unit), (C / unit).reshape(P.shape)
    if reg > 0.0:
        found = solve_entropic(cost, a / mass, b / mass, copies, reg / unit, own, P, proof)
    else:
        found = solve_small(cost, a / mass, b / mass, copies, own, P, proof)
    P *= mass
    proof.K[:] *= unit
    proof.u[:] *= unit
    proof.v[:] *= unit
    value, structured, bound, atol, n_iter, code = found
    scale = unit * mass
    return Outcome(value * scale, structured * scale, bound * scale, atol * scale, n_iter, code)


@_jit
def solve_packed(
    first: int, last: int, packed: Packed, reg: float, goal: Goal, answers: Answers
) -> None:
    """Fill in the answers of the problems first:last."""
    for k in range(first, last):
        n, m = packed.shape[k]
        cells = slice(packed.cell[k], packed.cell[k + 1])
        P, K = answers.P[cells].reshape(n, m), answers.K[cells].reshape(n, m)
        u = answers.u[packed.row[k] : packed.row[k + 1]]
        v = answers.v[packed.column[k] : packed.column[k + 1]]
        found = _solve(packed, k, reg, goal, P, Proof(K, u, v))
        row = answers.outcome[k]
        row[0], row[1], row[2] = found.value, found.structured, found.bound
        row[3], row[4], row[5] = found.atol, found.n_iter, found.code
