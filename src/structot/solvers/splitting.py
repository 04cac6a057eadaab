"""Splitting: one copy of the plan per layer, one copy with the right marginals, made to agree.

Notation. F = C + Σ_r F_r; d_r the metric of layer r, in which its prox is fast, times a fixed
scale; D_r = ρ d_r. X_r >= 0 the copies, Z the plan with the marginals, Y_r the scaled multipliers
of X_r = Z, kept as the sum S_r = Z + Y_r; p, q the multipliers of the marginals. The copies stand
one after the other in one flat vector, each in the edge order of its layer; the total mass is 1.
Relaxed marginals are variables too: x = Z1 and Zᵀ1, with one copy each at the end of the vector,
whose prox is that of their price.

One Douglas-Rachford step for  min Σ_r f_r(X_r) + <C, Z>,  X_r = Z,  is

    Z   = argmin_{Z1 = a, Zᵀ1 = b} <C, Z> + 1/2 Σ_r D_r (Z - S_r)²
        = projection of (Σ_r D_r S_r - C) / W in the metric W = Σ_r D_r
    X_r = argmin_{X >= 0} f_r(X) + 1/2 D_r (X - (2Z - S_r))²
    S_r = S_r + γ (X_r - Z),

a nonexpansive map of S in the metric D, for 0 < γ <= 2. Its multipliers satisfy
-Σ_r D_r Y_r + C = p ⊕ q, so the projections of -D_r Y_r onto B(F_r) prove a bound. The iteration is
Halpern's: each new point is drawn back towards an anchor with a weight that falls like 1/j, and the
anchor moves to the current point when the residual has fallen enough; on these piecewise linear
problems that beats the plain iteration by factors, at the price of one more vector.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structot._checks import positive
from structot._deadline import check_time
from structot._typing import Array
from structot.blocks.stack import Stack
from structot.certificate import dual_by_exact_transport, dual_from_cost, lowered
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers._parts import GenericPart, Part, parts_of
from structot.solvers.base import Solver
from structot.solvers.start import Start
from structot.transport import MarginalProjection

# Restart when the residual fell below the first share of its value at the anchor, or below the
# second and has begun to rise, or after this share of all iterations.
ENOUGH, SOME, LONG = 0.2, 0.8, 0.2
# Largest change of ρ at restart t: 1 + this · decay^t. The product of all changes stays finite,
# so that in the end the method is one fixed nonexpansive map.
CHANGE, DECAY = 4.0, 0.93
# Iterations between certificates, and later the inverse share of all iterations between them.
OFTEN = 10
# The first certificate with exact transport, the last resort, and how much later the next is.
_FIRST_EXACT, _EXACT_FACTOR = 100, 1.3
# A residual this small relative to the point is rounding error. So is an answer that has not
# improved for this many times as long as it took to get there.
_ROUNDING = 1e-15
_PATIENCE = 10


@dataclass(frozen=True)
class Splitting(Solver):
    """min_{P in U(a,b)} f(P) for any sum of layers: Douglas-Rachford with restarted anchors.

    Parameters
    ----------
    rho
        Initial weight of the quadratic terms, relative to (mean price) / (mean mass) of a pair; it
        is balanced from the residuals afterwards.
    relaxation
        γ in (0, 2]; 2 reflects fully, which the anchor makes safe.
    patience
        Iterations after which it gives up; by default only when nothing improves any more.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 3.0, 4.0], [2.0, 2.0, 1.0], [5.0, 1.0, 1.0]]
    >>> groups = sot.Groups([0, 0, 1], [0, 1, 1]) + sot.Coverage([0, 1, 1])
    >>> sot.solve(M, structure=groups, method="splitting").converged
    True
    """

    name: ClassVar[str] = "splitting"
    takes_relaxed: ClassVar[bool] = True
    rho: float = 1.0
    relaxation: float = 2.0
    patience: int | None = None

    def __post_init__(self) -> None:
        positive("rho", self.rho)
        if not 0 < self.relaxation <= 2:
            raise ValueError(f"relaxation must be in (0, 2]; got {self.relaxation}.")

    def objection(self, problem: Problem) -> str | None:
        if not problem.layers and problem.marginals.linear:
            return "there is nothing to split in a modular function; use method='exact'"
        return super().objection(problem)

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        copies = _Copies(problem, self.rho)
        S = copies.begin(start)
        anchor = _Anchor(S)
        value, bound, improved, certify_at, exact_at = np.inf, -np.inf, 0, 1, _FIRST_EXACT
        for k in itertools.count(1):
            V = copies.mean(S)
            Z = copies.project(V)
            z = copies.spread(Z)
            x = copies.prox(2 * z - S)
            residual = copies.norm(x - z)
            if not math.isfinite(residual):
                yield Step(value=np.nan)
                return
            step = None
            size = copies.norm(S)
            settled = residual <= _ROUNDING * size
            copies.refine(residual / size if size > 0 else 0.0)
            if k == certify_at or settled:
                certify_at = k + max(OFTEN, k // OFTEN)
                exact = settled or k >= exact_at
                exact_at = math.ceil(_EXACT_FACTOR * k) if exact else exact_at
                step = copies.certificate(V, Z.plan, x, S - z, exact=exact)
                if step.value < value or step.lower_bound > bound:
                    value, bound = min(value, step.value), max(bound, step.lower_bound)
                    improved = k
            yield step
            if settled or k > _PATIENCE * (improved + 100) or k == self.patience:
                return
            moved = S + self.relaxation * (x - z)
            if anchor.is_done(k, residual, z):
                S = copies.balance(S, z, moved, anchor)
                anchor.move(S)
            else:
                S = anchor.pull(moved)


class _Anchor:
    """Halpern's anchor: where it is, the residual and Z there, and the steps made since."""

    def __init__(self, S: Array) -> None:
        self.moves = -1
        self.move(S)

    def move(self, S: Array) -> None:
        self.S = self.z = S
        self.first = self.last = np.inf
        self.steps = 0
        self.moves += 1

    def is_done(self, k: int, residual: float, z: Array) -> bool:
        """Whether the anchor should move to where the iteration is."""
        if self.steps == 0:
            self.first, self.z = residual, z
        rising, self.last = residual > self.last, residual
        return self.steps > 0 and (
            residual <= ENOUGH * self.first
            or (residual <= SOME * self.first and rising)
            or self.steps >= LONG * k + OFTEN
        )

    def pull(self, S: Array) -> Array:
        """The next point: S, drawn back towards the anchor."""
        self.steps += 1
        return S + (self.S - S) / (self.steps + 1)


