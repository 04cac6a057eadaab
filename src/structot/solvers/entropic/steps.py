"""The best step of the multipliers, in the quadratic model of the smooth dual at its last point.

Notation. φ the dual function of `dual.py`, H its negative Hessian, D a diagonal that is added to
it, g the gradient of φ inside of the domain of the multipliers; the best step s has
(H + diag(D)) s = g where the domain does not end (`bounded.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structot._typing import Array
from structot.problem import Problem
from structot.solvers.entropic.bounded import Model, bounded_step
from structot.solvers.entropic.dual import SmoothDual
from structot.solvers.entropic.hessian import Directions, Hessian

# Damping, as a fraction of the diagonal of H: beyond rounding.
_RIDGE = 1e-10


class Direction(NamedTuple):
    """A step s of the multipliers, the slope of φ along it, and by how much it changes p ⊕ q, on
    average (quadratic) over the plan.
    """

    s: Array
    slope: float
    change: float


class Steps:
    """The best steps of the models of a dual function, point after point.

    Parameters
    ----------
    rounds
        So often a step is computed anew with more curvature on edges that it makes explode.
    longest
        No step is longer.
    """

    def __init__(
        self,
        problem: Problem,
        dual: SmoothDual,
        directions: Directions,
        rounds: int,
        longest: float,
    ) -> None:
        self.marginals, self.dual, self.directions = problem.marginals, dual, directions
        self.rounds, self.longest = rounds, longest
        self._standing: Array | None = None  # multipliers that end where their domain does

    def best(self, reach: float, extra: Array | float = 0.0) -> Direction:
        """The step towards the gradient and ``extra``, of a model for steps of this reach."""
        s, slope = self._found(reach, extra)
        # Parts of the plan that hardly meet make H nearly singular: no step beyond all costs.
        length = float(np.abs(s).max())
        part = self.longest / length if length > self.longest else 1.0
        return Direction(part * s, part * slope, part * self.dual.change(s))

    def _found(self, reach: float, extra: Array | float) -> tuple[Array, float]:
        """The same, however long."""
        dual, H = self.dual, self.dual.hessian(reach)
        g = dual.inner_gradient + extra
        left = self.rounds

        def stiffer(s: Array) -> Model | None:
            nonlocal H, left
            found = dual.stiffened(H, s) if left > 0 else None
            if found is None:
                return None
            H, left = found, left - 1
            return self._model(H, g)

        if self.marginals.smooth:
            model = self._model(H, g)
            s = model.solve(g)
            while (following := stiffer(s)) is not None:
                model = following
                s = model.solve(g)
            slope = float(g @ s)
        else:
            point = dual.p, dual.q
            # Nothing else may hold the first model: its H is as large as the plan.
            step = bounded_step(self._model(H, g), self.marginals, point, self._standing, stiffer)
            s, self._standing, slope = step
        self.directions.forget()
        if np.isfinite(s).all():
            return s, slope
        return np.zeros_like(s), 0.0  # H has over- or underflowed

    def _model(self, H: Hessian, g: Array) -> Model:
        dual = self.dual
        D = _RIDGE * H.diagonal + self._lent(H.diagonal)
        D += self.marginals.curvature(dual.p, dual.q)
        tol = min(0.1, dual.error)

        def solve(X: Array, still: Array | None = None) -> Array:
            if still is None:
                return self.directions.solve(H, X, D, tol)
            return self.directions.solve_free(H, X, D, still, tol)

        return Model(solve, H.times, g, D)

    def _lent(self, diagonal: Array) -> Array:
        """Curvature that points whose part of the plan is not alive yet borrow from the plan r."""
        dual = self.dual
        marginals = np.concatenate([dual.a, dual.b])
        least = 1e-2 * marginals * (dual.total / (dual.reg * dual.mass))
        lent = np.maximum(least - diagonal, 0.0)
        lent[diagonal + lent == 0.0] = 1.0  # points without mass stay where they are
        return lent
