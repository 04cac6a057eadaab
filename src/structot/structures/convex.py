"""ConvexCost: any convex function of the plan, by values and subgradients.

Notation. f convex on plans P >= 0, G_t a subgradient at P_t. Each gives an affine minorant
f(P) >= f(P_t) + <G_t, P - P_t>, and so does every average of them. On plans of total mass T an
affine function c + <G, P> is the linear one <G + c/T, P>: that is how bounds are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from structot._checks import as_array, as_matrix
from structot._typing import Array
from structot.structures.base import Structure
from structot.submodular.base import Kind, Layer, inner
from structot.submodular.bound import BoundCost


class ConvexCost(Structure):
    """min_{P in U(a,b)} f(P) for any convex f with a subgradient, submodular or not.

    Solved by mirror descent, the only method that needs no more than this; the lower bound is
    Σ η_t [f(P_t) - <G_t, P_t>] / Σ η_t + OT(Σ η_t G_t / Σ η_t), from the averaged linearisations.
    The gap falls like 1/√t, so ask for a modest ``tol`` (1e-2 to 1e-3) or set ``max_iter`` or
    ``time_limit``. Adds to other structures, which then are solved by mirror descent as well.

    The bound is as right as f is convex and G its subgradient. Both are tested along the way, and
    a linearisation that rises above f at a later plan raises an error.

    Parameters
    ----------
    value
        value(P) -> float, for arrays P >= 0 of shape (n, m) with marginals near a and b.
    subgradient
        subgradient(P) -> array (n, m), finite wherever P is allowed to be positive.

    Examples
    --------
    Transport that avoids concentrated mass:

    >>> import numpy as np, structot as sot
    >>> M = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> spread = ConvexCost(lambda P: np.sum(M * P) + np.sum(P**2), lambda P: M + 2 * P)
    >>> result = sot.solve(M, structure=spread, tol=1e-2)
    >>> result.method, result.converged, round(result.value, 2)
    ('mirror_descent', True, 0.5)
    """

    def __init__(
        self, value: Callable[[Array], float], subgradient: Callable[[Array], Array]
    ) -> None:
        for name, function in (("value", value), ("subgradient", subgradient)):
            if not callable(function):
                raise ValueError(f"{name} must be callable with a plan (n, m); got {function!r}.")
        self.value, self.subgradient = value, subgradient

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        finite = np.isfinite(M)
        allowed = None if finite.all() else finite
        return BoundCost.of(None, [ConvexFunction(self.value, self.subgradient, M.shape, allowed)])

    def __repr__(self) -> str:
        names = [
            getattr(function, "__name__", type(function).__name__)
            for function in (self.value, self.subgradient)
        ]
        return f"ConvexCost({', '.join(names)})"


class ConvexFunction(Layer):
    """factor/mass · f(mass · P) over the edges: ``extension`` is that, ``greedy`` a subgradient.

    It stands among the layers of a sum, but is no set function: there is no base polytope.
    """

    kind: ClassVar[Kind] = "convex"

    def __init__(
        self,
        value: Callable[[Array], float],
        subgradient: Callable[[Array], Array],
        shape: tuple[int, int],
        allowed: Array | None,
        factor: float = 1.0,
        mass: float = 1.0,
    ) -> None:
        self.shape, self.allowed = shape, allowed
        self._value, self._subgradient, self._factor = value, subgradient, factor
        self._mass = mass  # the user's functions see plans in these units

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        answer = _called("value", self._value, P * self._mass)
        try:
            value = float(answer)
        except (TypeError, ValueError):
            raise ValueError(f"value must return a number for a plan; got {answer!r}.") from None
        if not np.isfinite(value):
            raise ValueError(
                f"value returned {value} for a plan; f must be finite on all plans P >= 0."
            )
        return self._factor * value / self._mass

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        answer = _called("subgradient", self._subgradient, P * self._mass)
        G = as_array("subgradient(P)", answer, 2)
        if G.shape != self.shape:
            raise ValueError(
                f"subgradient returned shape {G.shape} for a plan of shape {self.shape}; "
                "return one entry per pair."
            )
        bad = ~np.isfinite(G) & self._allowed()
        if bad.any():
            i, j = (int(k[0]) for k in np.nonzero(bad))
            raise ValueError(
                f"subgradient returned {G[i, j]} at ({i}, {j}), where P = {P[i, j]:.3g}; it must "
                "be finite on allowed pairs (forbid pairs with M = +inf)."
            )
        return self._blank_cost() + self._factor * np.where(self._allowed(), G, 0.0)

    def scaled(self, factor: float) -> ConvexFunction:
        return self._with(factor * self._factor, self._mass)

    def in_units(self, cost: float, mass: float) -> ConvexFunction:
        return self._with(self._factor / cost, self._mass * mass)

    def _with(self, factor: float, mass: float) -> ConvexFunction:
        return ConvexFunction(
            self._value, self._subgradient, self.shape, self.allowed, factor, mass
        )

    def magnitude(self, P: Array) -> float:
        return abs(self.extension(P)) + inner(P, np.abs(self.greedy(P)))


def _called(name: str, function: Callable, P: Array) -> Any:
    """What a function of the user returns; what it raises is no fault of the solver."""
    try:
        return function(P)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{name} raised {error!r} for a plan; f must be finite on all.") from error
