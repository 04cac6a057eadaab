"""Exact transport by the network simplex method, and potentials made feasible.

Notation: ``M`` or ``K`` cost (+inf forbids a pair), ``P`` plan, ``u, v`` potentials with
u_i + v_j <= M_ij, ``a, b`` marginals with the common total ``T``.
"""

from __future__ import annotations

import heapq
import math
import warnings
from dataclasses import dataclass

import numpy as np

from structot._checks import as_array, with_marginals
from structot._deadline import call_foreign, uncounted

from . import kernels
from ._flow import InfeasibleError
from .kernels import BoolArray, FloatArray
from .rounding import marginal_error, round_plan, rounding_limit

_MAX_PIVOTS = 10_000_000
# The network simplex of POT has absolute tolerances near 1e-15: costs are brought to 2 to this.
_COST_EXPONENT = 20


@dataclass(frozen=True, eq=False)
class ExactResult:
    """An optimal plan, its cost <P, M>, and potentials (u, v) with a.u + b.v = value.

    Examples
    --------
    >>> import numpy as np
    >>> M = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> found = emd(M, np.full(2, 0.5), np.full(2, 0.5))
    >>> found.value, found.plan
    (1.0, array([[0.5, 0. ],
           [0. , 0.5]]))
    """

    plan: FloatArray
    value: float
    potentials: tuple[FloatArray, FloatArray]


