"""The inner problem of the Newton method: the dual of one proximal step.

Notation. Around the plan Y, with multipliers p, q of the marginals and z = p ⊕ q,

    φ(p,q) = min_{X >= 0} f(X) + <C, X> + ρ/2 Σ w (X - Y)² - <z, X> + a·p + b·q
           = a·p + b·q + ρ/2 Σ w (Y² - X²),     X = prox(Y + (z - C)/(ρ w)),
    ∇φ = (a - X1, b - Xᵀ1),     -∂²φ ∋ H = (1/ρ) Σ_B c_B c_Bᵀ / w(B)   over the pools B.

The second form of φ holds because f(X) = <K, X> with K = ρ w (V - X) in B(F). Relaxed marginals
(`marginals/`) have dual terms of their own for a·p + b·q, what they want in the place of a and b,
and a diagonal of their own beside H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from structot._deadline import check_time
from structot._parallel import in_turns, over_blocks
from structot.blocks.function import Blocks
from structot.blocks.hessian import GroupedHessian, add_pools
from structot.blocks.pools import PoolMatrix, Pools, pool_matrix
from structot.certificate import potential_size, transport_bound
from structot.problem import Problem
from structot.solvers._held import held_direction
from structot.solvers.newton import kernels

Array = np.ndarray

# (u, v) with u ⊕ v in P(F), and the bound they prove.
Proof = tuple[Array, Array, float]

_EMPTY = np.empty(0)
# Up to this many unknowns a dense Cholesky factor is faster than conjugate gradients, and exact.
_DENSE = 2600
# Smallest weight of the iteration, relative to the mean.
_LEAST_WEIGHT = 1e-9
# Polishing of a bound stops when a round closes less than this part of the gap.
_POLISHING_PAYS = 0.08


@dataclass(frozen=True)
class Value:
    """φ and its gradient at some (p, q), and how far X is from Y (L1)."""

    phi: float
    gradient: Array
    moved: float


class ProximalDual:
    """φ around a plan, for one layer of blocks plus a linear part. Holds the last X and pools."""

    def __init__(self, problem: Problem) -> None:
        layer = problem.blocks
        assert layer is not None
        # Tiny costs spoil the conditioning of H. The iteration may see them raised a little, since
        # plan and bound are certified with the true ones.
        self.true_layer = layer
        self.layer = layer = layer.floored(_LEAST_WEIGHT * float(layer.w.mean()))
        self.problem = problem
        self.a, self.b = problem.a, problem.b
        self.n, self.m = problem.shape
        self.C = _EMPTY if problem.linear is None else layer.gather(problem.linear)
        self.V, self.Y = np.empty(layer.w.size), np.empty(layer.w.size)
        self.pools = Pools.empty(layer.w.size, layer.start.size - 1)
        self.rho = 1.0
        # Diagonal of ρ times the Hessian in which every edge is active and alone.
        self.full_diagonal = kernels.sums_of_inverses(layer.edges, self.n, self.m)
        mean = self.full_diagonal.sum() / (2 * layer.w.size)
        self.full_diagonal[self.full_diagonal == 0] = mean  # points without edges
        self._hessian: GroupedHessian | None = None
        # Of the sides at the last point: their curvature, and the multipliers they hold.
        self._own, self._point = np.zeros(self.n + self.m), (np.zeros(self.n), np.zeros(self.m))
        self.held: Array | None = None

    @property
    def X(self) -> Array:
        return self.pools.X

    def centre(self, Y: Array, rho: float) -> None:
        """Put the proximal term around Y, which is kept, with weight rho."""
        self.Y, self.rho = Y, rho
        self._square = float(np.einsum("e,e,e->", self.layer.w, Y, Y))

    def recentre(self, rho: float, plan: Array | None = None) -> None:
        """Put the proximal term around a plan or the last X, in the memory of the last centre."""
        if plan is None:
            np.copyto(self.Y, self.X)
        else:
            self.layer.gather(plan, out=self.Y)
        self.centre(self.Y, rho)

    def evaluate(self, p: Array, q: Array) -> Value:
        """φ, ∇φ; leaves X and its pools behind."""
        F, pools = self.layer, self.pools
        self._prox(F, self.Y, p, q, self.rho, pools)
        parts = over_blocks(
            F.start,
            lambda i, j: kernels.marginals(i, j, F.edges, pools, self.Y, self.n, self.m),
        )
        rows, cols, square, moved = (sum(x) for x in zip(*parts, strict=True))
        marginals = self.problem.marginals
        phi = marginals.dual_value(p, q) + 0.5 * self.rho * (self._square - square)
        gradient = marginals.wanted(p, q, rows, cols) - np.concatenate([rows, cols])
        self._own, self._point = marginals.curvature(p, q), (p, q)
        self.held = None if marginals.smooth else marginals.held(p, q, rows, cols)
        return Value(float(phi), gradient, float(moved))

    def _prox(
        self,
        F: Blocks,
        Y: Array,
        p: Array,
        q: Array,
        rho: float,
        pools: Pools,
        floor: float = 0.0,
    ) -> None:
        check_time()
        over_blocks(
            F.start,
            lambda i, j: kernels.shift_point(i, j, F.edges, Y, self.C, p, q, rho, self.V),
        )
        F.prox_edges(self.V, rho, floor, pools)

    def pool_matrix(self) -> PoolMatrix:
        """The pools of the last X."""
        return pool_matrix(self.layer.edges, self.pools, (self.n, self.m))

    def _theta(self, G: PoolMatrix) -> Array:
        """θ_B = 1/(ρ w(B)), so that H = Gᵀ diag(θ) G."""
        return 1.0 / (self.rho * G.weight)

    def direction(self, G: PoolMatrix, gradient: Array, share: float, active: bool) -> Array:
        """Solve ((1 - share) H + share · H_alone) d = ∇φ.

        H_alone is the Hessian in which every edge (or every active one) moves alone: what the
        curvature becomes where pools break. A share of it damps H with the right geometry.
        """
        # The null direction (1, -1), and points without active edges, need a trace of diagonal.
        check_time()
        ridge = 1e-10 * self.full_diagonal / self.rho + self._own
        if self.held is None:
            return self._direction(G, gradient, share, active, ridge)
        return held_direction(
            lambda x, D: self._direction(G, x, share, active, D),
            lambda x: self._times(G, x, share, active),
            *(gradient, ridge, self.problem.marginals, self._point, self.held),
            largest=float(self.full_diagonal.max()) / self.rho,
        )

    def _times(self, G: PoolMatrix, x: Array, share: float, active: bool) -> Array:
        """((1 - share) H + share · H_alone) x."""
        matrix, F = G.sparse(self.n + self.m), self.layer
        out = matrix.T @ ((1.0 - share) * self._theta(G) * (matrix @ x))
        change = (x[F.row] + x[self.n + F.col]) * (share / self.rho) / F.w
        if active:
            change[self.X <= 0.0] = 0.0
        out[: self.n] += np.bincount(F.row, change, self.n)
        out[self.n :] += np.bincount(F.col, change, self.m)
        return out

    def _direction(
        self, G: PoolMatrix, gradient: Array, share: float, active: bool, ridge: Array
    ) -> Array:
        if ridge.size > _DENSE:
            return self._conjugate_gradients(G, gradient, share, ridge)
        F = self.layer
        if self._hessian is None:
            self._hessian = GroupedHessian(F)
        H = self._hessian
        H.clear()
        theta, alone = (1.0 - share) * self._theta(G), share / self.rho
        in_turns(
            F.w.size,
            lambda turn, turns: add_pools(turn, turns, G, theta, self.n, H.parts),
        )
        if active:
            kernels.add_active(F.edges, self.X, alone, H.parts)
            H.add_diagonal(ridge)
        else:
            over_blocks(
                F.start,
                lambda i, j: kernels.add_couplings(i, j, F.edges, alone, H.parts),
            )
            H.add_diagonal(ridge + alone * self.full_diagonal)
        try:
            return H.solve(gradient)
        except scipy.linalg.LinAlgError:
            # Rounding made H indefinite: a scaled gradient is a direction of ascent all the same.
            return gradient * self.rho / self.full_diagonal

    def _conjugate_gradients(
        self, G: PoolMatrix, gradient: Array, share: float, ridge: Array
    ) -> Array:
        unknowns = self.n + self.m
        matrix = G.sparse(unknowns)
        theta = (1.0 - share) * self._theta(G)
        alone = share * self.full_diagonal / self.rho + ridge
        diagonal = alone + (matrix.power(2).T @ theta)

        def multiply(x: Array) -> Array:
            check_time()
            return matrix.T @ (theta * (matrix @ x)) + alone * x

        shape = (unknowns, unknowns)
        H = scipy.sparse.linalg.LinearOperator(shape, multiply, dtype=float)
        inverse = scipy.sparse.linalg.LinearOperator(shape, lambda x: x / diagonal, dtype=float)
        answer, _ = scipy.sparse.linalg.cg(H, gradient, rtol=1e-4, maxiter=400, M=inverse)
        return answer

    def repaired(self, gradient: Array, share: float) -> Array:
        """X moved towards the marginals the cheapest way its pools allow, in edge order.

        X alone misses the marginals by ∇φ. Pools answer a step of the multipliers as a whole, at
        no extra cost in f; a small share of edges moving alone makes the model full rank.
        """
        G = self.pool_matrix()
        d = self.direction(G, gradient, share, active=True)
        level = self._theta(G) * (G.sparse(self.n + self.m) @ d)
        out = self.V  # free until the next evaluation
        kernels.repair(self.layer.edges, self.pools, d, self.n, share, self.rho, level, out)
        return out

    def proved_potentials(self, p: Array, q: Array, pools: Pools) -> Proof:
        """From the prox at (p, q), the last one evaluated, or from its projection: the better."""
        proof = self.projected_potentials(p, q, pools)
        if self.true_layer is not self.layer:
            return proof
        return max(proof, self._proved(self.Y, self.X, p, q, self.rho), key=lambda x: x[2])

    def projected_potentials(self, p: Array, q: Array, pools: Pools) -> Proof:
        """From any p ⊕ q, projected onto P(F)."""
        self._prox(self.true_layer, _EMPTY, p, q, 1.0, pools)
        return self._proved(_EMPTY, pools.X, p, q, 1.0)

    def polished(self, proof: Proof, pools: Pools, ceiling: float, rounds: int) -> Proof:
        """The projection onto B(F) raises u ⊕ v to a K, and the c-transform raises u and v to K.

        The bound never falls. Rounds go on while they close a good part of what is missing to
        ``ceiling``, the best value known.
        """
        u, v, bound = proof
        for _ in range(rounds):
            check_time()
            self._prox(self.true_layer, _EMPTY, u, v, 1.0, pools, floor=-np.inf)
            u, v, raised = self._proved(_EMPTY, pools.X, u, v, 1.0)
            gained, bound = raised - bound, raised
            if gained < _POLISHING_PAYS * (ceiling - bound):
                break
        return u, v, bound

    def _proved(self, Y: Array, X: Array, p: Array, q: Array, rho: float) -> Proof:
        F = self.true_layer
        u, v = kernels.bound_potentials(F.edges, Y, X, p, q, rho)
        u, v = self.problem.marginals.proved(u, v)
        made_of = potential_size(self.problem, p, q) + (rho * self._square if Y.size else 0.0)
        return u, v, transport_bound(self.problem, u, v, made_of)
