"""Newton's method on the smooth dual of entropic structured transport.

    min_{P in U(a,b)}  f(P) + reg Σ d (P log(P/r) - P + r),      r = a bᵀ / T

Notation. φ(p, q) the dual function of `dual.py`, g its gradient, H its negative Hessian. A step
solves (H + H_loose) s = g, where pools move as a whole in H, and H_loose is the curvature of edges
that leave their pool within the *reach* (`blocks/kinks.py`): the change of p ⊕ q that the last step
would have made on average over the plan, so that a step that leads too far makes the next model
stiffer. Small reg is reached by following the path of the maximisers as reg falls: the same matrix
says how they move, p' = dp/d log reg, so that every change of reg is a Newton step too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structot._deadline import check_time
from structot._parallel import single_threaded_blas
from structot._typing import Array
from structot.certificate import Dual
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.entropic.hessian import Directions
from structot.solvers.entropic.special import smooth_dual
from structot.solvers.entropic.steps import Direction, Steps
from structot.solvers.start import Start

# After a step that had to be shortened the reach grows at least by this factor, so that in the end
# every edge is loose: points of little mass move far without a change of the mean over the plan.
_LONGER = 4.0


@dataclass(frozen=True)
class Entropic(Solver):
    """Newton's method on the smooth dual, for reg > 0 and at most one layer of disjoint blocks.

    The defaults serve problems of every size; none of them changes the answer, only the way to it.

    Parameters
    ----------
    first_reg, first_reg_weighted
        Where the path of falling reg begins, as a fraction of the mean cost: with equal weights of
        the entropy, and with others, whose smallest make the exponentials stiff, so that it must
        begin earlier.
    stage
        The factor by which reg falls from one stage to the next.
    near
        Reg falls when X misses the marginals by less than this fraction of the mass (times the root
        of the part of reg that is left, with unequal weights), and only so far that X then misses
        them by no more than one in addition.
    stage_steps
        Or after so many steps: a stage before the last only has to come near.
    sweeps, few_sweeps
        Sinkhorn sweeps with K fixed, at the start (a tenth of them where weights differ or
        marginals are relaxed) and, with equal weights, after a shortened step.
    rounds
        So often a direction is computed anew with more curvature on edges that it makes explode.
    news, news_steps, patience
        A plan and a proof follow when the promised rise has fallen by this factor, or after so many
        steps; so many in a row (``patience``) that close less than a hundredth of the gap are the
        end.
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
    first_reg_weighted: float = 1.0
    stage: float = 2.0
    near: float = 2.0
    stage_steps: int = 40
    sweeps: int = 40
    few_sweeps: int = 3
    rounds: int = 3
    news: float = 0.25
    news_steps: int = 8
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
    """Multipliers and φ there."""

    p: Array
    q: Array
    phi: float


