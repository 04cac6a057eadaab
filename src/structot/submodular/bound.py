"""A cost bound to the pairs of one problem: a linear part plus layers.

Notation. F = C + Σ_r F_r with C linear (a cost matrix) and layers F_r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from structot._checks import as_mask, as_matrix, one_of
from structot._typing import Array
from structot.submodular.base import METRICS, Kind, Layer, Minimizer, Submodular, inner
from structot.submodular.coordinate_descent import project_sum
from structot.submodular.lanes import Lanes


@dataclass(frozen=True, eq=False, repr=False)
class BoundCost(Submodular):
    """F = C + Σ_r F_r over the allowed pairs: what `Structure.bind` makes of a ground cost.

    Without layers it is plain transport, whose base polytope is the point C. With one layer, prox
    and projection are the layer's, shifted by C. With several, projections go over the layers one
    at a time until they settle.

    Parameters
    ----------
    linear
        C, shape (n, m), +inf on forbidden pairs; None for zero.
    layers
        F_r; their ``kind`` tells solvers what they can do with them.
    allowed
        The pairs that are edges, (n, m); None for all.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> bound = sot.Modular().bind([[1.0, 2.0], [3.0, 4.0]])
    >>> bound.value(np.array([[True, False], [False, True]]))
    5.0
    """

    linear: Array | None
    layers: tuple[Layer, ...]
    allowed: Array | None
    kind: ClassVar[Kind] = "sum"

    @classmethod
    def of(cls, linear: Array | None, layers: Sequence[Layer]) -> BoundCost:
        """The sum of these, over the pairs that all of them allow."""
        masks = [layer.allowed for layer in layers if layer.allowed is not None]
        if linear is not None and not (finite := np.isfinite(linear)).all():
            masks.append(finite)
        return cls(linear, tuple(layers), np.logical_and.reduce(masks) if masks else None)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.layers[0].shape if self.linear is None else self.linear.shape

    @cached_property
    def monotone(self) -> bool:  # type: ignore[override]
        rises = self.linear is None or bool(self.linear.min() >= 0)
        return rises and all(layer.monotone for layer in self.layers)

    @property
    def is_convex(self) -> bool:
        """Whether a layer is known by values and subgradients only: then there is no polytope."""
        return any(layer.kind == "convex" for layer in self.layers)

    @property
    def lanes(self) -> Lanes | None:
        """The price of routes, if it is part of this: then it is the only layer."""
        return next((layer for layer in self.layers if isinstance(layer, Lanes)), None)

    @property
    def set_functions(self) -> tuple[Submodular, ...]:
        """The layers, all of which must have a base polytope."""
        if self.is_convex:
            raise ValueError(
                "a ConvexCost is no set function: it has values and subgradients at plans only, "
                "and is solved by method='mirror_descent'."
            )
        if self.lanes is not None:
            raise ValueError(
                "Routes prices shares of points, not pairs: there is no base polytope to project "
                "onto. It has value, extension and greedy; sot.solve solves it."
            )
        return cast(tuple[Submodular, ...], self.layers)

    @cached_property
    def modular_cost(self) -> Array | None:
        """The cost C of a modular F = <C, ·>, as in plain transport; None if F is not modular."""
        costs = [layer.modular_cost for layer in self.layers]
        parts = [cost for cost in (self.linear, *costs) if cost is not None]
        if len(parts) < len(costs) + (self.linear is not None):
            return None
        return parts[0] if len(parts) == 1 else np.add.reduce(parts)

    @property
    def metric(self) -> Array:
        return self.set_functions[0].metric if len(self.layers) == 1 else np.ones(self.shape)

    @property
    def entropy_weights(self) -> Array | float:
        return self.layers[0].entropy_weights if len(self.layers) == 1 else 1.0

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        linear = 0.0 if self.linear is None else float(self.linear[mask].sum())
        if self.lanes is not None:
            return linear + self.lanes.value(mask)
        return linear + sum(layer.value(mask) for layer in self.set_functions)

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        return self._plus_linear([layer.greedy(P) for layer in self.layers])

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        linear = 0.0 if self.linear is None else inner(P, self.linear)
        return linear + sum(layer.extension(P) for layer in self.layers)

    def magnitude(self, P: Array) -> float:
        linear = 0.0 if self.linear is None else inner(P, np.abs(self.linear))
        return linear + sum(layer.magnitude(P) for layer in self.layers)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        layers = self.set_functions
        if not layers:
            return self.greedy(Z)
        if metric == "entropy" and (len(layers) > 1 or self.linear is not None):
            return super().project(Z, metric)
        Z = self._shifted("Z", Z, -1.0)
        if len(layers) == 1:
            return self._plus_linear([layers[0].project(Z, metric)])
        # Of several layers both metrics are the plain one. A visit of a generic layer takes some of
        # its vertices, and Python takes its time: many sweeps would be minutes.
        slow = any(layer.kind == "generic" or layer.interpreted for layer in layers)
        return self._plus_linear([project_sum(layers, Z, max_sweeps=100 if slow else 2000)])

    def project_potentials(self, u: Array, v: Array) -> Array:
        if self.linear is None and len(self.layers) == 1:
            return self.set_functions[0].project_potentials(u, v)
        return super().project_potentials(u, v)

    def prox(self, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
        if self.linear is None and len(self.layers) == 1:
            return self.set_functions[0].prox(V, rho, nonnegative=nonnegative)
        return super().prox(V, rho, nonnegative=nonnegative)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        layers = self.set_functions
        if len(layers) > 1:
            return super().minimize(shift)
        total = self._shifted("shift", np.zeros(self.shape) if shift is None else shift, 1.0)
        if layers:
            return layers[0].minimize(total)
        mask = (total < 0) & self._allowed()
        return Minimizer(mask, float(total[mask].sum()))

    def scaled(self, factor: float) -> BoundCost:
        linear = None if self.linear is None else factor * self.linear
        return BoundCost(linear, tuple(x.scaled(factor) for x in self.layers), self.allowed)

    def in_units(self, cost: float, mass: float) -> BoundCost:
        linear = None if self.linear is None else self.linear / cost
        layers = tuple(layer.in_units(cost, mass) for layer in self.layers)
        return BoundCost(linear, layers, self.allowed)

    def _plus_linear(self, costs: list[Array]) -> Array:
        """C plus these, as a new array."""
        first, *rest = costs if self.linear is None else (self.linear.copy(), *costs)
        for K in rest:
            first += K
        return first

    def _shifted(self, name: str, Z: Array, factor: float) -> Array:
        """Z + factor · C where that is a number: on forbidden pairs it is never read."""
        Z = as_matrix(name, Z, self.shape)
        if self.linear is None:
            return Z
        if self.allowed is None:
            return Z + factor * self.linear
        return Z + factor * np.where(np.isfinite(self.linear), self.linear, 0.0)
