"""Newton's method on the smooth dual of entropic structured transport.

    min_{P in U(a,b)}  f(P) + reg Σ d (P log(P/r) - P + r),      r = a bᵀ / T

Notation. p, q multipliers of the marginals; V = log r + (p ⊕ q - C) / (reg d) with C the linear
part of F; log X the prox of V, an isotonic regression per block; φ(p, q) = a·p + b·q -
reg Σ d (X - r) the dual function, concave and smooth, with the gradient (a - X1, b - Xᵀ1) and the
negative Hessian H = Σ_pools X_B c_B c_Bᵀ / (reg d(B)), c_B the edges of pool B per row and column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from structot._parallel import over_blocks
from structot.certificate import Dual
from structot.polytope.blocks import Blocks, Pools
from structot.problem import Problem
from structot.solvers import _entropic_kernels as kernels
from structot.solvers._loop import Step
from structot.solvers._start import Start
from structot.submodular.base import inner
from structot.transport import c_transform, round_plan, sinkhorn

Array = np.ndarray

# Up to this many unknowns H is factorised; beyond, conjugate gradients come first.
_DENSE = 600
# Beyond this many unknowns H is not even formed when conjugate gradients fail.
_DENSE_LAST = 5000
# Continuation starts at this fraction of the mean cost and divides reg by this factor per stage.
_FIRST_REG = 0.02
_STAGE = 4.0
# A stage before the last ends when the marginals are right to this fraction of the mass.
_STAGE_ERROR = 0.05


def entropic_objection(problem: Problem) -> str | None:
    """Why `entropic_steps` cannot solve this problem, as the end of a sentence, or None."""
    layers = problem.layers
    if len(layers) > 1 or not all(isinstance(layer, Blocks) for layer in layers):
        return (
            "with reg > 0 it needs Modular, Groups or Coverage with disjoint groups, or the sum of "
            "Modular and one of them"
        )
    return None


class SmoothDual(ABC):
    """φ(p, q) and what belongs to it: gradient, Hessian, plan, proof. Holds the last point."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.a, self.b = problem.a, problem.b
        self.shape = problem.shape
        self.total = problem.total
        self.reg = problem.reg
        with np.errstate(divide="ignore"):
            self.la = np.log(self.a)
            self.lb = np.log(self.b / self.total)
        self.rows, self.cols = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        # An entry below this fraction of its row and column adds nothing to either in doubles.
        self.smallest = min(
            float(self.a.min(where=self.a > 0, initial=np.inf)) / self.shape[1],
            float(self.b.min(where=self.b > 0, initial=np.inf)) / self.shape[0],
        )
        self.mass = 0.0  # Σ d r

    def evaluate(self, p: Array, q: Array, reg: float) -> float:
        """φ at (p, q), with the gradient; -inf where the exponentials overflow."""
        self.reg = reg
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = self._point(p, q, reg)
            phi = float(self.a @ p + self.b @ q - reg * (weighted - self.mass))
        return phi if np.isfinite(phi) else -np.inf

    @property
    def gradient(self) -> Array:
        return np.concatenate([self.a - self.rows, self.b - self.cols])

    @property
    def error(self) -> float:
        """|a - X1|_1 + |b - Xᵀ1|_1 relative to the mass."""
        return float(np.abs(self.gradient).sum()) / self.total

    @abstractmethod
    def _point(self, p: Array, q: Array, reg: float) -> float:
        """Set X, rows and cols; return Σ d X."""

    @abstractmethod
    def times(self, x: Array) -> Array:
        """H x."""

    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of H."""

    @abstractmethod
    def hessian(self) -> Array:
        """H, (n+m, n+m)."""

    @abstractmethod
    def plain_cost(self) -> Array:
        """A point of B(F) to begin with, (n, m)."""

    @abstractmethod
    def cost(self) -> Array:
        """K = p ⊕ q - reg d log(X/r) in B(F), (n, m)."""

    @abstractmethod
    def round(self) -> tuple[Array, float]:
        """X rounded into U(a, b), and the objective there with the reg of the problem."""

    @abstractmethod
    def loss(self, u: Array, v: Array, K: Array) -> float:
        """Σ d r (exp((u ⊕ v - K) / (reg d)) - 1) with the reg of the problem."""

    @abstractmethod
    def balance(self, p: Array, q: Array, K: Array, reg: float, sweeps: int) -> tuple[Array, Array]:
        """Ascend φ with K fixed: row and column multipliers in turn."""

    def prove(self, u: Array, v: Array, K: Array) -> Dual:
        """The bound of (u, v, K), K in B(F), for the problem itself."""
        # Points without mass are free: low enough that their pairs with others do not overflow.
        rows, cols = self.a > 0, self.b > 0
        if not (rows.all() and cols.all()):
            u, v = u.copy(), v.copy()
            finite = np.where(np.isfinite(K), K, np.inf)
            low = np.min(finite - v, axis=1, where=cols, initial=np.inf)
            u[~rows] = np.where(np.isfinite(low), low, 0.0)[~rows]
            low = np.min(finite - u[:, None], axis=0)
            v[~cols] = np.where(np.isfinite(low), low, 0.0)[~cols]
        bound = float(self.a @ u + self.b @ v - self.problem.reg * self.loss(u, v, K))
        return Dual(u, v, K, bound)


class PlainDual(SmoothDual):
    """F linear: X = r exp((p ⊕ q - C) / reg), Sinkhorn's problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        assert problem.linear is not None
        self.C = np.ascontiguousarray(problem.linear)
        self.X = np.zeros(self.shape)
        self._start = np.arange(self.shape[0] + 1) * self.shape[1]
        self.mass = float(np.sum(problem.independent, where=np.isfinite(self.C)))

    def _point(self, p: Array, q: Array, reg: float) -> float:
        parts = over_blocks(
            self._start,
            lambda i, j: kernels.plain_point(
                i, j, self.C, self.la, self.lb, p, q, reg, self.X
            ),
        )
        self.rows = np.sum([part[0] for part in parts], axis=0)
        self.cols = np.sum([part[1] for part in parts], axis=0)
        return float(self.rows.sum())

    def times(self, x: Array) -> Array:
        n = self.shape[0]
        y, z = x[:n], x[n:]
        Hx = np.concatenate([self.rows * y + self.X @ z, self.cols * z + y @ self.X])
        return Hx / self.reg

    def diagonal(self) -> Array:
        return np.concatenate([self.rows, self.cols]) / self.reg

    def hessian(self) -> Array:
        n = self.shape[0]
        H = np.diag(self.diagonal())
        H[:n, n:] = self.X / self.reg
        H[n:, :n] = H[:n, n:].T
        return H

    def plain_cost(self) -> Array:
        return self.C

    def cost(self) -> Array:
        return self.C

    def round(self) -> tuple[Array, float]:
        P = round_plan(self.X, self.a, self.b, allowed=self.problem.function.allowed)
        return P, self.problem.objective(P)

    def loss(self, u: Array, v: Array, K: Array) -> float:
        reg = self.problem.reg
        X = np.empty(self.shape)
        parts = over_blocks(
            self._start,
            lambda i, j: kernels.plain_point(i, j, K, self.la, self.lb, u, v, reg, X),
        )
        return float(sum(part[0].sum() for part in parts)) - self.mass

    def balance(self, p: Array, q: Array, K: Array, reg: float, sweeps: int) -> tuple[Array, Array]:
        return _sinkhorn(self, p, q, K, reg, sweeps)


