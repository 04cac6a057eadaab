"""Newton's method on the smooth dual of entropic structured transport.

    min_{P in U(a,b)}  f(P) + reg Σ d (P log(P/r) - P + r),      r = a bᵀ / T

Notation. φ(p, q) the dual function of `_entropic_dual`, H its negative Hessian, K in B(F) the worst
cost at (p, q). Small reg is reached by continuation: a larger reg is solved roughly first, and a
few sweeps of Sinkhorn's iteration with K fixed carry its multipliers over to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from structot._deadline import check_time
from structot._parallel import single_threaded_blas
from structot.blocks.function import Blocks
from structot.certificate import Dual
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.entropic.dual import Hessian, SmoothDual, smooth_dual
from structot.solvers.newton.start import Start
from structot.transport import c_transform, round_plan

Array = np.ndarray

# Up to this many unknowns H is factorised; beyond, conjugate gradients come first.
_DENSE = 600
# Beyond this many unknowns H is not formed even when conjugate gradients fail.
_DENSE_LAST = 5000
_CG_STEPS = 250
# Continuation starts at this fraction of the mean cost, earlier in a metric with small weights,
# where the exponentials are stiff; reg falls by the factor per stage.
_FIRST_REG = {True: 0.02, False: 0.5}  # uniform metric, other metric
_STAGE = 4.0
# A stage before the last ends when the marginals are right to this fraction of the mass.
_STAGE_ERROR = 0.05
_STAGE_STEPS = 40
# A plan and a proof are made when the marginal error has fallen by this factor since the last, or
# after this many steps.
_NEWS = 0.01
_NEWS_STEPS = 10
# So many proofs that close less than a hundredth of the gap each are the end.
_PATIENCE = 12
_SWEEPS = 20
_DAMPING = 1e-12
# A step this long needs no better direction; otherwise so many directions are tried.
_LONG = 0.3
_ROUNDS = 6
_FEW = 3


@dataclass(frozen=True)
class Entropic(Solver):
    """Newton's method on the smooth dual, for reg > 0 and at most one layer of disjoint blocks."""

    name: ClassVar[str] = "entropic"

    def objection(self, problem: Problem) -> str | None:
        if problem.reg == 0:
            return "it needs reg > 0; use method='auto'"
        layers = problem.layers
        if len(layers) > 1 or not all(isinstance(layer, Blocks) for layer in layers):
            return (
                "with reg > 0 it needs Modular, Groups or Coverage with disjoint groups, or the "
                "sum of Modular and one of the others"
            )
        return None

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        with single_threaded_blas(sum(problem.shape)):
            yield from entropic_steps(problem, start)


class Iterate(NamedTuple):
    """Multipliers, φ there, and the damping of the next Newton step."""

    p: Array
    q: Array
    phi: float
    damping: float = 1e-10


def entropic_steps(problem: Problem, start: Start) -> Iterator[Step | None]:
    """min_{P in U(a,b)} f(P) + reg Σ d (P log(P/r) - P + r): the iterations, one item each.

    The first item holds a plan and a bound whatever follows: the independent plan, and potentials
    below a point of B(F).

    Examples
    --------
    >>> import numpy as np
    >>> steps = entropic_steps(Problem.of(np.ones((2, 3)), reg=0.1), Start())
    >>> round(next(steps).value, 12)
    1.0
    """
    dual = smooth_dual(problem)
    K = dual.plain_cost() if start.plan is None else problem.function.greedy(start.plan)
    dual.p, dual.q = c_transform(K, np.zeros(problem.shape[0]))
    dual.reach = float(np.abs(K).max(where=np.isfinite(K), initial=0.0)) + 50.0 * problem.reg
    yield _first(dual, K)
    regs = _stages(dual, K)
    if start.potentials is not None:
        cold = dual.p, dual.q
        if dual.evaluate(*start.potentials, problem.reg) > -np.inf:
            K, regs = dual.cost(), regs[-1:]
        else:
            dual.p, dual.q = cold
    for reg in regs[:-1]:
        point = _enter(dual, K, reg)
        for _ in range(_STAGE_STEPS):
            if dual.error < _STAGE_ERROR:
                break
            yield None
            following = newton_step(dual, point)
            if following is None:
                dual.evaluate(point.p, point.q, reg)
                break
            point = following
        K = dual.cost()
        yield _stage_step(dual, K)
    yield from _final(dual, _enter(dual, K, problem.reg))


