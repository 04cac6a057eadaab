"""The path: Mehrotra's predictor and corrector, then Gondzio's correctors while they pay.

Notation as in `newton.py`; μ = Σ x z / N, N the number of products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from structot._deadline import check_time
from structot.solvers.interior_point.lanes.newton import Newton
from structot.solvers.interior_point.lanes.program import Arrays, Point, Program, Residuals

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
    """Iterates that approach the optimum; `point` is the last one."""

    def __init__(self, program: Program, point: Point) -> None:
        self.program, self.point = program, point
        self.newton = Newton(program)
        self._step, self._more = _like(program.xp, point), _like(program.xp, point)
        xp = program.xp
        self._target: Arrays = tuple(xp.zeros(x.shape) for x in point.x)
        self._work = self.newton._work

    @property
    def total(self) -> float:
        """Σ x z: how far value and bound of the iterate are apart."""
        return self.point.products(self.program.xp)

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
        program, point = self.program, self.point
        rest = self.residuals()
        total = self.total
        if not np.isfinite(total):
            raise FloatingPointError("the central path was lost")
        mu = total / program.size
        self.newton.factor(point)
        self._aim(0.0, None)
        self.newton.step(self._target, rest, self._step)
        lengths = self._lengths(self._step)
        aimed = self._total_after(self._step, *lengths) / program.size
        centre = mu * (aimed / mu) ** 3
        self._aim(centre, self._step)
        self.newton.step(self._target, rest, self._step)
        lengths = self._lengths(self._step)
        for _ in range(_CORRECTORS):
            better = self._correct(lengths, centre)
            if better is None:
                break
            lengths = better
        self._refine(rest, total)
        lengths = self._lengths(self._step)
        primal, dual = (min(1.0, _BACK * x) for x in lengths)
        self._move(primal, dual)
        return min(primal, dual)

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

    def _aim(self, mu: float, step: Point | None) -> None:
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
        return self._work if k == 0 else self.program.xp.zeros(self._target[k].shape)

    # ------------------------------------------------------------------------------- directions

    def _lengths(self, step: Point, more: Point | None = None) -> tuple[float, float]:
        """How far x and z may go until one of them is 0; with ``more``, along the sum of both."""
        xp, point = self.program.xp, self.point
        found = []
        for own, other, now in (
            (step.x, None if more is None else more.x, point.x),
            (step.z, None if more is None else more.z, point.z),
        ):
            least = 0.0
            for k, (d, x) in enumerate(zip(own, now, strict=True)):
                scratch = self._scratch(k)
                if other is not None:
                    d = xp.add(d, other[k], out=scratch)
                least = min(least, xp.least(xp.divide(d, x, out=scratch)))
            if np.isnan(least):
                raise FloatingPointError("the central path was lost")
            found.append(-1.0 / least if least < 0.0 else np.inf)
        return found[0], found[1]

    def _total_after(self, step: Point, primal: float, dual: float) -> float:
        """Σ (x + p dx)(z + d dz)."""
        xp, point = self.program.xp, self.point
        p, d = min(primal, 1.0), min(dual, 1.0)
        total = 0.0
        for x, z, dx, dz in zip(point.x, point.z, step.x, step.z, strict=True):
            total += xp.dot(x, z) + p * xp.dot(dx, z) + d * xp.dot(x, dz) + p * d * xp.dot(dx, dz)
        return max(total, 0.0)

    def _correct(self, lengths: tuple[float, float], mu: float) -> tuple[float, float] | None:
        """Gondzio's corrector: bring products that a longer step would spoil back to near μ."""
        xp, point, step = self.program.xp, self.point, self._step
        primal, dual = (min(1.0, x) for x in lengths)
        if min(primal, dual) > 0.9:
            return None
        longer = min(1.0, primal + _LONGER), min(1.0, dual + _LONGER)
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
        none = self._no_residuals()
        self.newton.step(self._target, none, self._more)
        found = self._lengths(step, self._more)
        gained = min(min(1.0, found[0]) - primal, min(1.0, found[1]) - dual)
        if gained < _WORTH * _LONGER:
            return None
        _add(step, self._more)
        return found

    def _no_residuals(self) -> Residuals:
        p, xp = self.program, self.program.xp
        shapes = (p.a.shape, p.b.shape, p.source.shape, p.target.shape, p.price.shape)
        return Residuals(*(xp.zeros(shape) for shape in shapes))

    def _refine(self, rest: Residuals, total: float) -> None:
        """Solve for what the step leaves of the equations, as long as that makes it less."""
        program, step = self.program, self._step
        left = self._left(rest, step, program.lane_sums(step.x[0]))
        for _ in range(_REFINEMENTS):
            size = left.size()
            if size <= _INEXACT * total:
                return
            after = self._left(left, self._more, self.newton.step(None, left, self._more))
            if not after.size() < _LESS * size:
                return
            _add(step, self._more)
            left = after

    def _left(self, rest: Residuals, step: Point, lanes: tuple[Array, Array]) -> Residuals:
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

    def _move(self, primal: float, dual: float) -> None:
        point, step = self.point, self._step
        for length, now, way in ((primal, point.x, step.x), (dual, point.z, step.z)):
            for k, (x, d) in enumerate(zip(now, way, strict=True)):
                x += self.program.xp.multiply(d, length, out=self._scratch(k))
        point.u += dual * step.u
        point.v += dual * step.v


def _like(xp: Any, point: Point) -> Point:
    def empty(arrays: Arrays) -> Arrays:
        return tuple(xp.zeros(x.shape) for x in arrays)

    return Point(empty(point.x), empty(point.z), xp.zeros(point.u.shape), xp.zeros(point.v.shape))


def _add(step: Point, more: Point) -> None:
    for x, d in zip((*step.x, *step.z), (*more.x, *more.z), strict=True):
        x += d
    step.u += more.u
    step.v += more.v
