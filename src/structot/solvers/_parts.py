"""The layers of F as splitting sees them: copies of the plan with a prox and a projection each."""

from __future__ import annotations

from typing import cast

import numpy as np

from structot import concave
from structot._deadline import check_time
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.stack import Stack
from structot.problem import Problem
from structot.submodular.base import Submodular
from structot.submodular.min_norm_point import Corral, min_norm_point

# Error of a min-norm point relative to the residual of the iteration, and the range of its square.
_INEXACT, _FINEST, _COARSEST = 0.3, 1e-13, 1e-5


def parts_of(problem: Problem) -> list[Stack | Part]:
    """The layers: those of blocks stacked, the others one by one, all with comparable metrics.

    The metric of a layer is scaled by (mean price) / (mean mass) of a pair, so that ρ = 1 suits
    all layers.
    """
    allowed = problem.function._allowed()
    # A set function may be given no pair to look at.
    layers = [layer for layer in problem.function.set_functions if layer._edges().any()]
    seen = np.zeros(problem.shape, bool)
    for layer in layers:
        seen |= layer._edges()
    lost = allowed & ~seen
    if lost.any():
        # Pairs that no layer sees still may carry nothing negative: a layer of cost 0 says so.
        weights = np.where(allowed, 1.0, np.inf)
        layers.append(
            Blocks.of_labels(weights, lost - 1, concave.Linear(), np.zeros(1), np.ones(1))
        )
    order = np.random.default_rng(0).random(problem.shape)
    stacks: dict[bool, list[tuple[Blocks, float]]] = {}
    others: list[Stack | Part] = []
    for layer in layers:
        check_time()
        edges = layer._edges()
        # Prices of a typical vertex of B(F); their sum alone, F(all), may cancel to 0.
        prices = float(np.abs(layer.greedy(order)[edges]).sum())
        mean_metric = float(layer.metric[edges].mean())
        scale = (prices if prices > 0 else 1.0) / mean_metric * allowed.sum() / edges.sum()
        if layer.kind == "blocks":
            layer = cast(Blocks, layer)
            stacks.setdefault(layer.table.has_custom, []).append((layer, scale))
        else:
            others.append((GenericPart if layer.kind == "generic" else Part)(layer, scale))
    return [Stack(*zip(*stack, strict=True)) for stack in stacks.values()] + others


class Part:
    """A layer with a generic prox, its edges in row order; d is its own metric times ``scale``."""

    def __init__(self, layer: Submodular, scale: float) -> None:
        self.layer = layer
        self._edges = layer._edges()
        self._scale = scale
        self.d = scale * self.gather(layer.metric)

    def gather(self, P: Array) -> Array:
        return P[self._edges]

    def add(self, x: Array, fill: float = 0.0) -> Array:
        P = np.full(self.layer.shape, fill)
        P[self._edges] = x
        return P

    def prox(self, v: Array, rho: float) -> Array:
        """argmin_{X >= 0} f(X) + rho/2 Σ d (X - v)²."""
        return self.gather(self.layer.prox(self.add(v), rho * self._scale, nonnegative=True))

    def project(self, z: Array) -> Array:
        """argmin_{K in B(F)} Σ (K - z)² / d."""
        return self.gather(self.layer.project(self.add(z), "cost"))


class GenericPart(Part):
    """A layer without a fast prox: min-norm points, each begun where the last one ended."""

    def __init__(self, layer: Submodular, scale: float) -> None:
        super().__init__(layer, scale)
        self._near_prox, self._near_projection = Corral(), Corral()
        self.tol = _COARSEST

    def refine(self, residual: float) -> None:
        """Be no more exact than an iteration with this relative residual needs."""
        self.tol = min(max((_INEXACT * residual) ** 2, _FINEST), _COARSEST)

    def prox(self, v: Array, rho: float) -> Array:
        # Moreau: X = v - K / (ρ d) with K the projection of ρ d v.
        D = rho * self.d
        return np.maximum(v - self._nearest(D * v, self._near_prox) / D, 0.0)

    def project(self, z: Array) -> Array:
        return self._nearest(z, self._near_projection)

    def _nearest(self, z: Array, corral: Corral) -> Array:
        weights = 1.0 / self.add(self.d, fill=1.0)
        return self.gather(
            min_norm_point(self.layer, self.add(z), weights=weights, tol=self.tol, corral=corral)
        )