def _first(dual: SmoothDual, K: Array) -> Step:
    problem = dual.problem
    P = round_plan(problem.independent, problem.a, problem.b, allowed=problem.function.allowed)
    return _step(P, dual.value(P), dual.prove(dual.p, dual.q, K))


def _stage_step(dual: SmoothDual, K: Array) -> Step:
    """What a larger reg proves: K is in B(F) all the same, and potentials below it are safe."""
    return _step(*dual.round(), dual.prove(*c_transform(K, dual.p), K))


def _certified(dual: SmoothDual) -> Step:
    return _step(*dual.round(), dual.prove(dual.p, dual.q, dual.cost()))


def _step(P: Array, value: float, proof: Dual) -> Step:
    return Step(value, lambda: P, proof.bound, lambda: proof)


def _stages(dual: SmoothDual, K: Array) -> list[float]:
    """The values of reg to go through, the last one that of the problem."""
    level = dual.a @ np.where(np.isfinite(K), K, 0.0) @ dual.b / (dual.total * dual.mass)
    regs = [dual.problem.reg]
    while regs[-1] < _FIRST_REG[dual.uniform] * level:
        regs.append(regs[-1] * _STAGE)
    return regs[::-1]


def _enter(dual: SmoothDual, K: Array, reg: float) -> Iterate:
    p, q = dual.balance(K, reg, _SWEEPS)
    return Iterate(p, q, dual.evaluate(p, q, reg))


def _rebalanced(dual: SmoothDual, point: Iterate) -> Iterate:
    """Sinkhorn's iteration with K fixed at its best: φ = max_K never falls."""
    p, q = dual.balance(dual.cost(), dual.reg, _FEW)
    phi = dual.evaluate(p, q, dual.reg)
    if phi > point.phi:
        return Iterate(p, q, phi, point.damping)
    dual.evaluate(point.p, point.q, dual.reg)
    return point


def _final(dual: SmoothDual, point: Iterate) -> Iterator[Step | None]:
    """Newton steps at the reg of the problem until doubles can do no better."""
    shown, silent, waited = 0.1, 0, 0
    value, bound = np.inf, -np.inf
    while waited < _PATIENCE:
        silent += 1
        if dual.error <= _NEWS * shown or silent == _NEWS_STEPS:
            shown, silent = dual.error, 0
            step = _certified(dual)
            closed = max(value - step.value, 0.0) + max(step.lower_bound - bound, 0.0)
            waited = 0 if closed >= 0.01 * (value - bound) else waited + 1
            value, bound = min(value, step.value), max(bound, step.lower_bound)
            yield step
        else:
            yield None
        following = newton_step(dual, point)
        if following is None:
            break
        point = following
    dual.evaluate(point.p, point.q, dual.problem.reg)
    yield _certified(dual)