class _Point(NamedTuple):
    """A plan, and the marginals that may differ from a and b, one after the other."""

    plan: Array
    sums: Array


class _Copies:
    """The copies of the plan, one per layer, as one flat vector, and the operators on them."""

    def __init__(self, problem: Problem, rho: float) -> None:
        self.problem = problem
        # f is positively homogeneous: total mass 1 keeps squares far from under- and overflow.
        self.sides = problem.marginals.in_units(1.0, problem.total).sides
        self.parts = parts_of(problem)
        check_time()
        ends = np.cumsum([0, *(part.d.size for part in self.parts)])
        self.slices = [slice(i, j) for i, j in itertools.pairwise(ends)]
        self.rho = rho
        self.d = np.concatenate([part.d for part in self.parts])
        W = self._sum(self.d)  # (n, m), 0 on forbidden pairs
        check_time()
        # The mean mass of a point is that of its pairs together.
        n, m = problem.shape
        mean = float(W[W > 0].mean())
        weights = [np.full(n, mean / m), np.full(m, mean / n)]
        hard = [np.full(w.size, side.hard) for w, side in zip(weights, self.sides, strict=True)]
        self.loose = ~np.concatenate(hard)  # of all points, those with a copy of their marginal
        yielding = [np.where(fixed, 0.0, 1.0 / w) for w, fixed in zip(weights, hard, strict=True)]
        self.projection = MarginalProjection(
            W, problem.function.allowed, (yielding[0], yielding[1])
        )
        check_time()
        self.W = np.concatenate([part.gather(W) for part in self.parts])
        d_sums = np.concatenate(weights)[self.loose]
        self.share = np.concatenate([self.d / self.W, np.ones(d_sums.size)])
        self.d, self.W = np.append(self.d, d_sums), np.append(self.W, d_sums)
        linear = np.zeros(problem.shape) if problem.linear is None else problem.linear
        self.C = np.where(W > 0, linear, 0.0)
        self.forbidden = W == 0
        self.C_over_W = np.divide(self.C, W, out=np.zeros(W.shape), where=W > 0)

    def _each(self, flat: Array) -> Iterator[tuple[Stack | Part, Array]]:
        for part, where in zip(self.parts, self.slices, strict=True):
            yield part, flat[where]

    def _sum(self, flat: Array) -> Array:
        """Σ_r over the copies, (n, m)."""
        added = [part.add(own) for part, own in self._each(flat)]
        return added[0] if len(added) == 1 else np.add.reduce(added)

    def spread(self, Z: _Point) -> Array:
        """The same (n, m) array for every copy, then the marginals."""
        return np.concatenate([*(part.gather(Z.plan) for part in self.parts), Z.sums])

    def _sums(self, S: Array) -> Array:
        """The part of a flat vector that stands for marginals."""
        return S[self.slices[-1].stop :]

    def _targets(self, sums: Array) -> list[Array]:
        """a and b, or where they are relaxed the marginals of a point."""
        weights = np.concatenate([side.weights for side in self.sides])
        weights[self.loose] = sums
        return np.split(weights, [self.sides[0].weights.size])

    def norm(self, S: Array) -> float:
        return math.sqrt(float(self.d @ (S * S)))

    def mean(self, S: Array) -> _Point:
        """V = (Σ_r D_r S_r - C) / W, (n, m), and the marginals."""
        return _Point(self._sum(self.share * S) - self.C_over_W / self.rho, self._sums(S))

    def project(self, V: _Point) -> _Point:
        """Z, the nearest array that has its marginals, in the metric W; may be negative."""
        check_time()
        Z = self.projection.project(V.plan, *self._targets(V.sums))
        return _Point(Z, np.concatenate([Z.sum(axis=1), Z.sum(axis=0)])[self.loose])

    def prox(self, V: Array) -> Array:
        """X_r of every layer, and the marginals at which their price is in balance."""
        check_time()
        moved = [part.prox(own, self.rho) for part, own in self._each(V)]
        sums, weights = self._sums(V), self.rho * self._sums(self.d)
        first = 0 if self.sides[0].hard else self.sides[0].weights.size
        for side, where in zip(self.sides, (slice(0, first), slice(first, None)), strict=True):
            if not side.hard:
                moved.append(side.prox(sums[where], weights[where]))
        return np.concatenate(moved)

    def refine(self, residual: float) -> None:
        """Generic layers need be no more exact than the iteration, with this relative residual."""
        for part in self.parts:
            if isinstance(part, GenericPart):
                part.refine(residual)

    def begin(self, start: Start) -> Array:
        """S from a plan and potentials: Z is the plan, the D_r Y_r are shares of C - p ⊕ q."""
        problem = self.problem
        plan, potentials = start.plan, start.potentials
        if plan is None:
            plan = problem.feasible(problem.independent)
        if potentials is None:
            # What the centres of the base polytopes prove.
            center = self._worst_cost(np.zeros_like(self.d))
            potentials = dual_from_cost(problem, center)[:2]
        check_time()
        plan = plan / problem.total
        sums = np.concatenate([plan.sum(axis=1), plan.sum(axis=0)])[self.loose]
        left = _Point(self.C - np.add.outer(*potentials), np.concatenate(potentials)[self.loose])
        return self.spread(_Point(plan, sums)) + self.spread(left) / (self.rho * self.W)

    def _worst_cost(self, flat: Array) -> Array:
        """C + the projections of the copies onto the base polytopes, a point of B(F)."""
        check_time()
        costs = np.concatenate([part.project(own) for part, own in self._each(flat)])
        K = self._sum(costs) + self.C
        K[self.forbidden] = np.inf
        return K

    def balance(self, S: Array, z: Array, moved: Array, anchor: _Anchor) -> Array:
        """The point ``moved`` after a change of ρ that lets Z and Y converge at the same rate.

        Compared are, relative to their sizes, how far both move in this step and, as they are, how
        far both came since the anchor: the first is the usual balance of residuals, the second
        estimates the distances that are left. Their geometric mean was better than either.
        """
        z_next = self.spread(self.project(self.mean(moved)))
        y, y_next = S - z, moved - z_next
        primal = [self.norm(x) for x in (z_next - z, z, z - anchor.z)]
        dual = [self.norm(x) for x in (y_next - y, y, y - anchor.S + anchor.z)]
        if min(*primal, *dual) == 0.0:
            return moved
        step, size, way = (q / p for p, q in zip(primal, dual, strict=True))
        largest = 1.0 + CHANGE * DECAY**anchor.moves
        factor = min(max(math.sqrt(way * math.sqrt(step * size)), 1.0 / largest), largest)
        self.rho *= factor
        return z_next + y_next / factor

    def certificate(self, V: _Point, Z: Array, x: Array, y: Array, *, exact: bool) -> Step:
        """The better of both plans rounded; the multipliers projected onto the base polytopes.

        ``exact``: the best bound of the projection, by exact transport, and not only a good one.
        """
        problem = self.problem
        candidates = (self._sum(self.share * x), Z)
        p, q = (self.rho * z for z in self.projection.multipliers(V.plan, *self._targets(V.sums)))
        plans = [problem.feasible(problem.total * P, (p, q)) for P in candidates]
        check_time()
        values = [problem.objective(P) for P in plans]
        best = int(np.argmin(values))
        check_time()
        point = -self.rho * self.d * y
        K = lowered(self._worst_cost(point), self._sum(np.abs(point)))
        if exact and problem.marginals.linear:
            dual = dual_by_exact_transport(problem, K)
        else:
            dual = dual_from_cost(problem, K, p)
        return Step(values[best], lambda: plans[best], dual.bound, lambda: dual)
