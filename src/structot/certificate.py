"""Proofs: upper bounds from feasible plans, lower bounds from points of the base polytope.

Notation. K in B(F) is a cost the adversary may play, (u, v) potentials with u ⊕ v <= K. Then
a·u + b·v <= min_P <P, K> <= min_P f(P). With entropy of weight reg in the metric d the bound is
a·u + b·v - reg Σ d r (exp((u ⊕ v - K)/(reg d)) - 1), for any u, v.

What counts as zero is one rule. A bound is made safe: the rounding error of evaluating it is
subtracted. A value is known to ``atol``, its own rounding error, at most a tenth of what ``tol``
allows unless the value is no more than that error itself. Converged means
value - bound <= tol |value| + atol; the public gap is (value - bound) / |value|, nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structot.problem import Problem
from structot.result import Result
from structot.structures.base import Structure
from structot.submodular.base import inner
from structot.transport import c_transform, emd, marginal_error, residuals, round_plan

Array = np.ndarray

_EPS = float(np.finfo(float).eps)
# The rounding error of a value, relative to the sum of the absolute terms it is made of; the sums
# themselves carry their errors along.
ROUNDING = 16.0 * _EPS
# A violation of K <= F that is this small beside F itself is rounding.
_RELATIVE = 1e-11
# The largest part of tol · |value| that rounding may take.
_SHARE_OF_TOL = 0.1


def relative_gap(value: float, lower_bound: float) -> float:
    """max(0, value - lower_bound) / |value|, where 0/0 is 0.

    Examples
    --------
    >>> relative_gap(2.0, 1.5), relative_gap(0.0, 0.0), relative_gap(0.0, -1.0)
    (0.25, 0.0, inf)
    """
    missing = value - lower_bound
    if missing <= 0.0:
        return 0.0
    return missing / abs(value) if value != 0.0 else math.inf


def absolute_tolerance(
    value: float, magnitude: float, tol: float, extra: float = 0.0, given: float | None = None
) -> float:
    """What counts as nothing beside this value: its rounding error, within limits, or ``given``.

    ``extra`` is an error beside that of the sum over ``magnitude``; it counts up to the limit only.

    Examples
    --------
    >>> absolute_tolerance(1.0, 1.0, 1e-4) == ROUNDING
    True
    >>> absolute_tolerance(1.0, 1.0, 1e-4, extra=1e-3)
    1e-05
    """
    rounding = ROUNDING * magnitude
    if abs(value) > rounding:
        rounding = min(rounding + extra, _SHARE_OF_TOL * tol * abs(value))
    return rounding if given is None else max(rounding, given)


def is_converged(value: float, lower_bound: float, tol: float, atol: float) -> bool:
    """Whether value - lower_bound <= tol |value| + atol."""
    return bool(value - lower_bound <= tol * abs(value) + atol)


def safe_sum(terms: Array, pairs: int, size: float | None = None) -> float:
    """Σ terms, less its rounding error: a bound that arithmetic cannot have raised.

    The sum itself is correctly rounded. What it is made of is not: a cost K is in B(F) up to the
    rounding of sums over the ``pairs`` of a block, which grows like their root. ``size`` is the sum
    of the absolute values of all that the terms were made of, by default their own.
    """
    size = float(np.abs(terms).sum()) if size is None else size
    if not math.isfinite(size):
        return -math.inf
    return math.fsum(terms.tolist()) - _bound_rounding(pairs) * size


def _bound_rounding(pairs: int) -> float:
    return (8.0 + 0.5 * math.sqrt(pairs)) * _EPS


def transport_bound(problem: Problem, u: Array, v: Array, made_of: float = 0.0) -> float:
    """a·u + b·v, safe: what potentials with u ⊕ v in P(F) prove; ``made_of`` as below."""
    terms = np.concatenate([problem.a * u, problem.b * v])
    return safe_sum(terms, problem.M.size, float(np.abs(terms).sum()) + made_of)


def potential_size(problem: Problem, p: Array, q: Array) -> float:
    """a·|p| + b·|q| = <P, |p| ⊕ |q|> for every plan P."""
    return float(problem.a @ np.abs(p) + problem.b @ np.abs(q))


def infeasibility(problem: Problem, P: Array, u: Array, v: Array) -> float:
    """2 (|P1 - a|·|u| + |Pᵀ1 - b|·|v|): how much less P may cost for missing its marginals.

    A plan is in U(a, b) to a few eps of the total mass; at a point of little mass and high cost
    that can be more than the rounding error of the value. Twice, since other potentials than these
    may be the true ones.
    """
    rows, columns = residuals(P, problem.a, problem.b)
    return 2.0 * float(np.abs(rows) @ np.abs(u) + np.abs(columns) @ np.abs(v))


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
    Z = np.add.outer(dual.u, dual.v)
    if problem.monotone and not Z.any():  # every vertex is above 0, and costs no projection
        K = problem.function.greedy(problem.independent)
    else:
        K = problem.function.project(Z, "cost")
    raised = dual_from_cost(problem, K, dual.u, potential_size(problem, dual.u, dual.v))
    if raised.bound < dual.bound:  # by rounding
        raised = dual._replace(K=np.maximum(K, Z))
    return _as_entropic(problem, raised)


def _as_entropic(problem: Problem, dual: Dual) -> Dual:
    """With entropy u ⊕ v <= K proves more: every exponential is at most 1."""
    if problem.reg == 0:
        return dual
    assert dual.K is not None
    return dual._replace(bound=entropic_bound(problem, dual.u, dual.v, dual.K))


def dual_from_cost(
    problem: Problem, K: Array, u: Array | None = None, made_of: float = 0.0
) -> Dual:
    """The bound of a cost K in B(F) by c-transform, from row potentials u (0 by default).

    ``made_of`` is the size, as <P, ·> at a plan, of what K was computed from, if that is more than
    K itself: its rounding error is relative to it.
    """
    start = np.zeros(problem.shape[0]) if u is None else u
    u, v = c_transform(K, start)
    bound = transport_bound(problem, u, v, made_of)
    if bound < 0.0 and K.min() >= 0.0:
        return Dual(np.zeros_like(u), np.zeros_like(v), K, 0.0)
    return Dual(u, v, K, bound)


def dual_from_potentials(problem: Problem, p: Array, q: Array) -> Dual:
    """The bound of any potentials: project p ⊕ q onto B(F), then c-transform."""
    K = problem.function.project(np.add.outer(p, q), "cost")
    return dual_from_cost(problem, K, p, potential_size(problem, p, q))


def dual_by_exact_transport(problem: Problem, K: Array, made_of: float = 0.0) -> Dual:
    """The best bound of a cost K in B(F): exact transport with it. The expensive last resort."""
    try:
        u, v = emd(K, problem.a, problem.b).potentials
    except RuntimeError:  # the network simplex gave up
        return dual_from_cost(problem, K, None, made_of)
    return Dual(u, v, K, transport_bound(problem, u, v, made_of))


def first_answer(problem: Problem) -> tuple[Array, Dual]:
    """The independent plan, and what the vertex of B(F) that is worst for it proves.

    An answer to any problem, whatever becomes of the solver.
    """
    allowed = problem.function.allowed
    P = round_plan(problem.independent, problem.a, problem.b, allowed=allowed)
    K = problem.function.greedy(P)
    if problem.function.is_convex:
        offset = (problem.function.extension(P) - inner(P, K)) / problem.total
        K = K + offset
    return P, _as_entropic(problem, dual_from_cost(problem, K))


def zero_dual(problem: Problem) -> Dual | None:
    """Zero potentials, which prove 0 for a monotone F; None for others."""
    if not problem.monotone:
        return None
    return Dual(np.zeros(problem.shape[0]), np.zeros(problem.shape[1]), None, 0.0)


def entropic_bound(problem: Problem, u: Array, v: Array, K: Array) -> float:
    """What (u, v, K) prove for reg > 0: the dual function of entropic transport with cost K."""
    loss, size = _entropic_loss(problem, u, v, K)
    terms = np.concatenate([problem.a * u, problem.b * v, -problem.reg * loss])
    return safe_sum(terms, problem.M.size, float(np.abs(terms).sum()) + size)


def _entropic_loss(problem: Problem, u: Array, v: Array, K: Array) -> tuple[Array, float]:
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


@dataclass(frozen=True)
class Verification:
    """What `verify` found; every error is relative, rounding makes each of them about 1e-15.

    ``marginals``: of the plan; ``value``: claimed against recomputed; ``polytope``: how far the
    worst cost is outside B(F), relative to the sum of its entries (for a `ConvexCost`: how far it
    rises above f at the plans that were tried, relative to the value); ``potentials``: how far
    u ⊕ v rises above it; ``bound``: by how much more was claimed than potentials and worst cost
    prove;
    ``harm``: by how much a worst cost outside B(F) can have raised the bound, at most; ``claim``:
    how much smaller than it is the gap was said to be; ``gap``: the recomputed one; ``precision``:
    of the arrays of the result. Errors are relative to the value after its rounding error.
    """

    marginals: float
    value: float
    polytope: float
    potentials: float
    bound: float
    harm: float
    claim: float
    gap: float
    precision: float

    def holds(self, tol: float | None = None) -> bool:
        """Whether the proof is right up to this relative error.

        By default 1e-9, or 1e-5 for float32 arrays, which were rounded after the proof was made.
        """
        tol = max(1e-9, 100.0 * self.precision) if tol is None else tol
        errors = (
            *(self.marginals, self.value, self.polytope, self.potentials),
            *(self.bound, self.harm, self.claim),
        )
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

    Nothing of the solver is used: the structure is bound anew, the sums are made by another path
    (correctly rounded, the entropy in extended precision), and membership of the worst cost in
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
    precision = float(np.finfo(np.asarray(result.plan).dtype).eps)
    value, rounding = _value_again(problem, P)
    rounding += infeasibility(problem, P, u, v)
    bound, slack = _bound_again(problem, u, v, K)
    finite = np.isfinite(K)
    if problem.reg > 0:
        rise = 0.0
    else:
        above = np.add.outer(u, v)[finite] - K[finite]
        # Of every pair by itself: a large potential elsewhere excuses nothing.
        above -= ROUNDING * (np.add.outer(np.abs(u), np.abs(v))[finite] + np.abs(K[finite]))
        rise = float(above.max(initial=0.0)) * problem.total
    outside, harm = _outside(problem, P, u, v, K, abs(value))
    missing = value - bound - rounding - slack
    said = result.gap * abs(result.value) if math.isfinite(result.gap) else math.inf

    def relative(error: float) -> float:
        return 0.0 if error <= 0.0 else error / abs(value) if value != 0.0 else math.inf

    return Verification(
        marginals=_marginals(problem, P),
        value=relative(abs(value - result.value) - rounding),
        polytope=outside,
        potentials=relative(rise),
        bound=relative(result.lower_bound - bound - slack),
        harm=harm,
        claim=relative(missing - said),
        gap=relative_gap(value, bound),
        precision=precision,
    )


def _marginals(problem: Problem, P: Array) -> float:
    """The error of the marginals: of all relative to the total, and of each point to its own mass.

    Of a point up to a rounding error of the total, which every plan has somewhere.
    """
    worst = marginal_error(P, problem.a, problem.b)
    for rest, mass in zip(residuals(P, problem.a, problem.b), (problem.a, problem.b), strict=True):
        lost = np.maximum(np.abs(rest) - 4.0 * _EPS * problem.total, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(lost > 0.0, lost / mass, 0.0)
        worst = max(worst, float(own.max()))
    return worst


def _value_again(problem: Problem, P: Array) -> tuple[float, float]:
    """The objective at P by correctly rounded sums, and its rounding error."""
    used = P > 0
    if problem.function.is_convex:
        value, size = problem.function.extension(P), problem.function.magnitude(P)
    else:
        value = math.fsum((P[used] * problem.function.greedy(P)[used]).tolist())
        size = problem.function.magnitude(P)
    if problem.reg == 0:
        return value, ROUNDING * size
    inside = problem.independent > 0
    if problem.function.allowed is not None:
        inside &= problem.function.allowed
    d = np.broadcast_to(problem.metric, P.shape)[inside]
    r = np.multiply.outer(problem.a.astype(np.longdouble), problem.b) / problem.a.sum()
    r, x = r[inside], P[inside]
    t = (x - r) / r
    near = np.abs(t) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(near, np.log1p(t), np.log(np.where(x > 0, x, 1.0) / r))
    terms = d * (x * log - (x - r))
    # In extended precision the last digits of log1p are lost only where the term is t²/2 to them.
    terms = np.where(np.abs(t) < 1e-6, d * r * t * t * (0.5 - t / 6), terms)
    terms[x <= 0] = (d * r)[x <= 0]
    entropy = math.fsum(terms.astype(float).tolist())
    change = float(np.sum(d * np.abs(x - r)))
    return value + problem.reg * entropy, ROUNDING * (size + problem.reg * (entropy + change))


def _bound_again(problem: Problem, u: Array, v: Array, K: Array) -> tuple[float, float]:
    """The bound of potentials and worst cost by correctly rounded sums, and its rounding error."""
    terms = np.concatenate([problem.a * u, problem.b * v])
    size = float(np.abs(terms).sum())
    if problem.reg > 0:
        loss, made_of = _entropic_loss(problem, u, v, K)
        terms = np.concatenate([terms, -problem.reg * loss])
        size = float(np.abs(terms).sum()) + made_of
    return math.fsum(terms.tolist()), 2.0 * _bound_rounding(problem.M.size) * size


def _outside(
    problem: Problem, P: Array, u: Array, v: Array, K: Array, value: float
) -> tuple[float, float]:
    """How far K is outside B(F), relative to its size, and what that can do to the bound.

    K(A) <= F(A) + s for all sets A makes <Q, K> <= f(Q) + s · max Q for every plan Q. With costs of
    very different sizes K may be wrong by more than the value where nothing depends on it: then
    u ⊕ v itself, which is all that the bound needs, is tested as well.
    """
    if problem.function.is_convex:
        rise = _rise(problem, K, P)
        return (rise / value if value > 0 else math.inf) if rise > 0 else 0.0, 0.0
    F, finite = problem.function, np.isfinite(K)
    excess = max(F.excess(K), 0.0)
    size = float(np.abs(K[finite]).sum())
    largest = min(float(problem.a.max()), float(problem.b.max()))
    limit = _bound_rounding(K.size) * (inner(P, np.abs(K)) + potential_size(problem, u, v))
    harm = excess * largest - limit
    if harm > 1e-12 * value:
        # With entropy K itself stands in the bound.
        Z = np.where(finite, np.add.outer(u, v) if problem.reg == 0 else K, 0.0)
        harm = min(harm, -F.minimize(-Z).value * largest - limit)
        # Z <= (1 + s) F makes the bound 1 + s times too large at most.
        if harm > 0.0 and F.scaled(1.0 + _RELATIVE).minimize(-Z).value >= 0.0:
            harm = min(harm, _RELATIVE * value)
    outside = excess / size if size > 0 else 0.0 if excess == 0.0 else math.inf
    return outside, 0.0 if harm <= 0.0 else harm / value if value > 0 else math.inf


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
    rises = [0.0]
    for Q in plans:
        f = problem.function.extension(Q)
        rises.append(inner(Q, K) - f - ROUNDING * (inner(Q, np.abs(K)) + abs(f)))
    return max(rises)
