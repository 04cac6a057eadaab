"""Two special smooth duals whose prox needs no sort: plain transport has none at all, coverage one
equation per block. And which dual a problem takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from structot._parallel import over_blocks
from structot._typing import Array
from structot.blocks.pools import Pools
from structot.problem import Problem
from structot.solvers.entropic import kernels, step_kernels
from structot.solvers.entropic.dual import BlocksDual, SmoothDual, is_uniform, sums_of
from structot.solvers.entropic.hessian import Hessian


class PlainDual(SmoothDual):
    """F linear: X = r exp((p ⊕ q - C) / reg), Sinkhorn's problem."""

    def __init__(self, problem: Problem) -> None:
        assert problem.linear is not None
        self.C = np.ascontiguousarray(problem.linear)
        self.X = np.zeros(problem.shape)
        super().__init__(problem)

    def _mass(self) -> float:
        return float(np.sum(self.problem.independent, where=np.isfinite(self.C)))

    def _each(self, kernel: Callable, *args: Any) -> list:
        start = np.arange(self.shape[0] + 1) * self.shape[1]
        return over_blocks(start, lambda i, j: kernel(i, j, *args))

    def _point(self) -> float:
        shared = self.C, self.la, self.lb, self.p, self.q, self.reg, self.X
        parts = self._each(kernels.plain_point, *shared)
        self.rows, self.cols = sums_of(parts, 0), sums_of(parts, 1)
        return float(self.rows.sum())

    def hessian(self, reach: float) -> Hessian:
        return Hessian(self.X / self.reg)

    def response(self, s: Array) -> Array:
        n = self.shape[0]
        return np.maximum(self.X * (1.0 + np.add.outer(s[:n], s[n:]) / self.reg), 0.0)

    def drift(self) -> Array:
        rest = (np.add.outer(self.p, self.q) - self.C) / self.reg  # log(X / r)
        x = np.multiply(self.X, rest, where=self.X > 0, out=np.zeros_like(rest))
        return np.concatenate([x.sum(axis=1), x.sum(axis=0)])

    def within_walls(self, p: Array, q: Array, reg: float) -> tuple[Array, Array]:
        room = np.minimum.outer(np.log(self.total) - self.la, -self.lb)
        x = np.maximum(np.add.outer(p, q) - self.C - reg * (1.0 + room), 0.0)
        return p - 0.5 * x.max(axis=1), q - 0.5 * x.max(axis=0)

    def plain_cost(self) -> Array:
        return self.C

    cost = plain_cost

    def plan(self) -> Array:
        return self.X

    def value(self, P: Array) -> float:
        return self.problem.objective(P)

    def _loss(self, u: Array, v: Array, K: Array) -> list[tuple[float, float]]:
        shared = K, self.a, self.b / self.total, u, v, self.problem.reg
        return self._each(kernels.plain_loss, *shared)


class CoverageDual(BlocksDual):
    """A coverage function in the uniform metric: log X = min(V, t) with t per block, no sort."""

    def _prepare(self) -> None:
        F = self.layer
        self.price = F.table.outer
        self.pools = Pools.empty(F.w.size, self.price.size)
        self.X = self.pools.X
        self.level = np.full(self.price.size, np.inf)  # t
        self.cap = np.empty(self.price.size)  # exp(t)

    def _point(self) -> float:
        found = self.level, self.cap, self.X
        shared = *self._weights, self.reg, self.price, *found, *self.shape
        parts = self._each(kernels.coverage_point, *shared)
        self.rows, self.cols = sums_of(parts, 0), sums_of(parts, 1)
        return float(self.rows.sum())

    def stiffened(self, H: Hessian, s: Array) -> Hessian | None:
        return None  # no edge is stiffer than the others

    def _loose(self, reach: float) -> Array:
        P, share = self.pools, np.empty(self.X.size)
        kernels.pool_capped(self.layer.start, self.X, self.cap, P.order, P.end, P.n_pools)
        caps = self.level, self.cap, P.n_pools
        shared = *self._weights, self.reg, caps, self.X, share
        self._each(step_kernels.capped_subgradient, *shared)
        self.layer.loosen_edges(share, P, reach)
        return share

    def plain_cost(self) -> Array:
        size = np.diff(self.layer.start)
        return self._total_cost(np.repeat(self.price / size, size))

    def cost(self) -> Array:
        k = np.empty(self.X.size)
        shared = *self._weights, self.reg, self.price, self.level, k
        self._each(kernels.coverage_costs, *shared)
        return self._total_cost(k)

    def _structured(self, x: Array) -> float:
        return float(self.price @ np.maximum.reduceat(x, self.layer.start[:-1]))


def smooth_dual(problem: Problem) -> SmoothDual:
    """The dual function of a problem that `Entropic` has nothing against."""
    if not problem.layers:
        return PlainDual(problem)
    layer = problem.blocks
    assert layer is not None
    fast = layer.is_coverage and is_uniform(layer)
    return CoverageDual(problem) if fast else BlocksDual(problem)
