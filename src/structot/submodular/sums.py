"""Linear terms and sums: what ``+`` and ``*`` of structures become once bound to a cost.

Notation. F = C + Σ_r F_r with C linear (a cost matrix) and layers F_r.
"""

from __future__ import annotations

import numpy as np

from structot._checks import as_mask, as_matrix, one_of, positive
from structot.submodular.base import METRICS, Minimizer, Submodular, inner

Array = np.ndarray


class Linear(Submodular):
    """F(S) = Σ_{e in S} C_e. Its base polytope is the point C; its transport problem plain OT."""

    def __init__(self, cost: Array) -> None:
        self.shape = cost.shape
        self.cost = cost
        self.monotone = bool(cost.min() >= 0)
        finite = np.isfinite(cost)
        self.allowed = None if finite.all() else finite

    def value(self, mask: Array) -> float:
        return float(self.cost[as_mask("mask", mask, self.shape)].sum())

    def greedy(self, P: Array) -> Array:
        as_matrix("P", P, self.shape)
        return self.cost.copy()

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        return self.greedy(Z)

    def scaled(self, factor: float) -> Linear:
        return Linear(factor * self.cost)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        total = self.cost if shift is None else self.cost + as_matrix("shift", shift, self.shape)
        mask = total < 0
        return Minimizer(mask, float(total[mask].sum()))


class Scaled(Submodular):
    """c · F for c > 0: everything by homogeneity. Written with ``scaled``, not by hand."""

    def __init__(self, function: Submodular, factor: float) -> None:
        self.function, self.factor = function, factor
        self.shape, self.allowed = function.shape, function.allowed
        self.support, self.monotone = function.support, function.monotone

    @property
    def metric(self) -> Array:
        return self.function.metric

    def value(self, mask: Array) -> float:
        return self.factor * self.function.value(mask)

    def greedy(self, P: Array) -> Array:
        return self.factor * self.function.greedy(P)

    def extension(self, P: Array) -> float:
        return self.factor * self.function.extension(P)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        Z = as_matrix("Z", Z, self.shape)
        return self.factor * self.function.project(Z / self.factor, metric)

    def prox(self, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
        return self.function.prox(V, positive("rho", rho) / self.factor, nonnegative=nonnegative)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        shift = np.zeros(self.shape) if shift is None else as_matrix("shift", shift, self.shape)
        mask, value = self.function.minimize(shift / self.factor)
        return Minimizer(mask, self.factor * value)

    @property
    def is_generic(self) -> bool:
        return self.function.is_generic

    def scaled(self, factor: float) -> Submodular:
        return self.function.scaled(factor * self.factor)


class Sum(Submodular):
    """F = C + Σ_r F_r. With one layer, prox and projection are the layer's, shifted by C.

    With several, projections go over the layers one at a time until they settle.
    """

    def __init__(self, linear: Array | None, layers: tuple[Submodular, ...]) -> None:
        self.shape = layers[0].shape
        self.linear = np.zeros(self.shape) if linear is None else linear
        self.layers = layers
        self.monotone = bool(self.linear.min() >= 0) and all(x.monotone for x in layers)
        masks = [p.allowed for p in layers if p.allowed is not None]
        if not np.isfinite(self.linear).all():
            masks.append(np.isfinite(self.linear))
        self.allowed = np.logical_and.reduce(masks) if masks else None
        # On forbidden pairs the sum is never read; zero keeps inf - inf out of the arithmetic.
        self._shift = np.where(np.isfinite(self.linear), self.linear, 0.0)

    @property
    def metric(self) -> Array:
        return self.layers[0].metric if len(self.layers) == 1 else np.ones(self.shape)

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        return float(self.linear[mask].sum()) + sum(layer.value(mask) for layer in self.layers)

    def greedy(self, P: Array) -> Array:
        total = self.linear.copy()
        for layer in self.layers:
            total += layer.greedy(P)
        return total

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        return inner(P, self.linear) + sum(layer.extension(P) for layer in self.layers)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        from structot.submodular.coordinate_descent import project_sum

        one_of("metric", metric, METRICS)
        if metric == "entropy":
            return super().project(Z, metric)
        Z = as_matrix("Z", Z, self.shape) - self._shift
        if len(self.layers) > 1:  # here both metrics are the plain one
            # A visit of a generic layer takes some of its vertices, and Python takes its time:
            # many sweeps would be minutes.
            slow = any(layer.is_generic or layer.interpreted for layer in self.layers)
            sweeps = 100 if slow else 2000
            return self.linear + project_sum(self.layers, Z, max_sweeps=sweeps)
        return self.linear + self.layers[0].project(Z, metric)

    def magnitude(self, P: Array) -> float:
        return inner(P, np.abs(self.linear)) + sum(layer.magnitude(P) for layer in self.layers)

    def scaled(self, factor: float) -> Sum:
        return Sum(factor * self.linear, tuple(layer.scaled(factor) for layer in self.layers))

    def in_units(self, cost: float, mass: float) -> Sum:
        return Sum(self.linear / cost, tuple(layer.in_units(cost, mass) for layer in self.layers))

    def minimize(self, shift: Array | None = None) -> Minimizer:
        if len(self.layers) != 1:
            return super().minimize(shift)
        total = (
            self._shift if shift is None else self._shift + as_matrix("shift", shift, self.shape)
        )
        return self.layers[0].minimize(total)
