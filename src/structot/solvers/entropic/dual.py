"""The smooth dual of entropic structured transport: value, gradient, Hessian, plan, proof.

Notation. p, q multipliers of the marginals; V = log r + (p ⊕ q - C) / (reg d), r = a bᵀ / T, C the
linear part of F; d the metric: w / mean(w) for blocks with weights w, so that the kernels, which
know w, are called with the *rate* reg / mean(w); log X the prox of V, an isotonic regression per
block; φ(p, q) = a·p + b·q - reg Σ d (X - r), concave and smooth, with the gradient
(a - X1, b - Xᵀ1) and the negative Hessian H = Σ_pools X_B c_B c_Bᵀ / (reg d(B)), c_B the edges of
the pool B per row and column. Relaxed marginals (`marginals/`) have dual terms of their own for
a·p + b·q, what they want in the place of a and b, and a diagonal of their own beside H.

In code ``la`` and ``lb`` are the logarithms of a and b / T; ``alone`` is what an edge would pay if
no other were used, ``wall`` that and its C, the most it can cost; ``smallest`` is the least mass
of an entry if every row, or every column, spreads its mass evenly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from structot._deadline import check_time
from structot._parallel import over_blocks
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.pools import Pools, pool_matrix
from structot.certificate import Dual, dual_terms, safe_sum
from structot.problem import Problem
from structot.solvers.entropic import kernels, step_kernels
from structot.solvers.entropic.hessian import Hessian
from structot.solvers.entropic.relaxed import relaxed_sinkhorn
from structot.transport import sinkhorn

# exp of this is nothing beside 1 in doubles.
_NOTHING = -42.0
# Plain sweeps of Sinkhorn's iteration that cost as much as one in another metric, or with relaxed
# marginals.
_PLAIN = 10
# Scalings of rows and columns before what is left goes anywhere.
_SCALINGS = 10


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
    def inner_gradient(self) -> Array:
        """The same as if multipliers at an end of their domain were inside of it."""
        return self.marginals.wanted_inside(self.p, self.q) - np.concatenate([self.rows, self.cols])

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
    def hessian(self, reach: float) -> Hessian:
        """H at the last point, with the curvature of edges that come loose within the reach."""

    def stiffened(self, H: Hessian, s: Array) -> Hessian | None:
        """H with more curvature where a step s would make X explode; None if it does nowhere."""
        return None

    @abstractmethod
    def response(self, s: Array) -> Array:
        """X after a step s of the multipliers as the last H foresees it, cut at 0, (n, m).

        To be called at most once for each H: what H was made of is given back here.
        """

    def change(self, s: Array) -> float:
        """By how much a step s changes p ⊕ q, in quadratic mean over X; 0 without pools."""
        return 0.0

    @abstractmethod
    def drift(self) -> Array:
        """-d(X1, Xᵀ1) / d log reg, as if every edge moved alone."""

    @abstractmethod
    def within_walls(self, p: Array, q: Array, reg: float) -> tuple[Array, Array]:
        """p and q lowered until no X is certain to exceed exp(1) times its marginals."""

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
            return relaxed_sinkhorn(L, self.marginals, reg, self.q, -(-sweeps // _PLAIN))
        init = (self.p / reg, self.q / reg)
        f, g = sinkhorn(L, self.a, self.b, init=init, tol=1e-3, max_iter=sweeps).potentials
        return reg * f, reg * g

    def round(self, plan: Array | None = None) -> tuple[Array, float]:
        """X, or a plan near it, made feasible, and the objective there; overwrites the plan.

        Far from the answer X may overflow.
        """
        hard = self.marginals.hard
        largest = np.minimum.outer(self.a, self.b) if hard else 1e3 * self.total
        P = np.minimum(self.plan() if plan is None else plan, largest, out=plan)
        np.nan_to_num(P, copy=False)
        # What rows and columns lack is cheapest where they have their mass already.
        for _ in range(_SCALINGS if hard else 0):
            P *= _factors(self.a, P.sum(axis=1))[:, None]
            P *= _factors(self.b, P.sum(axis=0))
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


class BlocksDual(SmoothDual):
    """One layer of disjoint blocks and perhaps a linear part, in block order."""

    def __init__(self, problem: Problem) -> None:
        layer = problem.blocks
        assert layer is not None
        self.layer = layer
        self.uniform = is_uniform(layer)
        self.unit = 1.0 if self.uniform else layer.mean_weight
        self.C = np.empty(0) if problem.linear is None else layer.gather(problem.linear)
        self.alone = layer.single_edges()
        self.wall = self.alone + self.C if self.C.size else self.alone
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
        self.rows, self.cols = sums_of(parts, 0), sums_of(parts, 1)
        return float(sum(part[2] for part in parts)) / self.unit

    @property
    def _negligible(self) -> float:
        """In H, pools of smaller values are taken apart."""
        return 1e-4 * self.smallest

    def _loose(self, reach: float) -> Array:
        """To which share edges are loose, (E,), where they are in pools of several."""
        share = np.empty(self.X.size)
        self._each(step_kernels.subgradient, self.layer.w, self.V, self.X, self.rate, share)
        self.layer.loosen_edges(share, self.pools, reach)
        return share

    def hessian(self, reach: float) -> Hessian:
        F, theta = self.layer, self._loose(reach)
        level = step_kernels.edge_curvatures(
            F.edges, self.pools, self.rate, self._negligible, theta
        )
        single = F.scatter(theta)
        self._theta = theta
        if level.size == 0:
            return Hessian(single)
        G = pool_matrix(F.edges, self.pools, self.shape, least=2, above=self._negligible)
        return Hessian(single, G, level / G.weight)

    def stiffened(self, H: Hessian, s: Array) -> Hessian | None:
        F = self.layer
        shared = F.w, self.alone, self.V, self.X, self.a, self.b, self.rate, s
        found = self._each(step_kernels.stiffen, *shared, H.softness, self._theta)
        return Hessian(F.scatter(self._theta), H.pools, H.weight) if any(found) else None

    def response(self, s: Array) -> Array:
        F, out = self.layer, np.empty(self.X.size)
        model = self.rate, self._negligible, self._theta
        step_kernels.respond(F.edges, self.pools, *model, s, self.shape[0], out)
        self._theta = np.empty(0)  # as large as the plan, and of the last H
        return F.scatter(out)

    def change(self, s: Array) -> float:
        parts = self._each(step_kernels.squared_change, self.X, s, self.shape[0])
        mass = float(self.rows.sum())
        return float(np.sqrt(sum(parts) / mass)) if mass > 0.0 else 0.0

    def drift(self) -> Array:
        parts = self._each(step_kernels.drift, self.la, self.lb, self.X, *self.shape)
        return np.concatenate([sums_of(parts, 0), sums_of(parts, 1)])

    def within_walls(self, p: Array, q: Array, reg: float) -> tuple[Array, Array]:
        shared = self.layer.w, self.wall, self.la, self.lb, float(np.log(self.total)), p, q
        parts = self._each(step_kernels.excess, *shared, reg / self.unit, *self.shape)
        rows, cols = (np.maximum.reduce([part[k] for part in parts]) for k in (0, 1))
        # Half of the excess each: then no pair is left with any.
        return p - 0.5 * rows, q - 0.5 * cols

    def plain_cost(self) -> Array:
        return self._total_cost(self.layer.project_edges(np.zeros(self.layer.w.size), "cost"))

    def _total_cost(self, k: Array) -> Array:
        """k and the linear part, (n, m); overwrites k."""
        if self.C.size:
            k += self.C
        return self.layer.scatter(k, fill=np.inf)

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
        for _ in range(-(-sweeps // _PLAIN)):
            check_time()
            _scale(K, d, self.la, self.lb, q, reg / self.unit, rows.yielding, p)
            p = rows.clip(p)
            _scale(KT, dT, lb, la, p, reg / self.unit, columns.yielding, q)
            q = columns.clip(q)
        return p, q


def _factors(wanted: Array, found: Array) -> Array:
    """wanted / found, at most 2; 1 where nothing is found."""
    wanted = np.minimum(wanted, 2.0 * found)
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0.0)


def is_uniform(layer: Blocks) -> bool:
    """Whether the metric of the layer is 1."""
    return bool(layer.w.min() == layer.w.max() == 1.0)


def _scale(K: Array, d: Array, *rest: Any) -> None:
    """One half sweep of the iteration with K fixed, in a metric d."""
    start = np.arange(K.shape[0] + 1) * K.shape[1]
    over_blocks(start, lambda i, j: kernels.scale_rows(i, j, K, d, *rest))


def sums_of(parts: list, k: int) -> Array:
    """The k-th arrays of all threads, added in the order of the blocks."""
    total = parts[0][k]
    for part in parts[1:]:
        total += part[k]
    return total
