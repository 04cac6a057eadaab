"""The smooth dual of entropic structured transport: value, gradient, Hessian, plan, proof.

Notation. p, q multipliers of the marginals; V = log r + (p ⊕ q - C) / (reg d), r = a bᵀ / T, C the
linear part of F; d the metric: w / mean(w) for blocks with weights w, so that the kernels, which
know w, are called with the *rate* reg / mean(w); log X the prox of V, an isotonic regression per
block; φ(p, q) = a·p + b·q - reg Σ d (X - r), concave and smooth, with the gradient
(a - X1, b - Xᵀ1) and the negative Hessian H = Σ_pools X_B c_B c_Bᵀ / (reg d(B)), c_B the edges of
the pool B per row and column. Relaxed marginals (`marginals/`) have dual terms of their own for
a·p + b·q, what they want in the place of a and b, and a diagonal of their own beside H.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from structot._deadline import check_time
from structot._parallel import over_blocks
from structot.blocks.function import Blocks
from structot.blocks.pools import Pools
from structot.certificate import Dual, dual_terms, safe_sum
from structot.problem import Problem
from structot.solvers.entropic import kernels
from structot.solvers.entropic.hessian import Hessian
from structot.solvers.entropic.relaxed import relaxed_sinkhorn
from structot.transport import sinkhorn

Array = np.ndarray

# exp of this is nothing beside 1 in doubles.
_NOTHING = -42.0


class SmoothDual(ABC):
    """φ and what belongs to it. Holds the last point (p, q) it was evaluated at, and its reg."""

    uniform = True  # whether d = 1

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.a, self.b, self.total = problem.a, problem.b, problem.total
        self.marginals = problem.marginals
        self.shape, self.reg = problem.shape, problem.reg
        with np.errstate(divide="ignore"):
            self.la, self.lb = np.log(self.a), np.log(self.b / self.total)
        self.p, self.q = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        self.rows, self.cols = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        # An entry far below this adds nothing to the sum of its row and of its column.
        self.smallest = min(
            float(self.a.min(where=self.a > 0, initial=np.inf)) / self.shape[1],
            float(self.b.min(where=self.b > 0, initial=np.inf)) / self.shape[0],
        )
        self.mass = self._mass()  # Σ d r

    def evaluate(self, p: Array, q: Array, reg: float) -> float:
        """φ(p, q), and the gradient with it; -inf where the exponentials overflow."""
        check_time()
        self.p, self.q, self.reg = p, q, reg
        with np.errstate(over="ignore", invalid="ignore"):
            phi = self.marginals.dual_value(p, q) - reg * (self._point() - self.mass)
        return phi if np.isfinite(phi) else -np.inf

    @property
    def gradient(self) -> Array:
        """(a - X1, b - Xᵀ1); what relaxed marginals want in the place of a and b."""
        sums = self.rows, self.cols
        return self.marginals.wanted(self.p, self.q, *sums) - np.concatenate(sums)

    @property
    def error(self) -> float:
        """The L1 norm of the gradient relative to the mass."""
        return float(np.abs(self.gradient).sum()) / self.total

    @abstractmethod
    def _mass(self) -> float: ...

    @abstractmethod
    def _point(self) -> float:
        """Set X, rows and cols at (p, q); return Σ d X."""

    @abstractmethod
    def hessian(self) -> Hessian:
        """H at the last point."""

    @abstractmethod
    def plain_cost(self) -> Array:
        """A point of B(F) to begin with, (n, m), the price of each block shared evenly."""

    @abstractmethod
    def cost(self) -> Array:
        """K = p ⊕ q - reg d log(X/r) in B(F), (n, m), at the last point."""

    @abstractmethod
    def plan(self) -> Array:
        """X, (n, m)."""

    @abstractmethod
    def value(self, P: Array) -> float:
        """The objective of the problem at a plan."""

    @abstractmethod
    def _loss(self, u: Array, v: Array, K: Array) -> list[tuple[float, float]]:
        """Parts of reg Σ d r (exp((u ⊕ v - K) / (reg d)) - 1), and of the size of its terms."""

    def balance(self, K: Array, reg: float, sweeps: int) -> tuple[Array, Array]:
        """Multipliers that increase φ with K fixed, from the last ones: Sinkhorn's iteration."""
        with np.errstate(invalid="ignore", over="ignore"):
            L = self.la[:, None] + self.lb - K / reg
        if not self.marginals.hard:
            return relaxed_sinkhorn(L, self.marginals, reg, self.q, sweeps)
        init = (self.p / reg, self.q / reg)
        f, g = sinkhorn(L, self.a, self.b, init=init, tol=1e-3, max_iter=sweeps).potentials
        return reg * f, reg * g

    def round(self) -> tuple[Array, float]:
        """X rounded into U(a, b), and the objective there. Far from the answer X may overflow."""
        largest = np.minimum.outer(self.a, self.b) if self.marginals.hard else 1e3 * self.total
        P = np.minimum(self.plan(), largest)
        np.nan_to_num(P, copy=False)
        P = self.problem.feasible(P, (self.p, self.q), overwrite=True)
        return P, self.value(P)

    def prove(self, u: Array, v: Array, K: Array) -> Dual:
        """The bound of (u, v, K), K in B(F)."""
        rows, cols = self.a > 0, self.b > 0
        if not (rows.all() and cols.all()):
            # Points without mass are free: low enough that no pair with them can overflow.
            u, v = u.copy(), v.copy()
            low = np.min(K - v, axis=1, where=cols, initial=np.inf)
            u[~rows] = np.where(np.isfinite(low), low, 0.0)[~rows]
            low = np.min(K - u[:, None], axis=0)
            v[~cols] = np.where(np.isfinite(low), low, 0.0)[~cols]
        if not self.marginals.smooth:
            # Potentials of points without mass end where those of TV do; nothing depends on them.
            u = np.where(rows, u, u[rows].max())
            v = np.where(cols, v, v[cols].max())
        u, v = self.marginals.clip(*self.marginals.shifted(u, v))
        terms, made_of = dual_terms(self.problem, u, v)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, size = (sum(part) for part in zip(*self._loss(u, v, K), strict=True))
        if not np.isfinite(loss + size):
            return Dual(u, v, K, -np.inf)
        size += made_of
        return Dual(u, v, K, safe_sum(np.append(terms, -loss), K.size, size))


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
        self.rows, self.cols = _sums(parts, 0), _sums(parts, 1)
        return float(self.rows.sum())

    def hessian(self) -> Hessian:
        return Hessian(self.X / self.reg)

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


