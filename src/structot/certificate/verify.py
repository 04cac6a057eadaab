"""A result checked from scratch, by a path of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from structot._typing import Array
from structot.certificate.bounds import dual_terms, entropic_loss, infeasibility, potential_size
from structot.certificate.rule import EPS, ROUNDING, bound_rounding, relative_gap
from structot.marginals import KL, TV
from structot.problem import Problem
from structot.structures.base import Structure
from structot.submodular.base import inner
from structot.submodular.lanes import Lanes
from structot.transport import emd, round_plan

if TYPE_CHECKING:
    from structot.result import Result

# A violation of K <= F that is this small beside F itself is rounding.
_RELATIVE = 1e-11


@dataclass(frozen=True)
class Verification:
    """What `verify` found; every error is relative, rounding makes each of them about 1e-15.

    ``marginals``: of the plan; ``value``: claimed against recomputed; ``polytope``: how far the
    worst cost is above F, relative to the sum of its entries (for a `ConvexCost`: how far it rises
    above f at the plans that were tried, relative to the value); ``potentials``: how far u ⊕ v
    rises above it; ``bound``: by how much more was claimed than potentials and worst cost prove;
    ``harm``: by how much a worst cost above F can have raised the bound, at most; ``claim``: how
    much smaller than it is the gap was said to be; ``gap``: the recomputed one; ``precision``:
    of the arrays of the result. Errors are relative to the value after its rounding error.

    Examples
    --------
    >>> import structot as sot
    >>> checked = sot.solve([[1.0, 2.0], [3.0, 1.0]]).verify()
    >>> checked.holds(), checked.marginals < 1e-12
    (True, True)
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
    unbalanced: object = None,
    unbalanced_type: str = "KL",
    mass: float | None = None,
) -> Verification:
    """Check a result from scratch: P in U(a,b), value = objective(P), K in B(F), u ⊕ v <= K, bound.

    Where marginals are relaxed, what is left of P in U(a,b) is checked, and their price.

    Nothing of the solver is used: the structure is bound anew, the sums are made by another path
    (correctly rounded, the entropy in extended precision), and whether the worst cost is below F on
    every set of pairs is decided by submodular minimisation: for generic functions within limits of
    effort, where a violation found is one and none found is no proof. With `Routes` the worst cost
    must be the ground cost and tariffs: the cheapest ones are found by exact transport, and
    compared with their budgets. A `ConvexCost` has no polytope: what can be checked is
    <Q, K> <= f(Q) at some plans Q: the plan itself, the one that is cheapest for K, and random
    ones. That finds wrong bounds, and proves none.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 2.0], [3.0, 1.0]]
    >>> verify(M, None, None, None, sot.solve(M)).holds()
    True
    """
    relaxed = {"unbalanced": unbalanced, "unbalanced_type": unbalanced_type, "mass": mass}
    problem = Problem.of(M, a, b, structure=structure, reg=reg, **relaxed)  # type: ignore[arg-type]
    P = np.asarray(result.plan, float)
    u, v = (np.asarray(x, float) for x in result.potentials)
    u, v = problem.marginals.clip(u, v)  # rounding to float32 may leave the domain
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
    # What the solver has kept back of what its potentials prove makes up for errors of K; what is
    # within the rounding error of the value, that of a value of 0 included, says nothing.
    kept = max(bound - result.lower_bound, 0.0)
    outside, harm = _outside(problem, P, u, v, K, abs(value), kept + rounding)
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
    rests = problem.marginals.missed(P)
    worst = sum(float(np.abs(rest).sum()) for rest in rests) / problem.total
    for rest, mass in zip(rests, (problem.a, problem.b), strict=True):
        lost = np.maximum(np.abs(rest) - 4.0 * EPS * problem.total, 0.0)
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
    price, price_size = _price_again(problem, P)
    value, size = value + price, size + price_size
    if problem.reg == 0:
        return value, ROUNDING * size
    inside = problem.independent > 0
    if problem.function.allowed is not None:
        inside &= problem.function.allowed
    d = np.broadcast_to(problem.metric, P.shape)[inside]
    r = np.multiply.outer(problem.a.astype(np.longdouble), problem.b) / problem.total
    r, x = r[inside], P[inside]
    entropy = math.fsum((d * _divergence(x, r)).astype(float).tolist())
    # A solver knows r, a product, to rounding only: with P = r that is all there is.
    change = float(np.sum(d * (np.abs(x - r) + EPS * r)))
    return value + problem.reg * entropy, ROUNDING * (size + problem.reg * (entropy + change))


def _divergence(x: Array, r: Array) -> Array:
    """x log(x / r) - x + r for r > 0 in extended precision, entry by entry."""
    t = (x - r) / r
    near = np.abs(t) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(near, np.log1p(t), np.log(np.where(x > 0, x, 1.0) / r))
    terms = x * log - (x - r)
    # In extended precision the last digits of log1p are lost only where the term is t²/2 to them.
    terms = np.where(np.abs(t) < 1e-6, r * t * t * (0.5 - t / 6), terms)
    terms[x <= 0] = r[x <= 0]
    return terms