def c_transform(
    K: FloatArray, u: FloatArray, v: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """v_j = min_i (K_ij - u_i), then u_i = min_j (K_ij - v_j): the largest feasible pair from u.

    The last subtraction is rounded downwards, so u_i + v_j <= K_ij holds for the real numbers
    behind the doubles, and a.u + b.v is a proved lower bound of <P, K> over U(a, b).

    Parameters
    ----------
    K
        Cost, n x m; +inf forbids a pair.
    u
        Row potentials to start from. Entries that are not finite are left out of the first minimum.
    v
        Values for columns without any finite entry, 0 by default; not used elsewhere.

    Returns
    -------
    tuple[FloatArray, FloatArray]
        New arrays (u, v), always finite; u_i = 0 in rows without a finite entry.

    Examples
    --------
    >>> import numpy as np
    >>> c_transform(np.array([[1.0, 3.0], [2.0, 2.0]]), np.zeros(2))
    (array([0., 0.]), array([1., 2.]))
    """
    K = np.ascontiguousarray(as_array("K", K, 2))
    u = np.array(u, dtype=np.float64)
    v = np.zeros(K.shape[1]) if v is None else np.array(v, dtype=np.float64)
    if u.shape + v.shape != K.shape:
        raise ValueError(
            f"u and v have shapes {u.shape} and {v.shape}, but K has {K.shape}; "
            "u belongs to the rows, v to the columns."
        )
    v[~np.isfinite(v)] = 0.0
    kernels.c_transform_kernel(K, u, v)
    return u, v


def emd(M: FloatArray, a: FloatArray, b: FloatArray) -> ExactResult:
    """min over P in U(a, b) of <P, M>, with the potentials of max a.u + b.v, u_i + v_j <= M_ij.

    Parameters
    ----------
    M
        Cost, n x m, of any scale and sign; +inf forbids a pair.
    a, b
        Marginals, non-negative, with equal totals.

    Returns
    -------
    ExactResult
        Plan (exactly feasible, a vertex of U(a, b): at most n + m - 1 positive entries), value, and
        potentials that are feasible as returned, also for points without mass.

    Raises
    ------
    InfeasibleError
        If mass must use a forbidden pair.
    RuntimeError
        If the network simplex method does not reach an optimum.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> result = emd(np.array([[0.0, 1.0], [1.0, 0.0]]), half, half)
    >>> result.value, result.plan
    (0.0, array([[0.5, 0. ],
           [0. , 0.5]]))
    """
    M, a, b = with_marginals("M", M, a, b)
    if not M.min(initial=np.inf) > -np.inf:  # true for NaN as well
        raise ValueError("M must hold numbers or +inf, but has NaN or -inf; repair these entries.")
    rows, columns = np.flatnonzero(a > 0.0), np.flatnonzero(b > 0.0)
    plan = np.zeros(M.shape)
    if rows.size == 0 or columns.size == 0:
        return ExactResult(plan, 0.0, c_transform(M, np.zeros(M.shape[0])))
    part = np.ix_(rows, columns)
    allowed = np.isfinite(M)
    u = np.full(M.shape[0], np.nan)  # rows without mass get the largest feasible value
    plan[part], u[rows] = _simplex(M[part], a[rows], b[columns])
    plan[~allowed] = 0.0
    plan, u = _settle(plan, M, a, b, u, allowed)
    used = plan > 0.0
    value = math.fsum((plan[used] * M[used]).tolist())
    return ExactResult(plan, value, c_transform(M, u))


def _simplex(M: FloatArray, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Plan and row potentials (up to a constant) for a > 0, b > 0, scaled to what POT resolves."""
    with uncounted():  # slow to import, needed only here
        from ot.lp import emd as network_simplex

    allowed = np.isfinite(M)
    if not allowed.any():
        raise InfeasibleError("M is +inf for every pair of points with mass; make a pair finite.")
    low, high = np.min(M, initial=np.inf, where=allowed), np.max(M, initial=-np.inf, where=allowed)
    # Powers of two are exact factors, and a constant changes no optimal plan; POT takes negative
    # costs for an infeasible problem.
    shift = -math.frexp(max(abs(low), abs(high)))[1]
    cost = np.ldexp(M, shift) - math.ldexp(low, shift)
    stretch = _COST_EXPONENT - math.frexp(np.max(cost, initial=0.0, where=allowed))[1]
    cost = np.ldexp(cost, stretch)
    # To avoid one forbidden pair a plan changes along a cycle, min(n, m) allowed pairs at most.
    cost[~allowed] = 2.0**_COST_EXPONENT * (min(M.shape) + 1)
    mass = -math.frexp(float(a.sum()))[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the outcome is read from the log instead
        arguments = np.ldexp(a, mass), np.ldexp(b, mass), cost
        plan, log = call_foreign(network_simplex, *arguments, numItermax=_MAX_PIVOTS, log=True)
    if log["warning"] is not None:
        raise RuntimeError(
            f"The network simplex method found no optimum of M ({M.shape[0]} x {M.shape[1]}): "
            f"{log['warning']}"
        )
    return np.ldexp(plan, -mass), np.ldexp(log["u"], -shift - stretch)


def _settle(
    P: FloatArray,
    M: FloatArray,
    a: FloatArray,
    b: FloatArray,
    u: FloatArray,
    allowed: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Correct the last digits of a vertex and its row potentials, else round the plan.

    The support of a vertex is a forest: it determines the plan, leaf by leaf, and within a tree the
    potentials up to a constant, without the errors that add up over many pivots. Rounding would
    do for the marginals, but fill the zeros of the plan with dust.
    """
    n = a.shape[0]
    sources, targets = np.nonzero(P)
    partners: list[list[int]] = [[] for _ in range(n + b.shape[0])]
    for i, j in zip(sources.tolist(), (targets + n).tolist(), strict=True):
        partners[i].append(j)
        partners[j].append(i)
    plan = _peel(partners, a, b)
    if plan is None:
        return round_plan(P, a, b, allowed), u
    u = _climb(partners, M, u)
    if marginal_error(plan, a, b) * a.sum() > 2.0 * rounding_limit(a, b):
        plan = round_plan(plan, a, b, allowed)
    return plan, u


def _peel(partners: list[list[int]], a: FloatArray, b: FloatArray) -> FloatArray | None:
    """The only plan on a forest; None if the graph has a cycle.

    A leaf has one partner, which gets all that the leaf still has. The sums are correctly rounded,
    so errors do not add up along a branch. The lightest leaf comes first: what totals of a and b
    differ by stays with the heaviest point of a tree.
    """
    n = a.shape[0]
    left = [set(others) for others in partners]
    terms = [[weight] for weight in (*a.tolist(), *b.tolist())]
    plan = np.zeros((n, b.shape[0]))
    weight = [*a.tolist(), *b.tolist()]
    leaves = [(weight[node], node) for node, others in enumerate(left) if len(others) == 1]
    heapq.heapify(leaves)
    while leaves:
        _, leaf = heapq.heappop(leaves)
        if not left[leaf]:
            continue
        other = left[leaf].pop()
        left[other].discard(leaf)
        amount = max(math.fsum(terms[leaf]), 0.0)
        terms[other].append(-amount)
        plan[min(leaf, other), max(leaf, other) - n] = amount
        if len(left[other]) == 1:
            heapq.heappush(leaves, (weight[other], other))
    return None if any(left) else plan


def _climb(partners: list[list[int]], M: FloatArray, u: FloatArray) -> FloatArray:
    """Row potentials with u_i + v_j = M_ij along a forest; the given u fixes one row per tree."""
    n = u.shape[0]
    potential: dict[int, np.longdouble] = {}
    for root in range(n):
        if root in potential or not partners[root]:
            continue
        potential[root] = np.longdouble(u[root])
        branch = [root]
        while branch:
            node = branch.pop()
            for other in partners[node]:
                if other not in potential:
                    cost = M[min(node, other), max(node, other) - n]
                    potential[other] = cost - potential[node]
                    branch.append(other)
    return np.array([float(potential.get(i, u[i])) for i in range(n)])
