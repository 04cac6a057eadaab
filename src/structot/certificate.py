"""Proofs: upper bounds from feasible plans, lower bounds from points of the base polytope.

Notation. K in B(F) is a cost the adversary may play, (u, v) potentials with u ⊕ v <= K. Then
a·u + b·v <= min_P <P, K> <= min_P f(P). With entropy of weight reg in the metric d the bound is
a·u + b·v - reg Σ d r (exp((u ⊕ v - K)/(reg d)) - 1), for any u, v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structot.problem import Problem
from structot.result import Result
from structot.structures.base import Structure
from structot.structures.convex import has_convex
from structot.submodular.base import inner
from structot.transport import c_transform, emd, marginal_error, round_plan

Array = np.ndarray


class Dual(NamedTuple):
    """A proof of a lower bound: potentials, the cost in B(F) above them, and what they prove.

    K may be None when u ⊕ v is known to lie in P(F); `complete` supplies it.
    """

    u: Array
    v: Array
    K: Array | None
    bound: float


def complete(problem: Problem, dual: Dual) -> Dual:
    """The proof with its K: projecting a point of P(F) onto B(F) raises it and never lowers it."""
    if dual.K is not None:
        return dual
    K = problem.function.project(np.add.outer(dual.u, dual.v), "cost")
    return dual_from_cost(problem, K, dual.u)


def dual_from_cost(problem: Problem, K: Array, u: Array | None = None) -> Dual:
    """The bound of a cost K in B(F) by c-transform, from row potentials u (0 by default)."""
    start = np.zeros(problem.shape[0]) if u is None else u
    u, v = c_transform(K, start)
    return Dual(u, v, K, float(problem.a @ u + problem.b @ v))


def dual_from_potentials(problem: Problem, p: Array, q: Array) -> Dual:
    """The bound of any potentials: project p ⊕ q onto B(F), then c-transform."""
    K = problem.function.project(np.add.outer(p, q), "cost")
    return dual_from_cost(problem, K, p)


def dual_by_exact_transport(problem: Problem, K: Array) -> Dual:
    """The best bound of a cost K in B(F): exact transport with it. The expensive last resort."""
    exact = emd(K, problem.a, problem.b)
    u, v = exact.potentials
    return Dual(u, v, K, float(problem.a @ u + problem.b @ v))


def dual_by_shift(problem: Problem, p: Array, q: Array, max_steps: int = 60) -> Dual:
    """The bound of p ⊕ q - s, s the smallest shift into the polyhedron {K(A) <= F(A) for all A}.

    Dinkelbach: raise s by the excess per edge of the most violated set until none is violated.
    """
    F = problem.function
    shift = 0.0
    for _ in range(max_steps):
        Z = np.add.outer(p - shift, q)
        worst = F.minimize(-Z)
        if worst.value >= 0 or not worst.mask.any():
            break
        shift -= worst.value / worst.mask.sum()
    K = F.project(np.add.outer(p - shift, q), "cost")
    return dual_from_cost(problem, K, p - shift)


def entropic_bound(problem: Problem, u: Array, v: Array, K: Array) -> float:
    """What (u, v, K) prove for reg > 0: the dual function of entropic transport with cost K."""
    d = problem.function.metric
    with np.errstate(invalid="ignore", over="ignore"):
        growth = np.expm1((np.add.outer(u, v) - K) / (problem.reg * d))
    allowed = problem.function.allowed
    lost = np.sum(d * problem.independent * growth, where=True if allowed is None else allowed)
    return float(problem.a @ u + problem.b @ v - problem.reg * lost)


def saddle_gap(problem: Problem, P: Array, K: Array) -> float:
    """max_{K' in B(F)} <P, K'> - min_{P' in U(a,b)} <P', K> for P in U(a,b), K in B(F); never < 0.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem.of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> saddle_gap(problem, np.full((2, 2), 0.25), problem.M)
    0.5
    """
    return problem.function.extension(P) - dual_by_exact_transport(problem, K).bound


@dataclass(frozen=True)
class Verification:
    """What `verify` found; every error is relative, rounding makes each of them about 1e-15.

    ``marginals``: of the plan; ``value``: claimed against recomputed; ``polytope``: how far the
    worst cost is outside B(F), relative to the sum of its entries (for a `ConvexCost`: how far it
    rises above f at the plans that were tried, relative to the value); ``potentials``: how far
    u ⊕ v rises above it; ``bound``: claimed against recomputed from potentials and worst cost;
    ``precision``: of the arrays of the result.
    """

    marginals: float
    value: float
    polytope: float
    potentials: float
    bound: float
    gap: float
    precision: float

    def holds(self, tol: float | None = None) -> bool:
        """Whether the proof is right up to this relative error.

        By default 1e-9, or 1e-5 for float32 arrays, which were rounded after the proof was made.
        """
        tol = max(1e-9, 100.0 * self.precision) if tol is None else tol
        errors = (self.marginals, self.value, self.polytope, self.potentials, self.bound)
        return all(error <= tol for error in errors)


def verify(
    M: object,
    a: object | None,
    b: object | None,
    structure: Structure | None,
    result: Result,
    *,
    reg: float = 0.0,
) -> Verification:
    """Check a result from scratch: P in U(a,b), value = objective(P), K in B(F), u ⊕ v <= K, bound.

    Nothing of the solver is used: the structure is bound anew, and membership of the worst cost in
    B(F) is decided by submodular minimisation: for generic functions within limits of effort, where
    a violation found is one and none found is no proof. A `ConvexCost` has no polytope: what can be
    checked is <Q, K> <= f(Q) at some plans Q: the plan itself, the one that is cheapest for K, and
    random ones. That finds wrong bounds, and proves none.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 2.0], [3.0, 1.0]]
    >>> verify(M, None, None, None, sot.solve(M)).holds()
    True
    """
    problem = Problem.of(M, a, b, structure=structure, reg=reg)
    P = np.asarray(result.plan, float)
    u, v = (np.asarray(x, float) for x in result.potentials)
    K = np.asarray(result.worst_cost, float)
    finite = np.isfinite(K)
    value = problem.objective(P)
    scale = max(abs(value), problem.scale)
    size = max(float(np.abs(K[finite]).sum()), scale / problem.total)
    if problem.reg > 0:
        rise, bound = 0.0, entropic_bound(problem, u, v, K)
    else:
        rise = float(np.max(np.add.outer(u, v)[finite] - K[finite], initial=0.0))
        bound = float(problem.a @ u + problem.b @ v)
    if has_convex(problem.layers):
        outside = _rise(problem, K, P) / scale
    else:
        outside = max(problem.function.excess(K), 0.0) / size
    return Verification(
        marginals=marginal_error(P, problem.a, problem.b),
        value=abs(value - result.value) / scale,
        polytope=outside,
        potentials=rise * problem.total / scale,
        bound=abs(bound - result.lower_bound) / scale,
        gap=problem.relative_gap(value, bound),
        precision=float(np.finfo(np.asarray(result.plan).dtype).eps),
    )


def _rise(problem: Problem, K: Array, P: Array, tries: int = 20, seed: int = 0) -> float:
    """The largest <Q, K> - f(Q) at the plan, the cheapest plan for K, and random plans; or 0."""
    rng = np.random.default_rng(seed)
    allowed = problem.function.allowed
    plans = [P, problem.independent, emd(K, problem.a, problem.b).plan]
    for k in range(tries):
        # Powers make some of them even and some of them nearly vertices of U(a, b).
        Q = rng.random(problem.shape) ** (1 + k)
        plans.append(round_plan(Q * problem.total / Q.sum(), problem.a, problem.b, allowed=allowed))
    if allowed is not None:
        plans[1] = round_plan(plans[1], problem.a, problem.b, allowed=allowed)
    return max(0.0, *(inner(Q, K) - problem.function.extension(Q) for Q in plans))


def linear_value(problem: Problem, P: Array) -> float:
    """<P, M>."""
    return inner(P, problem.M)