def _price_again(problem: Problem, P: Array) -> tuple[float, float]:
    """What the marginals cost, by their definition, and the size of what that is made of."""
    price = size = 0.0
    for side, lines in zip(problem.marginals.sides, (P, P.T), strict=True):
        x, a = np.array([math.fsum(line) for line in lines.tolist()]), side.weights
        if isinstance(side, TV):
            price += side.tau * math.fsum(np.abs(x - a).tolist())
        elif isinstance(side, KL):
            some = a > 0
            terms = _divergence(x[some].astype(np.longdouble), a[some].astype(np.longdouble))
            price += side.tau * math.fsum(terms.astype(float).tolist())
            price += math.inf if (x[~some] > 0).any() else 0.0
        size += side.penalty(x)[1]
    return price, size


def _bound_again(problem: Problem, u: Array, v: Array, K: Array) -> tuple[float, float]:
    """The bound of potentials and worst cost by correctly rounded sums, and its rounding error."""
    terms, size = dual_terms(problem, u, v)
    if problem.reg > 0:
        loss, made_of = entropic_loss(problem, u, v, K)
        terms = np.concatenate([terms, -problem.reg * loss])
        size += float(np.abs(problem.reg * loss).sum()) + made_of
    if not np.isfinite(size):
        return -math.inf, 0.0
    return math.fsum(terms.tolist()), 2.0 * bound_rounding(problem.M.size) * size


def _outside(
    problem: Problem, P: Array, u: Array, v: Array, K: Array, value: float, kept: float
) -> tuple[float, float]:
    """How far K is above F, relative to its size, and what that can do to the bound.

    K(A) <= F(A) + s for all sets A makes <Q, K> <= f(Q) + s · max Q for every plan Q; K(all) may be
    less than F(all), for solvers lower K by its rounding error. With costs of very different sizes
    K may be wrong by more than the value where nothing depends on it: then u ⊕ v itself, which is
    all that the bound needs, is tested as well.
    """
    if problem.function.is_convex:
        rise = _rise(problem, K, P)
        return (rise / value if value > 0 else math.inf) if rise > 0 else 0.0, 0.0
    if problem.lanes is not None:
        return _overcharged(problem, problem.lanes, K, value, kept)
    F, finite = problem.function, np.isfinite(K)
    excess = F.above(K)
    # Beside a vertex: a K near 0 is none the less as exact as F itself.
    size = max(float(np.abs(x[finite]).sum()) for x in (K, F.greedy(P)))
    largest = min(side.largest(value) for side in problem.marginals.sides)
    limit = bound_rounding(K.size) * (inner(P, np.abs(K)) + potential_size(problem, u, v)) + kept
    harm = excess * largest - limit
    if harm > 1e-12 * value:
        # With entropy K itself stands in the bound. Pairs that can carry nothing do not matter:
        # kept low enough they are in no set that is tested.
        Z = np.where(finite, np.add.outer(u, v) if problem.reg == 0 else K, 0.0)
        low = 0.0 if problem.monotone else -4.0 * float(np.abs(K[finite]).max(initial=0.0))
        Z[problem.independent == 0.0] = low
        harm = min(harm, -F.minimize(-Z).value * largest - limit)
        # Z <= (1 + s) F makes the bound 1 + s times too large at most.
        if harm > 0.0 and F.scaled(1.0 + _RELATIVE).minimize(-Z).value >= 0.0:
            harm = min(harm, _RELATIVE * value)
    outside = excess / size if size > 0 else 0.0 if excess == 0.0 else math.inf
    return outside, 0.0 if harm <= 0.0 else harm / value if value > 0 else math.inf


def _overcharged(
    problem: Problem, lanes: Lanes, K: Array, value: float, kept: float
) -> tuple[float, float]:
    """By how much the cheapest tariffs above K - M exceed their budgets, and what that can do.

    Relative to all prices. A plan pays for a route in proportion to its share, at most 1: budgets
    exceeded by s_kl raise the bound by Σ s_kl at most.
    """
    linear = problem.function.linear
    assert linear is not None
    finite = np.isfinite(linear)
    surcharge = np.where(finite, K - np.where(finite, linear, 0.0), 0.0)
    if (np.isinf(K) & finite).any() or np.isnan(surcharge).any():
        return math.inf, math.inf
    paid = lanes.paid(*lanes.cheapest_tariffs(surcharge))
    # The surcharge is a difference of costs, known to their rounding error.
    largest = float(np.abs(K[finite]).max(initial=0.0)) * problem.total
    excess = float(np.maximum(paid - lanes.price - ROUNDING * largest, 0.0).sum())
    size = float(lanes.price.sum())
    harm = excess - kept
    return excess / size, 0.0 if harm <= 0.0 else harm / value if value > 0 else math.inf


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