class BlocksDual(SmoothDual):
    """One layer of disjoint blocks and perhaps a linear part, in block order."""

    def __init__(self, problem: Problem) -> None:
        layer = problem.blocks
        assert layer is not None
        self.layer = layer
        self.uniform = is_uniform(layer)
        self.unit = 1.0 if self.uniform else layer.mean_weight
        self.C = np.empty(0) if problem.linear is None else layer.gather(problem.linear)
        super().__init__(problem)
        self._prepare()

    def _prepare(self) -> None:
        edges = self.layer.w.size
        self.V = np.empty(edges)
        self.pools = Pools.empty(edges, self.layer.start.size - 1)
        self.X = self.pools.X
        self.floor = float(np.log(self.smallest)) + _NOTHING

    @property
    def rate(self) -> float:
        """reg / mean(w): what stands beside w in the kernels."""
        return self.reg / self.unit

    def _each(self, kernel: Callable, *args: Any) -> list:
        F = self.layer
        return over_blocks(F.start, lambda i, j: kernel(i, j, F.start, F.row, F.col, *args))

    def _mass(self) -> float:
        return self._entropy(np.zeros(self.layer.w.size))

    def _entropy(self, x: Array) -> float:
        shared = self.layer.w, self.a, self.b / self.total, x
        return float(sum(self._each(kernels.relative_entropy, *shared))) / self.unit

    @property
    def _weights(self) -> tuple[Array, ...]:
        return self.C, self.la, self.lb, self.p, self.q

    def _point(self) -> float:
        F = self.layer
        self._each(kernels.log_point, F.w, *self._weights, self.rate, self.V)
        if not self.V.max() < np.inf:
            return np.inf
        F.prox_edges(self.V, self.rate, self.floor, self.pools)
        return self._exponentials()

    def _exponentials(self) -> float:
        parts = self._each(kernels.exponentials, self.layer.w, self.floor, self.X, *self.shape)
        self.rows, self.cols = _sums(parts, 0), _sums(parts, 1)
        return float(sum(part[2] for part in parts)) / self.unit

    def _members(self) -> tuple[Array, Array]:
        P = self.pools
        cut = np.exp(0.6 * _NOTHING) * self.smallest
        return kernels.list_pools(self.layer.start, P.order, P.end, P.n_pools, self.X, cut)

    def hessian(self) -> Hessian:
        F = self.layer
        members, ends = self._members()
        theta = self.X / (self.rate * F.w)
        theta[members] = 0.0
        single = F.scatter(theta)
        if ends.size == 0:
            return Hessian(single)
        indptr, indices, data, weight = kernels.compress_pools(
            members, ends, F.row, F.col, F.w, *self.shape
        )
        counts = csr_array((data, indices, indptr), shape=(ends.size, sum(self.shape)))
        return Hessian(single, counts, self.X[members[ends - 1]] / (self.rate * weight))

    def plain_cost(self) -> Array:
        return self._total_cost(self.layer.project_edges(np.zeros(self.layer.w.size), "cost"))

    def _total_cost(self, k: Array) -> Array:
        return self.layer.scatter(k + self.C if self.C.size else k, fill=np.inf)

    def cost(self) -> Array:
        F, P = self.layer, self.pools
        if F.table.has_custom:
            # Edges that carry nothing come last in any case; near by, they cost no digits.
            alive = self.V > kernels.LAST
            self.V[~alive] = self.V.min(where=alive, initial=0.0) - 1e3
        F.prox_edges(self.V, self.rate, -np.inf, P)
        if F.table.has_custom:
            k = self.rate * F.w * (self.V - self.X)
        else:
            k = np.empty(F.w.size)
            shared = F.w, self.V, self.rate, F.table.arrays, P.order, P.end, P.n_pools, k
            over_blocks(F.start, lambda i, j: kernels.pool_costs(i, j, F.start, *shared))
        self._exponentials()  # the prox has left logarithms where X belongs
        # In B(F) but for rounding errors, which a metric of weights of very different sizes
        # enlarges: those of a projection are relative to each entry.
        return self._total_cost(F.project_edges(k, "cost"))

    def plan(self) -> Array:
        return self.layer.scatter(self.X)

    def value(self, P: Array) -> float:
        x = self.layer.gather(P)
        value = self._structured(x) + (float(x @ self.C) if self.C.size else 0.0)
        value += self.marginals.penalty(P)[0]
        return value + self.problem.reg * self._entropy(x)

    def _structured(self, x: Array) -> float:
        return float(x @ self.layer.greedy_edges(x))

    def _loss(self, u: Array, v: Array, K: Array) -> list[tuple[float, float]]:
        rate = self.problem.reg / self.unit
        shared = self.layer.w, self.a, self.b / self.total, u, v, rate, K
        return self._each(kernels.dual_loss, *shared)

    def balance(self, K: Array, reg: float, sweeps: int) -> tuple[Array, Array]:
        if self.uniform:
            return super().balance(K, reg, sweeps)
        d = self.layer.metric
        # In another metric a row or column has no closed form: an equation in one unknown each.
        p, q = self.p.copy(), self.q.copy()
        rows, columns = self.marginals.sides
        KT, dT = np.ascontiguousarray(K.T), np.ascontiguousarray(d.T)
        with np.errstate(divide="ignore"):
            la, lb = np.log(self.a / self.total), np.log(self.b)
        for _ in range(-(-sweeps // 5)):  # each sweep costs as much as some of the plain ones
            check_time()
            _scale(K, d, self.la, self.lb, q, reg / self.unit, rows.yielding, p)
            p = rows.clip(p)
            _scale(KT, dT, lb, la, p, reg / self.unit, columns.yielding, q)
            q = columns.clip(q)
        return p, q


class CoverageDual(BlocksDual):
    """A coverage function in the uniform metric: log X = min(V, t) with t per block, no sort."""

    def _prepare(self) -> None:
        F = self.layer
        self.price = F.table.outer
        self.X = np.empty(F.w.size)
        self.level = np.full(self.price.size, np.inf)  # t
        self.cap = np.empty(self.price.size)  # exp(t)

    def _point(self) -> float:
        found = self.level, self.cap, self.X
        shared = *self._weights, self.reg, self.price, *found, *self.shape
        parts = self._each(kernels.coverage_point, *shared)
        self.rows, self.cols = _sums(parts, 0), _sums(parts, 1)
        return float(self.rows.sum())

    def _members(self) -> tuple[Array, Array]:
        return kernels.list_capped(self.layer.start, self.X, self.cap)

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


def is_uniform(layer: Blocks) -> bool:
    """Whether the metric of the layer is 1."""
    return bool(layer.w.min() == layer.w.max() == 1.0)


def _scale(K: Array, d: Array, *rest: Any) -> None:
    """One half sweep of the iteration with K fixed, in a metric d."""
    start = np.arange(K.shape[0] + 1) * K.shape[1]
    over_blocks(start, lambda i, j: kernels.scale_rows(i, j, K, d, *rest))


def _sums(parts: list, k: int) -> Array:
    """The k-th arrays of all threads, added in the order of the blocks."""
    total = parts[0][k]
    for part in parts[1:]:
        total += part[k]
    return total