class _Ascent:
    """Newton's method on φ: the dual function with its last point, and the linear algebra."""

    def __init__(self, options: Entropic, problem: Problem, start: Start) -> None:
        self.options, self.problem = options, problem
        self.dual = dual = smooth_dual(problem)
        sizes = options.dense, options.dense_last, options.cg_steps
        directions = Directions(problem.blocks, not dual.uniform, *sizes)
        # A point of B(F) to begin with.
        self.K = dual.plain_cost() if start.plan is None else problem.function.greedy(start.plan)
        dual.p, dual.q = problem.marginals.fitted(self.K, np.zeros(problem.shape[0]))
        self._walled = False  # whether walls have stopped anything on the way
        costs = float(np.abs(self.K).max(where=np.isfinite(self.K), initial=0.0))
        longest = costs + 50.0 * problem.reg  # no sensible step is longer
        self.model = Steps(problem, dual, directions, options.rounds, longest)
        self.first_reg = self._first_reg()
        self.reach = self.first_reg

    def steps(self, start: Start) -> Iterator[Step | None]:
        """The iterations."""
        problem, dual = self.problem, self.dual
        yield self._first()
        point = None
        if start.potentials is not None:
            point = self._continued(problem.released(*start.potentials))
        if point is None:
            point = self._enter(self.first_reg)
        del self.K  # as large as the plan, and not needed any more
        while dual.reg > problem.reg:
            point = yield from self._stage(point)
        yield from self._final(point)

    def _first(self) -> Step:
        """A plan and a bound, whatever follows: independent, and below a point of B(F)."""
        P = self.problem.feasible(self.problem.independent)
        return _step(P, self.dual.value(P), self.dual.prove(self.dual.p, self.dual.q, self.K))

    def _continued(self, potentials: tuple[Array, Array]) -> Iterate | None:
        """Given multipliers at the least reg for which they are near; None where they never are."""
        cold, reg = (self.dual.p, self.dual.q), self.problem.reg
        while reg <= self.first_reg:
            phi = self.dual.evaluate(*potentials, reg)
            if self.dual.error < self.options.near:
                return Iterate(*potentials, phi)
            reg *= self.options.stage
        self.dual.p, self.dual.q = cold
        return None

    def _first_reg(self) -> float:
        """Where the path begins."""
        dual, options = self.dual, self.options
        mean = dual.a @ np.where(np.isfinite(self.K), self.K, 0.0) @ dual.b
        first = options.first_reg if dual.uniform else options.first_reg_weighted
        return max(self.problem.reg, float(first * mean / (dual.total * dual.mass)))

    def _enter(self, reg: float) -> Iterate:
        p, q = self.problem.released(*self.dual.balance(self.K, reg, self.options.sweeps))
        return Iterate(p, q, self.dual.evaluate(p, q, reg))

    def _stage(self, point: Iterate) -> Generator[None, None, Iterate]:
        """A larger reg, solved roughly, and the step to a smaller one."""
        dual, options = self.dual, self.options
        for _ in range(options.stage_steps):
            if dual.error < self._near():
                break
            yield None
            following = self._search(point, self._direction())
            if following is None:
                break
            point = following
        yield None
        return self._descend(point)

    def _near(self) -> float:
        """The marginal error with which reg may fall; less where pools break all along the path."""
        fallen = 1.0 if self.dual.uniform else min(self.dual.reg / self.first_reg, 1.0)
        return self.options.near * np.sqrt(fallen)

    def _descend(self, point: Iterate) -> Iterate:
        """The maximiser at a smaller reg, to first order; reg falls less where that leads far."""
        dual, n, reg = self.dual, point.p.size, self.dual.reg
        if dual.p is not point.p:
            dual.evaluate(point.p, point.q, reg)
        change = max(self.problem.reg, reg / self.options.stage) / reg - 1.0
        s = self._direction(change * dual.drift()).s
        while True:
            p, q = point.p + s[:n], point.q + s[n:]
            smaller = reg * (1.0 + change)
            phi = dual.evaluate(*self._kept(p, q, smaller), smaller)
            if dual.error < 1.0 + self.options.near or change > -0.05:
                break
            s, change = 0.5 * s, 0.5 * change
        return Iterate(dual.p, dual.q, phi)

    def _final(self, point: Iterate) -> Iterator[Step | None]:
        """Newton steps at the reg of the problem until doubles can do no better."""
        options = self.options
        shown, silent, waited = 1e-3 * abs(point.phi), 0, 0
        value, bound = np.inf, -np.inf
        while waited < options.patience:
            silent += 1
            direction = self._direction()
            if direction.slope <= options.news * shown or silent == options.news_steps:
                shown, silent = direction.slope, 0
                step = self._certified(direction.s)
                closed = max(value - step.value, 0.0) + max(step.lower_bound - bound, 0.0)
                waited = 0 if closed >= 0.01 * (value - bound) else waited + 1
                value, bound = min(value, step.value), max(bound, step.lower_bound)
                yield step
            else:
                yield None
            following = self._search(point, direction)
            if following is None:
                break
            point = following
        self.dual.evaluate(point.p, point.q, self.problem.reg)
        yield self._certified(self._direction().s)

    def _certified(self, s: Array) -> Step:
        """What X, moved by the model to meet the marginals, and (p, q) prove."""
        dual = self.dual
        plan = dual.round(dual.response(s))
        return _step(*plan, dual.prove(dual.p, dual.q, dual.cost()))

    def _kept(self, p: Array, q: Array, reg: float) -> tuple[Array, Array]:
        """Multipliers within the walls of edges and the ends of the dual terms of marginals."""
        relaxed = self.problem.marginals
        # Relaxed marginals may be exceeded, though not by orders of magnitude: walls are farther.
        lower = self.dual.within_walls(p, q, reg if relaxed.hard else 2.0 * reg)
        self._walled = self._walled or bool((lower[0] < p).any() or (lower[1] < q).any())
        return relaxed.clip(*lower)

    def _direction(self, extra: Array | float = 0.0) -> Direction:
        return self.model.best(self.reach, extra)

    def _noise(self, point: Iterate) -> float:
        """Differences of φ below this are rounding."""
        size = np.abs(self.dual.a * point.p).sum() + np.abs(self.dual.b * point.q).sum()
        return 1e-14 * float(size + self.dual.reg * self.dual.mass)

    def _search(self, point: Iterate, direction: Direction) -> Iterate | None:
        """A point along the step with enough ascent; None when φ cannot be raised.

        Where an edge that carries nothing yet would explode, its row and column are held back
        alone, and the others step on. That may keep relaxed marginals from where they want to be:
        there the plain step is tried as well.
        """
        self._walled = False
        found = self._ascend(point, direction, walls=True)
        if self.problem.marginals.hard or not self._walled:
            return found
        self.dual.evaluate(point.p, point.q, self.dual.reg)
        plain = self._ascend(point, direction, walls=False)
        if found is None or (plain is not None and plain.phi >= found.phi):
            return plain
        self.dual.evaluate(found.p, found.q, self.dual.reg)
        return found

    def _ascend(self, point: Iterate, direction: Direction, walls: bool) -> Iterate | None:
        dual, noise = self.dual, self._noise(point)
        s, slope, change = direction
        error, t = dual.error, 1.0
        promised = self._promise(point)
        while slope > 0.0:
            check_time()
            found = self._at(point, s, t, walls)
            rise = promised(found, t * slope)
            level = slope <= 1e2 * noise  # only the gradient can tell better from worse
            if found.phi >= point.phi + 1e-4 * rise or (level and dual.error < 0.9 * error):
                agreement = (found.phi - point.phi) / (0.5 * slope)
                longer = 0.0 if t == 1.0 else _LONGER * self.reach
                self.reach = max(change, longer, np.finfo(float).tiny)
                if t < 1.0 and dual.uniform:
                    return self._rebalanced(found)
                return self._further(point, s, found) if agreement > 1.5 and not level else found
            if slope <= noise or t < 1e-7:
                break
            t *= 0.5 if found.phi > -np.inf else 0.25
        return None

    def _promise(self, point: Iterate) -> Callable[[Iterate, float], float]:
        """What φ would rise by if it were linear, where a step may be cut."""
        relaxed, g = self.problem.marginals, self.dual.gradient
        sums = np.concatenate([self.dual.rows, self.dual.cols])

        def promised(found: Iterate, rise: float) -> float:
            if relaxed.hard:
                return rise
            change = np.concatenate([found.p - point.p, found.q - point.q])
            if relaxed.smooth:
                return float(g @ change)
            gained = relaxed.dual_value(found.p, found.q) - relaxed.dual_value(point.p, point.q)
            return gained - float(sums @ change)

        return promised

    def _rebalanced(self, point: Iterate) -> Iterate:
        """Sinkhorn's iteration with K fixed at its best, cheap with equal weights.

        φ = max_K never falls.
        """
        dual = self.dual
        p, q = dual.balance(dual.cost(), dual.reg, self.options.few_sweeps)
        phi = dual.evaluate(p, q, dual.reg)
        if phi > point.phi:
            return Iterate(p, q, phi)
        dual.evaluate(point.p, point.q, dual.reg)
        return point

    def _at(self, point: Iterate, s: Array, t: float, walls: bool = True) -> Iterate:
        n = point.p.size
        p, q = point.p + t * s[:n], point.q + t * s[n:]
        if walls and t > 0.1:
            p, q = self._kept(p, q, self.dual.reg)
        else:
            p, q = self.problem.marginals.clip(p, q)
        return Iterate(p, q, self.dual.evaluate(p, q, self.dual.reg))

    def _further(self, point: Iterate, s: Array, found: Iterate) -> Iterate:
        """Double a step along which φ hardly bends, as long as that raises φ."""
        t = 1.0
        while t < 1e3:
            t *= 2.0
            farther = self._at(point, s, t)
            if not farther.phi > found.phi:
                break
            found = farther
        self.dual.evaluate(found.p, found.q, self.dual.reg)
        return found


def _step(P: Array, value: float, proof: Dual) -> Step:
    return Step(value, lambda: P, proof.bound, lambda: proof)
