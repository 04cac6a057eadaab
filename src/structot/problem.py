"""A structured transport problem: validated once, then frozen.

Notation. M the ground cost (n, m), a and b the marginals with total T, F the submodular function,
f its Lovász extension, r = a bᵀ / T the independent plan, d the metric of F.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structot import _checks
from structot.polytope.blocks import Blocks
from structot.structures.base import Structure
from structot.structures.modular import Modular
from structot.submodular.base import Submodular
from structot.submodular.sums import Linear, Sum
from structot.transport import InfeasibleError, round_plan

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Problem:
    """min_{P in U(a,b)} f(P) + reg Σ d_ij (P_ij log(P_ij / r_ij) - P_ij + r_ij).

    Made by `Problem.of`, which checks everything a user may pass.

    Examples
    --------
    >>> import numpy as np
    >>> Problem.of(np.ones((2, 3))).total
    1.0
    """

    M: Array
    a: Array
    b: Array
    structure: Structure
    function: Submodular
    reg: float
    dtype: np.dtype

    @classmethod
    def of(
        cls,
        M: object,
        a: object | None = None,
        b: object | None = None,
        *,
        structure: Structure | None = None,
        reg: float = 0.0,
    ) -> Problem:
        """Check the input and bind the structure to the cost."""
        cost = _checks.as_cost(M)
        n, m = cost.shape
        weights_a = _checks.as_weights("a", a, n)
        weights_b = _checks.as_weights("b", b, m)
        weights_a, weights_b = _checks.balance(weights_a, weights_b, _checks.coarsest_type(a, b))
        _checks.check_forbidden(cost, weights_a, weights_b)
        structure = Modular() if structure is None else structure
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure must be a structure such as sot.Groups(labels); got {structure!r}."
            )
        function = structure.bind(cost)
        if function.allowed is not None:
            _check_feasible(weights_a, weights_b, function.allowed)
        reg = _checks.nonnegative("reg", reg)
        dtype = _checks.float_type(M, a, b)
        return cls(cost, weights_a, weights_b, structure, function, reg, dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.function.shape

    @property
    def total(self) -> float:
        """T, the mass to be moved."""
        return float(self.a.sum())

    @property
    def linear(self) -> Array | None:
        """The linear part of F, or None."""
        if isinstance(self.function, Linear):
            return self.function.cost
        return self.function.linear if isinstance(self.function, Sum) else None

    @property
    def layers(self) -> tuple[Submodular, ...]:
        """The nonlinear parts of F, each with its own prox."""
        if isinstance(self.function, Linear):
            return ()
        return self.function.layers if isinstance(self.function, Sum) else (self.function,)

    @cached_property
    def modular_cost(self) -> Array | None:
        """The cost C of a modular F = <C, ·>, as in plain transport; None if F is not modular."""
        cost = self.linear
        for layer in self.layers:
            if not (isinstance(layer, Blocks) and layer.is_modular):
                return None
            own = layer.cost_of_edges(layer.single_edges())
            cost = own if cost is None else cost + own
        return cost

    @property
    def independent(self) -> Array:
        """The plan a bᵀ / T, renormalised onto the allowed pairs only by the solvers."""
        return np.outer(self.a, self.b / self.total)

    def objective(self, P: Array) -> float:
        """f(P), plus the entropy term when reg > 0."""
        return self.function.extension(P) + self.entropy_term(P)

    def entropy_term(self, P: Array) -> float:
        """reg Σ d (P log(P/r) - P + r) over the allowed pairs."""
        if self.reg == 0:
            return 0.0
        r = self.independent
        terms = r - P
        used = P > 0
        terms[used] += P[used] * np.log(P[used] / r[used])
        allowed = self.function.allowed
        metric = self.function.metric
        total = np.sum(metric * terms, where=True if allowed is None else allowed)
        return self.reg * float(total)

    @cached_property
    def scale(self) -> float:
        """A value this small is zero: 1e-12 of moving everything at the largest finite cost."""
        largest = float(self.M.max(where=np.isfinite(self.M), initial=0.0))
        if largest == 0:  # then the prices of F are all there is
            prices = self.function.greedy(self.independent)
            largest = float(np.abs(prices[np.isfinite(prices)]).max(initial=0.0))
        return max(1e-12 * self.total * largest, np.finfo(float).tiny)

    def relative_gap(self, value: float, lower_bound: float) -> float:
        """(value - lower_bound) / max(|value|, scale)."""
        return (value - lower_bound) / max(abs(value), self.scale)


def _check_feasible(a: Array, b: Array, allowed: Array) -> None:
    try:
        round_plan(np.zeros(allowed.shape), a, b, allowed=allowed)
    except InfeasibleError:
        raise InfeasibleError(
            "no plan with the marginals a and b avoids the forbidden pairs (M = +inf). "
            "Allow more pairs or change the weights."
        ) from None
