"""Submodular functions by brute force: every subset, every vertex, linear programs.

Notation. The ground set are the E <= 12 allowed pairs of an (n, m) array, ``edges`` their flat
indices. Subset number s holds edge k if bit k of s is set; ``values[s]`` is F of it, B(F) the base
polytope, f the Lovász extension. Nothing here sorts and pools: the code under test is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from structot.concave import (
    Concave,
    Linear,
    Log,
    PiecewiseLinear,
    Power,
    Sqrt,
    ThresholdSqrt,
    Truncation,
)
from structot.structures import Groups
from structot.submodular import Submodular

Array = np.ndarray

FAMILIES: tuple[Concave, ...] = (
    ThresholdSqrt(1.0),
    ThresholdSqrt(0.25, 0.5),
    Sqrt(),
    Power(0.7),
    Log(0.8),
    Truncation(1.5),
    PiecewiseLinear([0.5, 2.0], [2.0, 0.75, 0.25]),
    Linear(),
)


@dataclass(frozen=True)
class Table:
    """F on all subsets of the allowed pairs."""

    edges: Array  # (E,) flat indices
    values: Array  # (2^E,)

    def flat(self, K: Array) -> Array:
        """The entries of an (n, m) array on the ground set."""
        return np.asarray(K, float).ravel()[self.edges]

    def masks(self, shape: tuple[int, int]) -> Array:
        """All subsets as Boolean arrays (2^E, n, m)."""
        masks = np.zeros((self.values.size, shape[0] * shape[1]), bool)
        masks[:, self.edges] = members(self.edges.size)
        return masks.reshape(-1, *shape)


def members(size: int) -> Array:
    """Row s: which of ``size`` elements belong to subset number s."""
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1 == 1


def tabulate(value: Callable[[Array], float], allowed: Array) -> Table:
    """F of every subset of the allowed pairs, one call each."""
    edges = np.flatnonzero(allowed)
    blank = Table(edges, np.zeros(2**edges.size))
    return Table(edges, np.array([value(mask) for mask in blank.masks(allowed.shape)]))


def tabulate_groups(M: Array, rows: Array, cols: Array, g: Callable, units: str = "cost") -> Table:
    """Σ_kl T g(M(S ∩ E_kl) / T) from its definition; T = 1, or the block's cost for "block"."""
    edges = np.flatnonzero(np.isfinite(M))
    inside = members(edges.size)
    block = (rows[:, None] * (cols.max() + 1) + cols[None, :]).ravel()[edges]
    cost = M.ravel()[edges]
    values = np.zeros(2**edges.size)
    for b in np.unique(block):
        x = inside[:, block == b] @ cost[block == b]
        scale = x[-1] if units == "block" and x[-1] > 0 else 1.0
        values += scale * np.asarray(g(x / scale))
    return Table(edges, values)


def extension(table: Table, P: Array) -> float:
    """f(P) as the Choquet integral Σ_k (P_(k) - P_(k+1)) F(S_k)."""
    p = table.flat(P)
    order = np.argsort(-p)
    chain = np.cumsum(1 << order)
    return float((p[order] - np.append(p[order][1:], 0.0)) @ table.values[chain])


def largest(table: Table, P: Array) -> float:
    """max_{K in B(F)} <K, P> as a linear program with one row per subset."""
    inside = members(table.edges.size).astype(float)
    answer = linprog(
        -table.flat(P),
        A_ub=inside[1:-1],
        b_ub=table.values[1:-1],
        A_eq=inside[-1:],
        b_eq=table.values[-1:],
        bounds=(None, None),
    )
    assert answer.status == 0, answer.message
    return -float(answer.fun)


def vertices(table: Table) -> Array:
    """Every vertex of B(F): the marginal values along every order of the edges."""
    size = table.edges.size
    orders = np.array(list(itertools.permutations(range(size))))
    chains = np.cumsum(1 << orders, axis=1)
    gains = np.diff(table.values[chains], axis=1, prepend=0.0)
    K = np.empty_like(gains)
    np.put_along_axis(K, orders, gains, axis=1)
    return K


def excess(table: Table, K: Array) -> float:
    """How far K is outside B(F): max_A K(A) - F(A), and |K(all) - F(all)|."""
    sums = members(table.edges.size) @ table.flat(K)
    return float(max((sums - table.values).max(), abs(sums[-1] - table.values[-1])))


def minimum(table: Table, shift: Array) -> float:
    """min_S F(S) + shift(S)."""
    return float((table.values + members(table.edges.size) @ table.flat(shift)).min())


def descent(table: Table, K: Array, gradient: Array) -> float:
    """max_{K' in B(F)} <gradient, K - K'>: 0 exactly if K minimises over B(F)."""
    return extension(table, -gradient) + float(table.flat(gradient) @ table.flat(K))


def is_submodular(table: Table, tol: float = 1e-9) -> bool:
    """F(A) + F(B) >= F(A or B) + F(A and B) for all pairs of subsets."""
    s = np.arange(table.values.size)
    v = table.values
    return bool((v[:, None] + v >= v[s[:, None] | s] + v[s[:, None] & s] - tol).all())


@dataclass(frozen=True)
class GroupProblem:
    """A `Groups` structure, bound, beside its table of values."""

    M: Array
    rows: Array
    cols: Array
    g: Concave
    units: str
    F: Submodular
    table: Table

    @property
    def scale(self) -> float:
        """A size to measure errors in: F of everything, or 1 if that is 0."""
        return float(self.table.values[-1]) or 1.0

    @property
    def allowed(self) -> Array:
        return np.isfinite(self.M)


def group_problem(
    M: Array, rows: Array, cols: Array, g: Concave, units: str = "cost"
) -> GroupProblem:
    """Labels 0, 1, ... on both sides, bound to M."""
    F = Groups(rows, cols, g, units=units).bind(M)
    return GroupProblem(M, rows, cols, g, units, F, tabulate_groups(M, rows, cols, g, units))


@st.composite
def group_problems(
    draw: st.DrawFn, max_edges: int = 8, families: tuple[Concave, ...] = FAMILIES
) -> GroupProblem:
    """Small problems with ties, zero costs and forbidden pairs."""
    n = draw(st.integers(1, min(4, max_edges)))
    m = draw(st.integers(1, max_edges // n))
    cost = st.one_of(
        st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0, np.inf]),
        st.floats(0.01, 4.0, allow_nan=False),
    )
    M = np.array(draw(st.lists(cost, min_size=n * m, max_size=n * m))).reshape(n, m)
    if not np.isfinite(M).any():
        M[0, 0] = 1.0
    rows = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    cols = np.array(draw(st.lists(st.integers(0, 1), min_size=m, max_size=m)))
    g = draw(st.sampled_from(families))
    return group_problem(M, rows, cols, g, draw(st.sampled_from(["cost", "block"])))


def points(problem: GroupProblem, low: float = -3.0, high: float = 3.0) -> st.SearchStrategy[Array]:
    """Points (n, m) with ties."""
    entry = st.one_of(
        st.sampled_from([v for v in (-1.0, 0.0, 0.5, 1.0, 2.0) if low <= v <= high]),
        st.floats(low, high),
    )
    size = problem.M.size
    return st.lists(entry, min_size=size, max_size=size).map(
        lambda x: np.array(x).reshape(problem.M.shape)
    )
