"""Linear terms and sums: what ``+`` and ``*`` of structures become once bound to a cost.

Notation. F = C + Σ_r F_r with C linear (a cost matrix) and layers F_r.
"""

from __future__ import annotations

import numpy as np

from structot._checks import as_mask, as_matrix, one_of
from structot.submodular.base import METRICS, Minimizer, Submodular

Array = np.ndarray


class Linear(Submodular):
    """F(S) = Σ_{e in S} C_e. Its base polytope is the point C; its transport problem plain OT."""

    def __init__(self, cost: Array) -> None:
        self.shape = cost.shape
        self.cost = cost
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

    def minimize(self, shift: Array | None = None) -> Minimizer:
        total = self.cost if shift is None else self.cost + as_matrix("shift", shift, self.shape)
        mask = total < 0
        return Minimizer(mask, float(total[mask].sum()))


class Sum(Submodular):
    """F = C + Σ_r F_r. With one layer, prox and projection are the layer's, shifted by C."""

    def __init__(self, linear: Array | None, layers: tuple[Submodular, ...]) -> None:
        self.shape = layers[0].shape
        self.linear = np.zeros(self.shape) if linear is None else linear
        self.layers = layers
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

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        if len(self.layers) != 1 or metric == "entropy":
            return super().project(Z, metric)
        return self.linear + self.layers[0].project(
            as_matrix("Z", Z, self.shape) - self._shift, metric
        )

    def minimize(self, shift: Array | None = None) -> Minimizer:
        if len(self.layers) != 1:
            return super().minimize(shift)
        total = (
            self._shift if shift is None else self._shift + as_matrix("shift", shift, self.shape)
        )
        return self.layers[0].minimize(total)
