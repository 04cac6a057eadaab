"""The optimum of structured transport by brute force: one linear program over all sets of pairs.

Notation. λ_A >= 0 for every set A of allowed pairs, 1_A its indicator; f(P) is the least
Σ_A λ_A F(A) with Σ_A λ_A 1_A = P, so that

    min_{P in U(a,b)} f(P)  =  min_λ Σ_A λ_A F(A)   subject to   Σ_A λ_A 1_A in U(a, b).

Nothing but values of F is used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from brute_force import members, tabulate
from scipy.optimize import linprog

from structot.structures import Structure

Array = np.ndarray


class SubsetOptimum(NamedTuple):
    """The minimum of f over U(a, b), and a plan that attains it."""

    value: float
    plan: Array


def subset_optimum(M: Array, a: Array, b: Array, structure: Structure) -> SubsetOptimum:
    """Solve the program for up to some ten allowed pairs (2^E variables)."""
    F = structure.bind(M)
    allowed = np.isfinite(M) if F.allowed is None else F.allowed
    table = tabulate(F.value, allowed)
    assert table.edges.size <= 12, "one variable per set: keep the problem tiny"
    inside = members(table.edges.size).T.astype(float)  # (E, 2^E)
    row, col = np.unravel_index(table.edges, M.shape)
    sums = np.vstack([inside[row == i].sum(axis=0) for i in range(M.shape[0])])
    sums = np.vstack([sums, *(inside[col == j].sum(axis=0) for j in range(M.shape[1]))])
    scale = max(float(np.abs(table.values).max()), 1e-300)
    answer = linprog(
        table.values / scale,
        A_eq=sums,
        b_eq=np.concatenate([a, b]),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    plan = np.zeros(M.shape)
    plan[row, col] = inside @ answer.x
    return SubsetOptimum(scale * float(answer.fun), plan)
