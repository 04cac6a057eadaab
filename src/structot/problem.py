"""A structured transport problem: validated once, brought to its own units once, then frozen.

Notation. M the ground cost (n, m), a and b the weights with totals T_a and T_b, T = √(T_a T_b), D_a
and D_b what a plan pays for other marginals (`marginals/`), F the submodular function, f its Lovász
extension, r = a bᵀ / T the independent plan, d the metric of the entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from structot import _checks
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.concave import Linear
from structot.marginals import Marginals
from structot.structures.base import Structure
from structot.structures.modular import Modular
from structot.submodular.base import Layer, inner
from structot.submodular.bound import BoundCost
from structot.submodular.lanes import Lanes
from structot.transport import InfeasibleError, relative_entropy

# Exponent of the largest unit: its inverse must be a number too.
_LARGEST = 1000


class Units(NamedTuple):
    """What 1 is worth in the user's numbers: powers of two, so that changing units rounds nothing.

    Costs, potentials and `reg` are in units of ``cost``, plans in units of ``mass``, values in
    units of both.
    """

    cost: float = 1.0
    mass: float = 1.0

    @property
    def value(self) -> float:
        return self.cost * self.mass


class Objective(NamedTuple):
    """f(P), the entropy term, the price of the marginals, and the size of what all are made of."""

    structured: float
    entropy: float
    magnitude: float
    penalty: float = 0.0

    @property
    def value(self) -> float:
        return self.structured + self.entropy + self.penalty


@dataclass(frozen=True, eq=False)
class Problem:
    """min_{P >= 0} f(P) + D_a(P1) + D_b(Pᵀ1) + reg Σ d_ij (P_ij log(P_ij / r_ij) - P_ij + r_ij).

    With hard marginals D_a and D_b say that P is in U(a, b). Made by `Problem.of`, which checks
    everything a user may pass. Solvers work on `normalized()`, the same problem in units in which
    costs and masses are near 1: no constant in a solver meets the user's units, and factors of two
    in the input change no bit of the plan. ``M`` stays as it was given; everything else is in units
    of ``units``.

    Examples
    --------
    >>> import numpy as np
    >>> Problem.of(np.ones((2, 3))).total
    1.0
    """

    M: Array
    marginals: Marginals
    structure: Structure
    function: BoundCost
    reg: float
    dtype: np.dtype
    units: Units = field(default=Units())

    @classmethod
    def of(
        cls,
        M: object,
        a: object | None = None,
        b: object | None = None,
        *,
        structure: Structure | None = None,
        reg: float = 0.0,
        unbalanced: object = None,
        unbalanced_type: str = "KL",
        mass: float | None = None,
    ) -> Problem:
        """Check the input and bind the structure to the cost."""
        _checks.refuse_points(M, a)
        cost = _checks.as_cost(M)
        n, m = cost.shape
        weights_a = _checks.as_weights("a", a, n)
        weights_b = _checks.as_weights("b", b, m)
        prices = _checks.as_relaxation(unbalanced, mass)
        kind = _checks.one_of("unbalanced_type", unbalanced_type, ("KL", "TV"))
        if mass is not None:
            mass = _checks.as_mass(mass, float(weights_a.sum()), float(weights_b.sum()))
        elif prices == (None, None):
            precision = _checks.coarsest_type(a, b)
            weights_a, weights_b = _checks.balance(weights_a, weights_b, precision)
        marginals = Marginals.of(weights_a, weights_b, prices, kind, mass)
        if mass is not None and marginals.hard:  # all of it
            marginals = Marginals.of(*_checks.balance(weights_a, weights_b, np.dtype(float)))
        hard = marginals.rows.hard, marginals.columns.hard
        _checks.check_forbidden(cost, weights_a, weights_b, hard)
        structure = Modular() if structure is None else structure
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure must be a structure such as sot.Groups(labels); got {structure!r}."
            )
        function = structure.bind(cost, weights_a, weights_b)
        if function.allowed is not None:
            _check_feasible(marginals, function.allowed)
        reg = _checks.nonnegative("reg", reg)
        dtype = _checks.float_type(M, a, b)
        return cls(cost, marginals, structure, function, reg, dtype)

    def normalized(self) -> Problem:
        """The same problem in units in which the total mass and a typical cost lie in [1, 2)."""
        mass = _power_of_two(self.total)
        level = self._level()
        cost = _power_of_two(level)
        if self.reg > 0 and not 1e-100 <= self.reg / cost <= 1e100:
            raise ValueError(
                f"reg = {self.reg:.3g} is out of all proportion to costs of about {level:.3g}; "
                "use reg=0 for no entropy, or a reg that is a fraction of the costs."
            )
        return replace(
            self,
            marginals=self.marginals.in_units(cost, mass),
            function=self.function.in_units(cost, mass),
            reg=self.reg / cost,
            units=Units(self.units.cost * cost, self.units.mass * mass),
        )

    def _level(self) -> float:
        """What a unit of mass costs in the independent plan, all prices taken as positive."""
        r, allowed = self.independent, self.function.allowed
        if self.monotone and allowed is None:
            level = self.function.extension(r) / self.total
            if level > 0.0:
                return level
        price = np.abs(self.function.greedy(r))
        if allowed is not None:
            price[~allowed] = 0.0
        # Where the prices of the independent plan vanish, as for a cut, the largest one tells.
        return float(np.sum(price * r)) / self.total or float(price.max())

    @property
    def shape(self) -> tuple[int, int]:
        return self.function.shape

    @property
    def a(self) -> Array:
        return self.marginals.a

    @property
    def b(self) -> Array:
        return self.marginals.b

    @cached_property
    def total(self) -> float:
        """T, the mass of the points: the geometric mean where the totals of both sides differ."""
        T = float(self.a.sum())
        return T if self.marginals.hard else _geometric_mean(T, float(self.b.sum()))

    @property
    def ground_cost(self) -> Array:
        """M in the units of the problem."""
        return self.M / self.units.cost

    @property
    def monotone(self) -> bool:
        """Whether F is: then f(P) is a sum of positive terms, and nothing cancels."""
        return self.function.monotone

    @property
    def linear(self) -> Array | None:
        """The linear part of F, or None."""
        return self.function.linear

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The nonlinear parts of F."""
        return self.function.layers

    @property
    def form(self) -> str:
        """What F is made of, as far as the choice of a method depends on it."""
        if self.function.is_convex:
            return "convex"
        if self.function.modular_cost is not None:
            return "linear"
        if self.lanes is not None:
            return "lanes"
        return "layers" if self.blocks is None else "blocks"

    @property
    def blocks(self) -> Blocks | None:
        """The layer of disjoint blocks of an F that has no other layer; None otherwise."""
        only = len(self.layers) == 1 and self.layers[0].kind == "blocks"
        return cast(Blocks, self.layers[0]) if only else None

    def with_blocks(self) -> Problem:
        """The same with a layer of blocks: one of no cost beside an F that is linear."""
        if self.layers:
            return self
        edges = np.ones(self.shape) if self.linear is None else np.isfinite(self.linear)
        weights, one = np.where(edges, 1.0, np.inf), np.ones(1)
        layer = Blocks.of_labels(weights, np.zeros(self.shape, int), Linear(), 0.0 * one, one)
        return replace(self, function=replace(self.function, layers=(layer,)))

    @property
    def lanes(self) -> Lanes | None:
        """The price of the routes between groups, if F has one."""
        return self.function.lanes

    @property
    def independent(self) -> Array:
        """The plan a bᵀ / T, renormalised onto the allowed pairs only by the solvers."""
        return np.outer(self.a, self.b / self.total)

    @property
    def metric(self) -> Array | float:
        """d, 1 on average, so that reg is a cost for every structure."""
        return self.function.entropy_weights

    def evaluate(self, P: Array) -> Objective:
        """The objective at a plan, term by term."""
        f = self.function.extension(P)
        penalty, price_size = self.marginals.penalty(P)
        size = (f if self.monotone else self.function.magnitude(P)) + price_size
        if self.reg == 0:
            return Objective(f, 0.0, size, penalty)
        entropy, error = self._entropy(P)
        return Objective(f, self.reg * entropy, size + self.reg * (entropy + error), penalty)

    def objective(self, P: Array) -> float:
        """f(P), the price of the marginals, and the entropy term when reg > 0."""
        return self.function.extension(P) + self.entropy_term(P) + self.marginals.penalty(P)[0]

    def entropy_term(self, P: Array) -> float:
        """reg Σ d (P log(P/r) - P + r) over the allowed pairs."""
        return 0.0 if self.reg == 0 else self.reg * self._entropy(P)[0]

    def _entropy(self, P: Array) -> tuple[float, float]:
        return relative_entropy(
            P, self.a, self.b, self.metric, self.function.allowed, total=self.total
        )

    def feasible(
        self,
        P: Array,
        potentials: tuple[Array, Array] | None = None,
        overwrite: bool = False,
    ) -> Array:
        """A plan near P with finite price: rounded into U(a, b), or as `Marginals.feasible`."""
        # Where r = 0 the entropy of any mass is infinite.
        return self.marginals.feasible(
            P, potentials, self.function.allowed, overwrite, empty=self.reg > 0
        )

    def released(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Potentials to begin with: of the best shift, and best where a point has no pair."""
        pairs, marginals = self.function.allowed, self.marginals
        if pairs is not None:
            some = [np.asarray(pairs.any(axis=axis)) for axis in (1, 0)]
            p, q = marginals.released(p, q, *some)
        return marginals.clip(*marginals.shifted(p, q))

    def linear_value(self, P: Array) -> float:
        """<P, M>."""
        return inner(P, self.M) / self.units.cost


def _geometric_mean(x: float, y: float) -> float:
    """√(x y), to the same bits in all units that are powers of two."""
    (p, i), (q, j) = math.frexp(x), math.frexp(y)
    odd = (i + j) % 2
    return math.ldexp(math.sqrt(math.ldexp(p * q, odd)), (i + j - odd) // 2)


def _power_of_two(x: float) -> float:
    """The largest power of two that is not above x; 1 where there is none."""
    if not 0.0 < x < math.inf:
        return 1.0
    return 2.0 ** min(max(math.frexp(x)[1] - 1, -_LARGEST), _LARGEST)


def _check_feasible(marginals: Marginals, allowed: Array) -> None:
    try:
        marginals.feasible(np.zeros(allowed.shape), None, allowed)
    except InfeasibleError:
        raise InfeasibleError(
            "no plan with the marginals a and b avoids the forbidden pairs (M = +inf). "
            "Allow more pairs or change the weights."
        ) from None
