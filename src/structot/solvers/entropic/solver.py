"""Newton's method on the smooth dual of entropic structured transport.

    min_{P in U(a,b)}  f(P) + reg Σ d (P log(P/r) - P + r),      r = a bᵀ / T

Notation. φ(p, q) the dual function of `dual.py`, H its negative Hessian, K in B(F) the worst cost
at (p, q). Small reg is reached by continuation: a larger reg is solved roughly first, and a few
sweeps of Sinkhorn's iteration with K fixed carry its multipliers over to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structot._deadline import check_time
from structot._parallel import single_threaded_blas
from structot.certificate import Dual
from structot.problem import Problem
from structot.solvers._held import held_direction
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.entropic.dual import smooth_dual
from structot.solvers.entropic.hessian import Directions, Hessian
from structot.solvers.start import Start

Array = np.ndarray


@dataclass(frozen=True)
class Entropic(Solver):
    """Newton's method on the smooth dual, for reg > 0 and at most one layer of disjoint blocks.

    The defaults serve problems of every size; none of them changes the answer, only the way to it.

    Parameters
    ----------
    first_reg, first_reg_weighted
        Where continuation starts, as a fraction of the mean cost: with equal weights of the
        entropy, and with others, whose smallest make the exponentials stiff, so that it must
        start earlier.
    stage
        The factor by which reg falls from one stage to the next.
    stage_error, stage_steps
        A stage before the last ends when the marginals are right to this fraction of the mass, or
        after so many Newton steps: it only has to come near.
    sweeps, few_sweeps
        Sinkhorn sweeps with K fixed at the start of a stage, and after a shortened Newton step.
    long
        A step of this length needs no better direction.
    rounds
        Otherwise so many directions are tried, each with the Hessian just beyond the last's end.
    damping
        The least damping, as a fraction of the diagonal of H: beyond rounding.
    news, news_steps
        A plan and a proof are made when the marginal error has fallen by this factor since the
        last, or after so many steps.
    patience
        So many proofs that close less than a hundredth of the gap each are the end.
    dense, dense_last, cg_steps
        Unknowns up to which H is factorised at once, unknowns up to which it is factorised where
        conjugate gradients fail, and the steps after which they do.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> result = sot.solve(np.ones((2, 3)), reg=0.1, method=sot.solvers.Entropic(stage=2.0))
    >>> round(result.value, 12)
    1.0
    """

    name: ClassVar[str] = "entropic"
    takes_relaxed: ClassVar[bool] = True
    first_reg: float = 0.02
    first_reg_weighted: float = 0.5
    stage: float = 4.0
    stage_error: float = 0.05
    stage_steps: int = 40
    sweeps: int = 20
    few_sweeps: int = 3
    long: float = 0.3
    rounds: int = 6
    damping: float = 1e-12
    news: float = 0.01
    news_steps: int = 10
    patience: int = 12
    dense: int = 600
    dense_last: int = 5000
    cg_steps: int = 250

    def objection(self, problem: Problem) -> str | None:
        if problem.reg == 0:
            return "it needs reg > 0; use method='auto'"
        if problem.layers and problem.blocks is None:
            return (
                "with reg > 0 it needs Modular, Groups or Coverage with disjoint groups, or the "
                "sum of Modular and one of the others"
            )
        return None

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        with single_threaded_blas(sum(problem.shape)):
            yield from _Ascent(self, problem, start).steps(start)


class Iterate(NamedTuple):
    """Multipliers, φ there, and the damping of the next Newton step."""

    p: Array
    q: Array
    phi: float
    damping: float = 1e-10


class _Ascent:
    """Newton's method on φ: the dual function with its last point, and the linear algebra."""

    def __init__(self, options: Entropic, problem: Problem, start: Start) -> None:
        self.options, self.problem = options, problem
        self.dual = dual = smooth_dual(problem)
        self.directions = Directions(options.dense, options.dense_last, options.cg_steps)
        # A point of B(F) to begin with.
        self.K = dual.plain_cost() if start.plan is None else problem.function.greedy(start.plan)
        dual.p, dual.q = problem.marginals.fitted(self.K, np.zeros(problem.shape[0]))
        costs = float(np.abs(self.K).max(where=np.isfinite(self.K), initial=0.0))
        self.reach = costs + 50.0 * problem.reg  # no sensible step is longer

    def steps(self, start: Start) -> Iterator[Step | None]:
        """The iterations.

        The first item holds a plan and a bound whatever follows: the independent plan, and
        potentials below a point of B(F).
        """
        problem, dual = self.problem, self.dual
        P = problem.feasible(problem.independent)
        yield _step(P, dual.value(P), dual.prove(dual.p, dual.q, self.K))
        regs = self._stages()
        if start.potentials is not None:
            cold = dual.p, dual.q
            if dual.evaluate(*problem.released(*start.potentials), problem.reg) > -np.inf:
                self.K, regs = dual.cost(), regs[-1:]
            else:
                dual.p, dual.q = cold
        for reg in regs[:-1]:
            yield from self._stage(reg)
        yield from self._final()

    def _stages(self) -> list[float]:
        """The values of reg to go through, the last one that of the problem."""
        dual, options = self.dual, self.options
        mean = dual.a @ np.where(np.isfinite(self.K), self.K, 0.0) @ dual.b
        first = options.first_reg if dual.uniform else options.first_reg_weighted
        regs = [self.problem.reg]
        while regs[-1] < first * mean / (dual.total * dual.mass):
            regs.append(regs[-1] * options.stage)
        return regs[::-1]

    def _enter(self, reg: float) -> Iterate:
        p, q = self.dual.balance(self.K, reg, self.options.sweeps)
        p, q = self.problem.released(p, q)
        return Iterate(p, q, self.dual.evaluate(p, q, reg))

    def _stage(self, reg: float) -> Iterator[Step | None]:
        """A larger reg, solved roughly."""
        dual, point = self.dual, self._enter(reg)
        for _ in range(self.options.stage_steps):
            if dual.error < self.options.stage_error:
                break
            yield None
            following = self._newton_step(point)
            if following is None:
                dual.evaluate(point.p, point.q, reg)
                break
            point = following
        self.K = dual.cost()
        # What a larger reg proves: K is in B(F) all the same, and potentials below it are safe.
        potentials = self.problem.marginals.fitted(self.K, dual.p)
        yield _step(*dual.round(), dual.prove(*potentials, self.K))

    def _final(self) -> Iterator[Step | None]:
        """Newton steps at the reg of the problem until doubles can do no better."""
        options, dual, point = self.options, self.dual, self._enter(self.problem.reg)
        shown, silent, waited = 0.1, 0, 0
        value, bound = np.inf, -np.inf
        while waited < options.patience:
            silent += 1
            if dual.error <= options.news * shown or silent == options.news_steps:
                shown, silent = dual.error, 0
                step = self._certified()
                closed = max(value - step.value, 0.0) + max(step.lower_bound - bound, 0.0)
                waited = 0 if closed >= 0.01 * (value - bound) else waited + 1
                value, bound = min(value, step.value), max(bound, step.lower_bound)
                yield step
            else:
                yield None
            following = self._newton_step(point)
            if following is None:
                break
            point = following
        dual.evaluate(point.p, point.q, self.problem.reg)
        yield self._certified()

    def _certified(self) -> Step:
        dual = self.dual
        return _step(*dual.round(), dual.prove(dual.p, dual.q, dual.cost()))

    def _newton_step(self, point: Iterate) -> Iterate | None:
        """One Newton step with line search on φ; None when φ cannot be raised any more.

        Edges that carry nothing yet have no curvature, and a full step may make their exponentials
        explode. When the line search ends early, the Hessian just beyond its end knows these edges:
        it is added, and the direction computed once more from the same point. The dual function is
        left at the new point.
        """
        dual, options = self.dual, self.options
        g, H, error = dual.gradient, dual.hessian(), dual.error
        relaxed = self.problem.marginals
        own = self._lent(H.diagonal) + relaxed.curvature(point.p, point.q)
        held = None if relaxed.smooth else relaxed.held(point.p, point.q, dual.rows, dual.cols)
        best: Iterate | None = None
        damping, n = point.damping, point.p.size
        for _ in range(options.rounds):
            s = self._direction(H, g, damping * H.diagonal + own, min(0.1, error), point, held)
            if not np.isfinite(s).all():  # H has over- or underflowed
                break
            # Parts of the plan that hardly meet make H nearly singular: no step beyond all costs.
            s *= min(1.0, self.reach / max(float(np.abs(s).max()), np.finfo(float).tiny))
            slope = float(g @ s)
            t, found = self._line_search(point, s, g, error, held)
            if found is not None and (best is None or found.phi > best.phi):
                best = found
            if t >= options.long or slope <= self._noise(point):
                damping = max(damping / 10.0, options.damping)
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
        return best if t == 1.0 else self._rebalanced(best)

    def _direction(
        self, H: Hessian, g: Array, D: Array, tol: float, point: Iterate, held: Array | None
    ) -> Array:
        """s with (H + diag(D)) s = g, as far as the dual terms of the marginals allow it."""
        if held is None:
            return self.directions.solve(H, g, D, tol)
        return held_direction(
            lambda x, D: self.directions.solve(H, x, D, tol),
            H.times,
            *(g, D, self.problem.marginals, (point.p, point.q), held),
            largest=float(H.diagonal.max()),
        )

    def _lent(self, diagonal: Array) -> Array:
        """Curvature that points whose part of the plan is not alive yet borrow from the plan r."""
        dual = self.dual
        marginals = np.concatenate([dual.a, dual.b])
        least = 1e-2 * marginals * (dual.total / (dual.reg * dual.mass))
        lent = np.maximum(least - diagonal, 0.0)
        lent[diagonal + lent == 0.0] = 1.0  # points without mass stay where they are
        return lent

    def _rebalanced(self, point: Iterate) -> Iterate:
        """Sinkhorn's iteration with K fixed at its best: φ = max_K never falls."""
        dual = self.dual
        p, q = dual.balance(dual.cost(), dual.reg, self.options.few_sweeps)
        phi = dual.evaluate(p, q, dual.reg)
        if phi > point.phi:
            return Iterate(p, q, phi, point.damping)
        dual.evaluate(point.p, point.q, dual.reg)
        return point

    def _noise(self, point: Iterate) -> float:
        """Differences of φ below this are rounding."""
        dual = self.dual
        size = np.abs(dual.a * point.p).sum() + np.abs(dual.b * point.q).sum()
        return 1e-14 * float(size + dual.reg * dual.mass)

    def _line_search(
        self, point: Iterate, s: Array, g: Array, error: float, held: Array | None
    ) -> tuple[float, Iterate | None]:
        """The largest step among 1, 1/2, ... with enough ascent; the last step tried if none.

        Potentials end where the dual terms of their side do.
        """
        dual, n, noise = self.dual, point.p.size, self._noise(point)
        clip, slope = self.problem.marginals.clip, float(g @ s)
        t = 1.0
        while slope > 0.0:
            check_time()
            p, q = clip(point.p + t * s[:n], point.q + t * s[n:], held)
            rise = g[:n] @ (p - point.p) + g[n:] @ (q - point.q)
            phi = dual.evaluate(p, q, dual.reg)
            level = slope <= 1e2 * noise  # only the gradient can tell better from worse
            if phi >= point.phi + 1e-4 * rise or (level and dual.error < 0.9 * error):
                return t, Iterate(p, q, phi)
            if slope <= noise or t < 1e-7:
                break
            t *= 0.5 if phi > -np.inf else 0.25
        return 0.5 * t, None


def _step(P: Array, value: float, proof: Dual) -> Step:
    return Step(value, lambda: P, proof.bound, lambda: proof)