class BlocksDual(SmoothDual):
    """One layer of disjoint blocks and perhaps a linear part, in block order."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        (layer,) = problem.layers
        assert isinstance(layer, Blocks)
        self.layer = layer
        self.C = np.empty(0) if problem.linear is None else layer.gather(problem.linear)
        self.V = np.empty(layer.w.size)
        self.pools = Pools.empty(layer.w.size, layer.start.size - 1)
        self.floor = float(np.log(self.smallest)) - 42.0
        self.uniform = bool(layer.w.min() == layer.w.max() == 1.0)
        self.mass = -float(sum(self._each(kernels.dual_loss, layer.w, np.full(layer.w.size, np.inf), self.la, self.lb, np.zeros(self.shape[0]), np.zeros(self.shape[1]), 1.0)))

    def _each(self, kernel, *args):
        F = self.layer
        return over_blocks(F.start, lambda i, j: kernel(i, j, F.start, F.row, F.col, *args))

    @property
    def _sorted(self):
        return self.layer.w, self.pools.order, self.pools.pool, self.pools.pools, self.pools.X

    def _point(self, p: Array, q: Array, reg: float) -> float:
        self._each(
            kernels.log_point, self.layer.w, self.C, self.la, self.lb, p, q, reg, self.V
        )
        if not np.isfinite(self.V).all():
            return np.inf
        self.layer.prox_edges(self.V, reg, self.floor, self.pools)
        return self._exponentials()

    def _exponentials(self) -> float:
        parts = self._each(
            kernels.exponentials, self.layer.w, self.floor, self.pools.X, *self.shape
        )
        self.rows = np.sum([part[0] for part in parts], axis=0)
        self.cols = np.sum([part[1] for part in parts], axis=0)
        return float(sum(part[2] for part in parts))

    def times(self, x: Array) -> Array:
        n, m = self.shape
        y, z = x[:n], x[n:]
        cut = 1e-12 * self.smallest
        parts = self._each(kernels.hessian_times, *self._sorted, cut, self.reg, y, z, n, m)
        return np.concatenate([np.sum([part[k] for part in parts], axis=0) for k in (0, 1)])

    def diagonal(self) -> Array:
        return np.sum(
            self._each(kernels.hessian_diagonal, *self._sorted, self.reg, *self.shape), axis=0
        )

    def hessian(self) -> Array:
        F = self.layer
        return kernels.hessian_matrix(F.start, F.row, F.col, *self._sorted, self.reg, *self.shape)

    def plain_cost(self) -> Array:
        return self._total_cost(self.layer.project_edges(np.zeros(self.layer.w.size), "cost"))

    def _total_cost(self, k: Array) -> Array:
        return self.layer.scatter(k + self.C if self.C.size else k, fill=np.inf)

    def cost(self) -> Array:
        F = self.layer
        self.layer.prox_edges(self.V, self.reg, -np.inf, self.pools)
        if F.table.has_custom:
            k = self.reg * F.w * (self.V - self.pools.X)
        else:
            k = np.empty(F.w.size)
            over_blocks(
                F.start,
                lambda i, j: kernels.pool_costs(
                    i, j, F.start, F.w, self.V, self.reg, F.table.arrays,
                    self.pools.order, self.pools.pool, self.pools.pools, k,
                ),
            )
        self._exponentials()
        return self._total_cost(k)

    def round(self) -> tuple[Array, float]:
        F, problem = self.layer, self.problem
        P = round_plan(F.scatter(self.pools.X), self.a, self.b, allowed=problem.function.allowed)
        if not F.is_coverage:
            return P, problem.objective(P)
        x = F.gather(P)
        value = float(F.table.outer @ np.maximum.reduceat(x, F.start[:-1]))
        value += float(x @ self.C) if self.C.size else 0.0
        parts = self._each(kernels.relative_entropy, F.w, self.la, self.lb, x)
        return P, value + problem.reg * float(sum(parts))

    def loss(self, u: Array, v: Array, K: Array) -> float:
        F = self.layer
        parts = self._each(
            kernels.dual_loss, F.w, F.gather(K), self.la, self.lb, u, v, self.problem.reg
        )
        return float(sum(parts))

    def balance(self, p: Array, q: Array, K: Array, reg: float, sweeps: int) -> tuple[Array, Array]:
        if self.uniform:
            return _sinkhorn(self, p, q, K, reg, sweeps)
        d = self.layer.metric
        p, q = p.copy(), q.copy()
        KT, dT = np.ascontiguousarray(K.T), np.ascontiguousarray(d.T)
        la, lb = np.log(self.a / self.total), np.log(self.b)
        for _ in range(max(sweeps // 5, 1)):
            kernels.scale_rows(0, self.shape[0], K, d, self.la, self.lb, q, reg, p)
            kernels.scale_rows(0, self.shape[1], KT, dT, lb, la, p, reg, q)
        return p, q


def _sinkhorn(
    dual: SmoothDual, p: Array, q: Array, K: Array, reg: float, sweeps: int
) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore"):
        L = dual.la[:, None] + dual.lb - K / reg
    L[np.isnan(L)] = -np.inf
    answer = sinkhorn(L, dual.a, dual.b, init=(p / reg, q / reg), tol=1e-3, max_iter=sweeps)
    f, g = answer.potentials
    return reg * f, reg * g


def entropic_steps(problem: Problem, start: Start) -> Iterator[Step | None]:
    dual: SmoothDual = BlocksDual(problem) if problem.layers else PlainDual(problem)
    K = dual.plain_cost()
    u, v = c_transform(K, np.zeros(problem.shape[0]))
    P = round_plan(problem.independent, problem.a, problem.b, allowed=problem.function.allowed)
    first = dual.prove(u, v, K)
    yield Step(problem.objective(P), lambda: P, first.bound, lambda: first)
    r = problem.independent
    fin = np.isfinite(K)
    level = float((r[fin] @ K[fin]) / dual.mass)
    regs = [problem.reg]
    while regs[-1] < _FIRST_REG * level:
        regs.append(regs[-1] * _STAGE)
    p, q = u, v
    for reg in reversed(regs):
        last = reg == problem.reg
        p, q = dual.balance(p, q, K, reg, 20)
        phi = dual.evaluate(p, q, reg)
        damping = 1e-8
        certified = np.inf
        while True:
            if DEBUG: print(f"reg {reg:.3g} phi {phi:.12g} err {dual.error:.3e} damping {damping:.1e}")
            if not last and dual.error < _STAGE_ERROR:
                K = dual.cost()
                yield None
                break
            if last and dual.error < 0.1 * min(certified, .1):
                certified = dual.error
                proof = dual.prove(p, q, dual.cost())
                P, value = dual.round()
                yield Step(value, lambda: P, proof.bound, lambda: proof)
            else:
                yield None
            p, q, new, damping = newton_step(dual, p, q, phi, reg, damping)
            if new is None: 
                return
            phi = new

DEBUG=False
def newton_step(dual, p, q, phi, reg, damping):
    n = p.size
    g = dual.gradient
    for _ in range(8):
        s = direction(dual, g, damping)
        slope = float(g @ s)
        t = 1.0
        for k in range(25):
            new = dual.evaluate(p + t * s[:n], q + t * s[n:], reg)
            if new >= phi + 1e-4 * t * slope:
                if DEBUG: print("   t", t, 'slope', slope)
                return p + t*s[:n], q+t*s[n:], new, max(1e-12, damping/10 if t==1 else damping*10 if t < .1 else damping)
            if slope < 1e-13*abs(phi):
                return p,q,None,damping
            t *= 0.5
        damping *= 100
    return p, q, None, damping

def direction(dual, g, damping):
    n=dual.shape[0]
    D = dual.diagonal()
    D = np.maximum(D, 1e-3*np.concatenate([dual.a,dual.b])/dual.reg)
    D[D==0] = 1
    if D.size <= _DENSE:
        H = dual.hessian()
        sc = 1/np.sqrt(D)
        H *= sc[:,None]; H*= sc
        H[np.diag_indices(D.size)] += damping
        return sc*cho_solve(cho_factor(H, lower=True), sc*g)
    tol = min(0.1, dual.error)
    return pcg(dual, g, D, damping, tol)

def pcg(dual, g, D, damping, tol):
    x = np.zeros_like(g)
    r = g.copy()
    z = r/D
    d = z.copy()
    rz = r@z
    goal = tol*tol*rz
    for k in range(1000):
        Hd = dual.times(d) + damping*D*d
        al = rz/(d@Hd)
        x += al*d
        r -= al*Hd
        z = r/D
        rz2 = r@z
        if rz2 <= goal: break
        d = z + rz2/rz*d
        rz = rz2
    if DEBUG: print("   cg", k)
    return x
