"""The path: Mehrotra's predictor and corrector, then Gondzio's correctors while they pay.

Notation as in `newton.py`; μ = Σ x z / N, N the number of products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from structot._deadline import check_time
from structot.solvers.interior_point.lanes.namespace import Number
from structot.solvers.interior_point.lanes.newton import Newton
from structot.solvers.interior_point.lanes.program import (
    NOTHING,
    Arrays,
    Point,
    Program,
    Residuals,
)

Array = Any  # of the library in use

# Steps end at this part of the way to the boundary.
_BACK = 0.995
# Correctors after Mehrotra's, at most; each aims at products within these factors of μ, at a step
# longer by this much, and must bring this part of it.
_CORRECTORS = 2
_LOW, _HIGH = 0.1, 10.0
_LONGER, _WORTH = 0.3, 0.1
# Steps are refined, so many times, while they leave more than this part of Σ x z in the equations
# and a refinement leaves at most that part of it.
_REFINEMENTS, _INEXACT, _LESS = 3, 1e-3, 0.5
# The path has ended after so many steps in a row shorter than this, or so many in all.
_PATIENCE, _SHORT = 8, 0.02
_STEPS = 200


class CentralPath:
    """Iterates that approach the optimum; `point` is the last one.

    An iteration is made of stages (`NumPy.run`), and what is decided between them is decided on the
    host: whether a corrector pays, whether a step must be refined.
    """

    def __init__(self, program: Program, point: Point) -> None:
        self.program, self.point = program, point
        self.newton = Newton(program)
        xp = program.xp
        self._step, self._more = _like(xp, point), _like(xp, point)
        self._target: Arrays = tuple(xp.zeros(x.shape) for x in point.x)
        self._work = self.newton._work
        shapes = (x.shape for x in (program.a, program.b, *self._target[1:4]))
        self._none = Residuals(*(xp.zeros(shape) for shape in shapes))
        # What the equations lack at the point, and what a step leaves of it.
        self._rest = self._left = self._after = self._none
        self.restart()

    def restart(self) -> None:
        """Go on from the point as it is now."""
        self.total = float(self.point.products(self.program.xp))  # value - bound, nearly

    def steps(self) -> Iterator[float]:
        """One iteration per item, its step length; it ends where no more can be had."""
        short = 0
        for _ in range(_STEPS):
            check_time()
            length = self._iterate()
            short = short + 1 if length < _SHORT else 0
            yield length
            if short == _PATIENCE:
                return

    def _iterate(self) -> float:
        run = self.program.xp.run
        if not np.isfinite(self.total):
            raise FloatingPointError("the central path was lost")
        *lengths, centre = run(self._predict_and_correct, self.total)
        for _ in range(_CORRECTORS):
            primal, dual = _steps(lengths)
            if min(primal, dual) > 0.9:
                break
            better = list(run(self._centralise, primal, dual, centre))
            longer = _steps(better)
            if min(longer[0] - primal, longer[1] - dual) < _WORTH * _LONGER:
                break
            run(self._add_more)
            lengths = better
        if self._refine():
            lengths = list(run(self._reach))
        primal, dual = (min(1.0, _BACK * x) for x in _numbers(lengths))
        (self.total,) = run(self._move, primal, dual)
        return min(primal, dual)

    def _refine(self) -> bool:
        """Solve for what the step leaves of the equations, as long as that makes it less."""
        run, refined = self.program.xp.run, False
        (size,) = run(self._measure)
        for _ in range(_REFINEMENTS):
            if size <= _INEXACT * self.total:
                break
            (after,) = run(self._solve_for_rest)
            if not after < _LESS * size:
                break
            run(self._add_refinement)
            size, refined = after, True
        return refined

    # ------------------------------------------------------------------------------------ stages

    def _predict_and_correct(self, total: Number) -> tuple[Number, ...]:
        """Mehrotra's step: its lengths, and the μ that it aims at."""
        program, point, step = self.program, self.point, self._step
        self._rest = self.residuals()
        self.newton.factor(point)
        mu = total / program.size
        self._aim(0.0, None)
        self.newton.step(self._target, self._rest, step)
        aimed = self._total_after(step, *self._lengths(step)) / program.size
        centre = mu * (aimed / mu) ** 3
        self._aim(centre, step)
        self.newton.step(self._target, self._rest, step)
        return (*self._lengths(step), centre)

    def _centralise(self, primal: Number, dual: Number, mu: Number) -> tuple[Number, ...]:
        """Gondzio's corrector: bring products that a longer step would spoil back to near μ.

        The lengths of the step with it.
        """
        xp, point, step = self.program.xp, self.point, self._step
        longer = xp.smallest(primal + _LONGER, 1.0), xp.smallest(dual + _LONGER, 1.0)
        for k, target in enumerate(self._target):
            x = xp.multiply(step.x[k], longer[0], out=target)
            x += point.x[k]
            z = xp.multiply(step.z[k], longer[1], out=self._scratch(k))
            z += point.z[k]
            x *= z
            x -= xp.clip(x, _LOW * mu, _HIGH * mu)
            xp.minimum(x, _HIGH * mu, out=x)
            x *= -1.0
            there = self.program.there[k]
            if there is not None:
                x *= there
        self.newton.step(self._target, self._none, self._more)
        return self._lengths(step, self._more)

    def _add_more(self) -> tuple[Number, ...]:
        step, more = self._step, self._more
        for x, d in zip((*step.x, *step.z, step.u, step.v), (*more.x, *more.z, more.u, more.v)):
            x += d
        return ()

    def _measure(self) -> tuple[Number, ...]:
        """What the step leaves of the equations."""
        lanes = self.program.lane_sums(self._step.x[0])
        self._left = self._without(self._rest, self._step, lanes)
        return (self._left.size(),)

    def _solve_for_rest(self) -> tuple[Number, ...]:
        """A step for what is left, and what that leaves."""
        lanes = self.newton.step(None, self._left, self._more)
        self._after = self._without(self._left, self._more, lanes)
        return (self._after.size(),)

    def _add_refinement(self) -> tuple[Number, ...]:
        for x, now in zip(self._left, self._after, strict=True):
            x[...] = now
        return self._add_more()

    def _reach(self) -> tuple[Number, ...]:
        return self._lengths(self._step)

    def _move(self, primal: Number, dual: Number) -> tuple[Number, ...]:
        """Go so far along the step; Σ x z there."""
        point, step = self.point, self._step
        for length, now, way in ((primal, point.x, step.x), (dual, point.z, step.z)):
            for k, (x, d) in enumerate(zip(now, way, strict=True)):
                x += self.program.xp.multiply(d, length, out=self._scratch(k))
        point.u += dual * step.u
        point.v += dual * step.v
        return (point.products(self.program.xp),)

    # ------------------------------------------------------------------------- right-hand sides

    def residuals(self) -> Residuals:
        """a - P1, ..., what the equations of the point lack."""
        program, point = self.program, self.point
        rows, cols = program.lane_sums(point.x[0])
        kept = program.kept(point.x)
        u, v = program.a - rows.sum(1) - kept[0], program.b - cols.sum(0) - kept[1]
        wide = program.to_lanes(point.x[3])
        there = program.there
        return Residuals(
            u,
            v,
            (wide[0] - point.x[1] - rows) * there[1],
            (wide[1] - point.x[2] - cols) * there[2],
            (program.price - program.paid(*self._tariffs()) - point.z[3]) * there[3],
        )

    def _tariffs(self) -> tuple[Array, Array]:
        there = self.program.there
        return self.point.z[1] * there[1], self.point.z[2] * there[2]

    def _aim(self, mu: Number, step: Point | None) -> None:
        """target = μ - x z - dx dz."""
        xp, point = self.program.xp, self.point
        for k, (target, x, z) in enumerate(zip(self._target, point.x, point.z, strict=True)):
            xp.multiply(x, z, out=target)
            if step is not None:
                target += xp.multiply(step.x[k], step.z[k], out=self._scratch(k))
            xp.subtract(mu, target, out=target)
            there = self.program.there[k]
            if there is not None:
                target *= there

    def _scratch(self, k: int) -> Array:
        return self._work if k == 0 else self.program.xp.empty(self._target[k].shape)

    # ------------------------------------------------------------------------------- directions

    def _lengths(self, step: Point, more: Point | None = None) -> tuple[Number, Number]:
        """How far x and z may go until one of them is 0; with ``more``, along the sum of both."""
        xp, point = self.program.xp, self.point
        found = []
        for own, other, now in (
            (step.x, None if more is None else more.x, point.x),
            (step.z, None if more is None else more.z, point.z),
        ):
            least = []
            for k, (d, x) in enumerate(zip(own, now, strict=True)):
                scratch = self._scratch(k)
                if other is not None:
                    d = xp.add(d, other[k], out=scratch)
                least.append(xp.least(xp.divide(d, x, out=scratch)))
            found.append(-1.0 / xp.smallest(*least, -NOTHING))
        return found[0], found[1]

    def _total_after(self, step: Point, primal: Number, dual: Number) -> Number:
        """Σ (x + p dx)(z + d dz)."""
        xp, point = self.program.xp, self.point
        p, d = xp.smallest(primal, 1.0), xp.smallest(dual, 1.0)
        parts = [
            (xp.dot(x, z), xp.dot(dx, z), xp.dot(x, dz), xp.dot(dx, dz))
            for x, z, dx, dz in zip(point.x, point.z, step.x, step.z, strict=True)
        ]
        return xp.maximum(xp.weighted(parts, p, d), 0.0)

    def _without(self, rest: Residuals, step: Point, lanes: tuple[Array, Array]) -> Residuals:
        """What a step leaves of these residuals."""
        wide, there = self.program.to_lanes(step.x[3]), self.program.there
        kept = self.program.kept(step.x)
        return Residuals(
            rest.u - lanes[0].sum(1) - kept[0],
            rest.v - lanes[1].sum(0) - kept[1],
            rest.rows - (lanes[0] + step.x[1] - wide[0]) * there[1],
            rest.cols - (lanes[1] + step.x[2] - wide[1]) * there[2],
            0.0 * rest.routes,
        )


def _like(xp: Any, point: Point) -> Point:
    def empty(arrays: Arrays) -> Arrays:
        return tuple(xp.zeros(x.shape) for x in arrays)

    return Point(empty(point.x), empty(point.z), xp.zeros(point.u.shape), xp.zeros(point.v.shape))


def _numbers(lengths: list[float]) -> list[float]:
    if np.isnan(lengths).any():
        raise FloatingPointError("the central path was lost")
    return lengths


def _steps(lengths: list[float]) -> list[float]:
    """Whole steps where there is room for more."""
    return [min(1.0, x) for x in _numbers(lengths)]