def newton_step(dual: SmoothDual, point: Iterate) -> Iterate | None:
    """One Newton step with line search on φ; None when φ cannot be raised any more.

    Edges that carry nothing yet have no curvature, and a full step may make their exponentials
    explode. When the line search ends early, the Hessian just beyond its end knows these edges: it
    is added, and the direction computed once more from the same point. The dual function is left
    at the new point.
    """
    g, H, error = dual.gradient, dual.hessian(), dual.error
    # Points whose part of the plan has not come to life yet borrow some curvature from the plan r.
    marginals = np.concatenate([dual.a, dual.b])
    lent = np.maximum(1e-2 * marginals * (dual.total / (dual.reg * dual.mass)) - H.diagonal, 0.0)
    lent[H.diagonal + lent == 0.0] = 1.0  # points without mass stay where they are
    best: Iterate | None = None
    damping, n = point.damping, point.p.size
    for _ in range(_ROUNDS):
        s = direction(dual, H, g, damping * H.diagonal + lent, min(0.1, error))
        if not np.isfinite(s).all():  # H has over- or underflowed
            break
        # Parts of the plan that hardly meet make H nearly singular: no step beyond all costs.
        s *= min(1.0, dual.reach / max(float(np.abs(s).max()), np.finfo(float).tiny))
        slope = float(g @ s)
        t, found = _line_search(dual, point, s, slope, error)
        if found is not None and (best is None or found.phi > best.phi):
            best = found
        if t >= _LONG or slope <= _noise(dual, point):
            damping = max(damping / 10.0, _DAMPING)
            break
        far = 2.0 * t
        dual.evaluate(point.p + far * s[:n], point.q + far * s[n:], dual.reg)
        crowd = float(dual.rows.sum()) / dual.total
        if crowd < 1e100:
            # Out there X may be huge; what counts is where, so it is scaled to the mass.
            H = H.plus(dual.hessian(), 1.0 / max(crowd, 1.0))
        else:
            damping *= 10.0
    else:
        damping *= 10.0
    if best is None:
        return None
    best = best._replace(damping=damping)
    if dual.p is not best.p:
        dual.evaluate(best.p, best.q, dual.reg)
    return best if t == 1.0 else _rebalanced(dual, best)


def _noise(dual: SmoothDual, point: Iterate) -> float:
    """Differences of φ below this are rounding."""
    size = np.abs(dual.a * point.p).sum() + np.abs(dual.b * point.q).sum() + dual.reg * dual.mass
    return 1e-14 * float(size)


def _line_search(
    dual: SmoothDual, point: Iterate, s: Array, slope: float, error: float
) -> tuple[float, Iterate | None]:
    """The largest step among 1, 1/2, ... with enough ascent; the last step tried if none."""
    n, noise = point.p.size, _noise(dual, point)
    t = 1.0
    while slope > 0.0:
        check_time()
        p, q = point.p + t * s[:n], point.q + t * s[n:]
        phi = dual.evaluate(p, q, dual.reg)
        level = slope <= 1e2 * noise  # only the gradient can tell better from worse
        if phi >= point.phi + 1e-4 * t * slope or (level and dual.error < 0.9 * error):
            return t, Iterate(p, q, phi)
        if slope <= noise or t < 1e-7:
            break
        t *= 0.5 if phi > -np.inf else 0.25
    return 0.5 * t, None


def direction(dual: SmoothDual, H: Hessian, g: Array, D: Array, tol: float) -> Array:
    """s with (H + diag(D)) s = g, to the tolerance or better.

    Where conjugate gradients fail once they would fail again: the dual function remembers.
    """
    if g.size > _DENSE and not dual.stiff:
        s, reached = _conjugate_gradients(H, g, D, tol)
        if reached or g.size > _DENSE_LAST:
            return s
        dual.stiff = True
    return _cholesky(H, g, D)


def _cholesky(H: Hessian, g: Array, D: Array) -> Array:
    scale = 1.0 / np.sqrt(H.diagonal + D)
    A = H.matrix()
    A *= scale[:, None]
    A *= scale
    A[np.diag_indices_from(A)] = 1.0
    for _ in range(4):
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
            return scale * cho_solve(factor, scale * g, check_finite=False)
        except LinAlgError:
            A[np.diag_indices_from(A)] *= 1.0 + 1e-8
    return scale * scale * g


def _conjugate_gradients(H: Hessian, g: Array, D: Array, tol: float) -> tuple[Array, bool]:
    """The same by preconditioned conjugate gradients, and whether they reached the tolerance."""
    diagonal = H.diagonal + D
    s, r = np.zeros_like(g), g.copy()
    z = r / diagonal
    d = z
    square = float(r @ z)
    goal = tol * tol * square
    for _ in range(_CG_STEPS):
        check_time()
        Hd = H.times(d) + D * d
        curvature = float(d @ Hd)
        if not curvature > 0.0:
            break
        s += square / curvature * d
        r -= square / curvature * Hd
        z = r / diagonal
        last, square = square, float(r @ z)
        if square <= goal:
            return s, True
        d = z + square / last * d
    return s, square <= goal
