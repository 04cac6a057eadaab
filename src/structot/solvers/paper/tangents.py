"""Linearisations of a convex function, as costs that bound it from below.

Notation. f convex, G a subgradient at the plan P of total mass T: f(Q) >= c + <G, Q> for all Q with
the offset c = f(P) - <G, P>. On plans of the same total that is <G + c/T, Q>.
"""

from __future__ import annotations

import numpy as np

from structot._typing import Array
from structot.problem import Problem
from structot.submodular.base import inner
from structot.transport import emd

# By how much rounding may lift a linearisation above its function, relative to the terms.
_SLACK = 1e-9


class Tangents:
    """The linearisations along the way, each tested against f at the plan of the last one.

    A function that is not convex, or a wrong subgradient, would prove wrong bounds. The first one,
    which may end it all, is tested where it is lowest, at the plan that its bound is about.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last: tuple[Array, float, Array] | None = None

    def cost(self, P: Array, G: Array) -> Array:
        """G + c/T on the allowed pairs, 0 elsewhere: <Q, cost> <= f(Q) for every plan Q."""
        function = self._problem.function
        value = function.extension(P)
        if self._last is None:
            cost = G if function.allowed is None else np.where(function.allowed, G, np.inf)
            Q = emd(cost, self._problem.a, self._problem.b).plan
            other = function.extension(Q)
            _test(other, value + inner(Q - P, G), abs(value) + abs(other) + inner(Q, abs(G)))
        else:
            Q, other, H = self._last
            _test(value, other + inner(P - Q, H), abs(value) + abs(other) + inner(P, abs(H)))
            _test(other, value + inner(Q - P, G), abs(value) + abs(other) + inner(Q, abs(G)))
        self._last = P, value, G
        K = G + (value - inner(P, G)) / self._problem.total
        return K if function.allowed is None else np.where(function.allowed, K, 0.0)


def _test(value: float, bound: float, size: float) -> None:
    if bound > value + _SLACK * size:
        raise ValueError(
            f"ConvexCost: the linearisation at one plan is {bound:.8g} at another, where value is "
            f"only {value:.8g}; value is not convex or subgradient is wrong (compare it with "
            "finite differences of value)."
        )
