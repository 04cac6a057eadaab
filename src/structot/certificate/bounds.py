"""Lower bounds from points of the base polytope.

Notation. K in B(F) is a cost the adversary may play, (u, v) potentials with u ⊕ v <= K. Then
a·u + b·v <= min_P <P, K> <= min_P f(P). With entropy of weight reg in the metric d the bound is
a·u + b·v - reg Σ d r (exp((u ⊕ v - K)/(reg d)) - 1), for any u, v. For relaxed marginals the dual
terms D_a°(u) + D_b°(v) of `marginals/` stand for a·u + b·v: D°(u) <= D(x) + x·u for every x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structot._typing import Array
from structot.certificate.rule import bound_rounding, safe_sum
from structot.marginals import relaxed_emd
from structot.problem import Problem
from structot.submodular.base import inner
from structot.transport import emd

# exp of minus this is nothing beside 1 in doubles.
_LOW = 50.0


def transport_bound(problem: Problem, u: Array, v: Array, made_of: float = 0.0) -> float:
    """D_a°(u) + D_b°(v), a·u + b·v for hard marginals, safe; ``made_of`` as below.

    What potentials with u ⊕ v in P(F) prove.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> problem = Problem.of([[1.0, 3.0], [3.0, 1.0]])
    >>> 1.0 - 1e-12 < transport_bound(problem, np.ones(2), np.zeros(2)) <= 1.0
    True
    """
    terms, size = dual_terms(problem, u, v)
    return safe_sum(terms, problem.M.size, size + made_of)


def dual_terms(problem: Problem, u: Array, v: Array) -> tuple[Array, float]:
    """The terms of D_a°(u) + D_b°(v), and the size of what they are made of.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> dual_terms(Problem.of([[1.0, 3.0], [3.0, 1.0]]), np.ones(2), np.zeros(2))[1]
    1.0
    """
    terms = problem.marginals.dual(u, v)
    size = float(np.abs(terms).sum())
    return terms, size if problem.marginals.hard else size + potential_size(problem, u, v)


def potential_size(problem: Problem, p: Array, q: Array) -> float:
    """a·|p| + b·|q| = <P, |p| ⊕ |q|> for every plan P; for relaxed marginals about that.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> problem = Problem.of([[1.0, 3.0], [3.0, 1.0]])
    >>> potential_size(problem, np.array([1.0, -1.0]), np.zeros(2))
    1.0
    """
    return problem.marginals.size(p, q)


def infeasibility(problem: Problem, P: Array, u: Array, v: Array) -> float:
    """2 (|P1 - a|·|u| + |Pᵀ1 - b|·|v|): how much less P may cost for missing its marginals.

    A plan is in U(a, b) to a few eps of the total mass; at a point of little mass and high cost
    that can be more than the rounding error of the value. Twice, since other potentials than these
    may be the true ones.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> problem = Problem.of([[1.0, 3.0], [3.0, 1.0]])
    >>> infeasibility(problem, np.full((2, 2), 0.25), np.ones(2), np.ones(2))
    0.0
    """
    rows, columns = problem.marginals.missed(P)
    return 2.0 * float(np.abs(rows) @ np.abs(u) + np.abs(columns) @ np.abs(v))


class Dual(NamedTuple):
    """A proof of a lower bound: potentials, the cost in B(F) above them, and what they prove.

    K may be None when u ⊕ v is known to lie in P(F); `complete` supplies it.

    Examples
    --------
    >>> from structot.problem import Problem
    >>> dual = zero_dual(Problem.of([[1.0, 2.0]], None, [0.5, 0.5]))
    >>> dual.bound
    0.0
    """

    u: Array
    v: Array
    K: Array | None
    bound: float


def complete(problem: Problem, dual: Dual) -> Dual:
    """The proof with its K: projecting a point of P(F) onto B(F) raises it and never lowers it.

    Examples
    --------
    >>> from structot.problem import Problem
    >>> problem = Problem.of([[1.0, 2.0]], None, [0.5, 0.5])
    >>> complete(problem, zero_dual(problem)).K
    array([[1., 2.]])
    """
    if dual.K is not None:
        return dual
    u, v = dual.u, dual.v
    if problem.monotone and not (u.any() or v.any()):  # every vertex is above 0: no projection
        K = problem.function.greedy(problem.independent)
    else:
        K = problem.function.project_potentials(u, v)
    raised = dual_from_cost(problem, K, u, potential_size(problem, u, v))
    if raised.bound < dual.bound:  # by rounding
        raised = dual._replace(K=np.maximum(K, np.add.outer(u, v)))
    return _as_entropic(problem, raised)


def _as_entropic(problem: Problem, dual: Dual) -> Dual:
    """With entropy u ⊕ v <= K proves more: every exponential is at most 1."""
    if problem.reg == 0:
        return dual
    assert dual.K is not None
    return dual._replace(bound=entropic_bound(problem, dual.u, dual.v, dual.K))


def lowered(K: Array, size: Array | float) -> Array:
    """K less its rounding error, pair by pair; ``size`` is that of what it was computed from.

    What a solver computes as a point of B(F) may be above it by rounding. How much that raises the
    bound depends on the plan that is best for K, not on one that is known: only a K that is low
    enough on every pair is safe.

    Examples
    --------
    >>> import numpy as np
    >>> K, size = np.array([[0.5, 0.25]]), np.array([[1e12, 0.0]])  # 0.5 was left of 1e12
    >>> lowered(K, size)
    array([[0.49806663, 0.25      ]])
    """
    return K - bound_rounding(K.size) * np.where(np.isfinite(K), size, 0.0)


def dual_from_cost(
    problem: Problem, K: Array, u: Array | None = None, made_of: float = 0.0
) -> Dual:
    """The bound of a cost K in B(F) by c-transform, from row potentials u (0 by default).

    ``made_of`` is the size, as <Q, ·> at every plan Q, of what K was computed from, if that is more
    than the potentials: its rounding error is relative to it. Where it differs between plans K must
    be `lowered` instead.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> M = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> round(dual_from_cost(Problem.of(M), M).bound, 9)
    1.0
    """
    start = np.zeros(problem.shape[0]) if u is None else u
    u, v = problem.marginals.fitted(K, start)
    bound = transport_bound(problem, u, v, made_of)
    if bound < 0.0 and K.min() >= 0.0:
        return Dual(np.zeros_like(u), np.zeros_like(v), K, 0.0)
    return Dual(u, v, K, bound)


def dual_from_potentials(problem: Problem, p: Array, q: Array) -> Dual:
    """The bound of any potentials: project p ⊕ q onto B(F), then c-transform.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> problem = Problem.of([[1.0, 3.0], [3.0, 1.0]])
    >>> round(dual_from_potentials(problem, np.array([0.5, 0.0]), np.zeros(2)).bound, 9)
    1.0
    """
    K = problem.function.project_potentials(p, q)
    return dual_from_cost(problem, K, p, potential_size(problem, p, q))


def dual_from_tariffs(problem: Problem, alpha: Array, beta: Array, u: Array) -> Dual:
    """The bound of tariffs on lanes, made smaller where a route is paid more than its price.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> from structot.structures import Routes
    >>> M = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> problem = Problem.of(M, structure=Routes([0, 1], [0, 1]))
    >>> free = np.zeros((2, 2))  # no tariffs: the bound of plain transport
    >>> round(dual_from_tariffs(problem, free, free, np.zeros(2)).bound, 9)
    1.0
    """
    lanes, linear = problem.lanes, problem.linear
    assert lanes is not None
    assert linear is not None
    K = lanes.surcharge(*lanes.within_budget(alpha, beta))
    K += linear
    return dual_from_cost(problem, K, u)


def dual_by_exact_transport(problem: Problem, K: Array) -> Dual:
    """The best bound of a cost K in B(F): exact transport with it. The expensive last resort.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> M = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> round(dual_by_exact_transport(Problem.of(M), M).bound, 9)
    1.0
    """
    try:
        u, v = relaxed_emd(K, problem.marginals).potentials
    except RuntimeError:  # the network simplex gave up
        return dual_from_cost(problem, K)
    if problem.marginals.hard:
        return Dual(u, v, K, transport_bound(problem, u, v))
    return dual_from_cost(problem, K, u)


def first_answer(problem: Problem) -> tuple[Array, Dual]:
    """The independent plan, and what the vertex of B(F) that is worst for it proves.

    An answer to any problem, whatever becomes of the solver.

    Examples
    --------
    >>> from structot.problem import Problem
    >>> plan, dual = first_answer(Problem.of([[1.0, 3.0], [3.0, 1.0]]))
    >>> plan
    array([[0.25, 0.25],
           [0.25, 0.25]])
    >>> dual.bound <= 2.0
    True
    """
    P = problem.feasible(problem.independent)
    K = problem.function.greedy(P)
    if problem.function.is_convex:
        offset = (problem.function.extension(P) - inner(P, K)) / problem.total
        K = K + offset
    dual = dual_from_cost(problem, K)
    if problem.marginals.mass == 0.0:
        # Nothing is moved, and every potential proves 0: low ones make the exponentials vanish.
        dual = dual._replace(u=dual.u - _LOW * problem.reg * float(np.max(problem.metric)))
    return P, _as_entropic(problem, dual)


def zero_dual(problem: Problem) -> Dual | None:
    """Zero potentials, which prove 0 for a monotone F; None for others.

    Examples
    --------
    >>> from structot.problem import Problem
    >>> zero_dual(Problem.of([[1.0, 3.0], [3.0, 1.0]])).bound
    0.0
    """
    if not problem.monotone:
        return None
    return Dual(np.zeros(problem.shape[0]), np.zeros(problem.shape[1]), None, 0.0)


def entropic_bound(problem: Problem, u: Array, v: Array, K: Array) -> float:
    """What (u, v, K) prove for reg > 0: the dual function of entropic transport with cost K.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.problem import Problem
    >>> M = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> problem = Problem.of(M, reg=1.0)
    >>> entropic_bound(problem, np.zeros(2), np.ones(2), M) > 0.0
    True
    """
    loss, size = entropic_loss(problem, u, v, K)
    terms, made_of = dual_terms(problem, u, v)
    losses = problem.reg * loss
    size += made_of + float(np.abs(losses).sum())
    return safe_sum(np.concatenate([terms, -losses]), problem.M.size, size)


def entropic_loss(problem: Problem, u: Array, v: Array, K: Array) -> tuple[Array, float]:
    """The terms d r (exp(x / (reg d)) - 1), x = u ⊕ v - K, and the size of what x is made of."""
    d, reg, r = problem.metric, problem.reg, problem.independent
    inside = r > 0.0
    if problem.function.allowed is not None:
        inside &= problem.function.allowed
    x = np.add.outer(u, v)[inside] - K[inside]
    size = np.add.outer(np.abs(u), np.abs(v))[inside] + np.abs(K[inside])
    rate = reg * np.broadcast_to(d, K.shape)[inside]
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.expm1(x / rate)
        lost = r[inside] * growth * rate / reg
        made_of = float(np.sum(r[inside] * (1.0 + growth) * size))
    return lost, made_of


def saddle_gap(problem: Problem, P: Array, K: Array) -> float:
    """max_{K' in B(F)} <P, K'> - min_{P' in U(a,b)} <P', K> for P in U(a,b), K in B(F); never < 0.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem.of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> saddle_gap(problem, np.full((2, 2), 0.25), problem.M)
    0.5
    """
    return problem.function.extension(P) - emd(K, problem.a, problem.b).value
