"""The inner problem of the Newton method: the dual of one proximal step.

Notation. Around the plan Y, with multipliers p, q of the marginals and z = p ⊕ q,

    φ(p,q) = min_{X >= 0} f(X) + <C, X> + ρ/2 Σ w (X - Y)² - <z, X> + a·p + b·q
           = a·p + b·q + ρ/2 Σ w (Y² - X²),     X = prox(Y + (z - C)/(ρ w)),
    ∇φ = (a - X1, b - Xᵀ1),     -∂²φ ∋ H = (1/ρ) Σ_B c_B c_Bᵀ / w(B)   over the pools B.

H is the curvature as long as no pool breaks. Within a step many do, and what comes loose is far
less stiff: a step by H alone overshoots. Steps therefore solve with H plus the curvature of edges
that are near to leaving their pool, or zero, as if they moved alone already: all of it where they
need not move at all, less the farther they are, measured by the `reach` that a step may have.

The second form of φ holds because f(X) = <K, X> with K = ρ w (V - X) in B(F). Relaxed marginals
(`marginals/`) have dual terms of their own for a·p + b·q, what they want in the place of a and b,
and a diagonal of their own beside H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structot._deadline import check_time
from structot._parallel import in_turns, over_blocks
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.hessian import GroupedHessian, add_pools
from structot.blocks.pools import PoolMatrix, Pools, pool_matrix
from structot.certificate import potential_size, transport_bound
from structot.problem import Problem
from structot.solvers.newton import kernels
from structot.solvers.newton.held import held_direction
from structot.submodular.base import inner as inner_product

# (u, v) with u ⊕ v in P(F), and the bound they prove.
Proof = tuple[Array, Array, float]

_EMPTY = np.empty(0)
# Smallest weight of the iteration, relative to the mean.
_LEAST_WEIGHT = 1e-9
# From so many points on, and with a diagonal of at least this part of the fully active Hessian,
# directions are found in single precision.
_LARGE, _SINGLE = 1000, 3e-6
# Polishing of a bound stops when a round closes less than this part of the gap.
_POLISHING_PAYS = 0.08


@dataclass(frozen=True)
class Value:
    """φ and its gradient at (p, q), and how far X is from Y (L1)."""

    p: Array
    q: Array
    phi: float
    gradient: Array
    moved: float


class ProximalDual:
    """φ around a plan, for one layer of blocks plus a linear part. Holds the last X and pools."""

    def __init__(self, problem: Problem, background: float = 0.3) -> None:
        layer = problem.blocks
        assert layer is not None
        # Tiny costs spoil the conditioning of H. The iteration may see them raised a little, since
        # plan and bound are certified with the true ones.
        self.true_layer = layer
        self.layer = layer = layer.floored(_LEAST_WEIGHT * float(layer.w.mean()))
        self.problem, self._background = problem, background
        self.a, self.b = problem.a, problem.b
        self.n, self.m = problem.shape
        self.C = _EMPTY if problem.linear is None else layer.gather(problem.linear)
        edges, blocks = layer.w.size, layer.start.size - 1
        self._price_alone()
        self._scratch, self.Y = np.empty(edges), np.empty(edges)
        self.pools = Pools.empty(edges, blocks)
        # Projections leave their X where their point was.
        self._projection = Pools.empty(edges, blocks, X=self._scratch)
        # Blocks in which Y is not 0, and blocks in which X or Y is not.
        self._carries, self._busy = np.ones(blocks, bool), np.ones(blocks, bool)
        self.rho = 1.0
        # Diagonal of ρ times the Hessian in which every edge is active and alone.
        self.full_diagonal = kernels.sums_of_inverses(layer.edges, self.n, self.m)
        mean = self.full_diagonal.sum() / (2 * edges)
        self.full_diagonal[self.full_diagonal == 0] = mean  # points without edges
        self._hessian = GroupedHessian(layer)
        # Of the sides at the last point: their curvature, and the multipliers they hold.
        self._own, self._point = np.zeros(self.n + self.m), (np.zeros(self.n), np.zeros(self.m))
        self.held: Array | None = None

    @property
    def X(self) -> Array:
        return self.pools.X

    def _price_alone(self) -> None:
        """What a pair costs alone, and its weight, on average over the independent plan."""
        even = self.layer.gather(self.problem.independent)
        alone = self.layer.single_edges()
        if self.C.size:
            alone += self.C
        self.weight = float(self.layer.w @ even / even.sum())
        price = float(alone @ even / even.sum())
        self.price = price if price > 0 else self.weight

    def centre(self, plan: Array | None, rho: float) -> None:
        """Put the proximal term, with weight rho, around a plan (None: around the last X)."""
        if plan is None:
            np.copyto(self.Y, self.X)
            np.greater(self.pools.n_pools, 0, out=self._carries)
        else:
            self.layer.gather(plan, out=self.Y)
            self._carries[:] = np.add.reduceat(self.Y, self.layer.start[:-1]) > 0
        self.rho = rho
        self._square = float(np.einsum("e,e,e->", self.layer.w, self.Y, self.Y))
        self._mass = float(self.Y.sum())

    def evaluate(self, p: Array, q: Array) -> Value:
        """φ, ∇φ; leaves X and its pools behind."""
        F, pools = self.layer, self.pools
        self._busy = self._prox(F, self.Y, p, q, self.rho, pools)
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
        return Value(p, q, float(phi), gradient, self._mass + float(moved))

    def _prox(self, F: Blocks, Y: Array, p: Array, q: Array, rho: float, pools: Pools) -> Array:
        """X = prox(Y + (p ⊕ q - C) / (rho w)) cut at 0, into ``pools``; Y may be empty (zero).

        Returns the blocks (B,) outside which X = Y = 0.
        """
        check_time()
        V, busy = self._scratch, np.empty(F.start.size - 1, bool)
        carries = self._carries if Y.size else np.zeros_like(busy)
        where = p, q, rho, F.last_slopes, V, busy
        over_blocks(
            F.start,
            lambda i, j: kernels.shift_point(i, j, F.edges, Y, carries, self.C, *where),
        )
        F.prox_edges(V, rho, 0.0, pools, busy)
        return busy

    def pool_matrix(self) -> PoolMatrix:
        """The pools of several edges of the last X; the others count as loose edges."""
        return pool_matrix(self.layer.edges, self.pools, (self.n, self.m), least=2)

    def _theta(self, G: PoolMatrix) -> Array:
        """θ_B = 1/(ρ w(B)), so that H = Gᵀ diag(θ) G."""
        return 1.0 / (self.rho * G.weight)

    def direction(self, G: PoolMatrix, value: Value, reach: float) -> Array:
        """Solve (H + H_loose + a diagonal) d = ∇φ at ``value``, the last one evaluated.

        H_loose is the curvature of edges that are alone, or may leave their pools within ``reach``,
        a change of p ⊕ q. Blocks that are not in use open as a whole if at all: they are part of
        the diagonal.
        """
        check_time()
        F, pools, share = self.layer, self.pools, self._scratch
        prox = self.Y, self.C, value.p, value.q, self.rho
        over_blocks(F.start, lambda i, j: kernels.subgradient(i, j, F.edges, pools, prox, share))
        F.loosen_edges(share, pools, reach)
        # The null direction (1, -1), and points without edges in use, need a trace of diagonal.
        part = 1e-10 + self._background * min(reach / self.price, 1.0)
        single = self.n + self.m >= _LARGE and part >= _SINGLE
        ridge = part / self.rho * self.full_diagonal + self._own
        if self.held is None:
            return self._direction(G, value.gradient, ridge, single)
        return held_direction(
            lambda x, D: self._direction(G, x, D, single),
            lambda x: self._times(G, x),
            *(value.gradient, ridge, self.problem.marginals, self._point, self.held),
            largest=float(self.full_diagonal.max()) / self.rho,
        )

    def _times(self, G: PoolMatrix, x: Array) -> Array:
        """(H + H_loose) x, where `direction` has found out what is loose."""
        matrix, F, used = G.sparse(self.n + self.m), self.layer, self.pools.n_pools > 0
        out = matrix.T @ (self._theta(G) * (matrix @ x))
        return out + sum(
            over_blocks(
                F.start,
                lambda i, j: kernels.times_loose(
                    i, j, F.edges, used, self._scratch, self.rho, x, self.n
                ),
            )
        )

    def _direction(self, G: PoolMatrix, gradient: Array, ridge: Array, single: bool) -> Array:
        F, H, used = self.layer, self._hessian, self.pools.n_pools > 0
        H.clear(used, F.edges)
        theta, where = self._theta(G), (H.parts, self.n, self.m)
        in_turns(
            F.w.size,
            lambda turn, turns: add_pools(turn, turns, G, theta, H.parts),
        )
        diagonal = sum(
            over_blocks(
                F.start,
                lambda i, j: kernels.add_loose(
                    i, j, F.edges, used, self._scratch, self.rho, *where
                ),
            )
        )
        H.add_diagonal(ridge + diagonal)
        try:
            return H.solve(gradient, single)
        except np.linalg.LinAlgError:
            if single:
                return self._direction(G, gradient, ridge, single=False)
            # Rounding made H indefinite: a scaled gradient is a direction of ascent all the same.
            return (gradient.T * self.rho / self.full_diagonal).T

    def repaired(self, value: Value, reach: float) -> Array:
        """X moved towards the marginals by a Newton step of its model, as a plan (n, m).

        X alone misses the marginals by ∇φ. Pools answer a step of the multipliers as a whole, at
        no extra cost in f; edges that come loose make the model full rank.
        """
        G = self.pool_matrix()
        d = self.direction(G, value, reach)
        level = self._theta(G) * (G.sparse(self.n + self.m) @ d)
        self._hessian.release()  # what follows, a certificate, takes memory of its own
        x = self._scratch  # until now the share to which edges are loose
        kernels.repair(self.layer.edges, self.pools, d, self.n, self.rho, level, x)
        return self.layer.scatter(x)

    def fill_rests(self, P: Array, r: Array, c: Array, everywhere: bool) -> None:
        """Add to P what its rows and columns lack, on active edges first; see the kernel."""
        kernels.fill_rests(self.layer.edges, self.pools, P, r, c, everywhere)

    def proofs(self, value: Value) -> list[Proof]:
        """What the prox at ``value``, the last one evaluated, and p ⊕ q prove.

        Of the prox K = p ⊕ q + ρ w (Y - X) is in P(F); p ⊕ q itself is projected onto P(F).
        """
        p, q, F = value.p, value.q, self.true_layer
        proofs = [self.projected(p, q)]
        if F is self.layer:
            u, v = kernels.bound_potentials(F.edges, self._busy, self.Y, self.X, p, q, self.rho)
            size = potential_size(self.problem, p, q) + self.rho * self._square
            proofs.append(self._proved(u, v, size))
        return proofs

    def projected(self, p: Array, q: Array) -> Proof:
        """From any p ⊕ q, projected onto P(F)."""
        F, pools = self.true_layer, self._projection
        busy = self._prox(F, _EMPTY, p, q, 1.0, pools)
        u, v = kernels.bound_potentials(F.edges, busy, _EMPTY, pools.X, p, q, 1.0)
        return self._proved(u, v, potential_size(self.problem, p, q))

    def polished(self, proof: Proof, ceiling: float, rounds: int) -> Proof:
        """The projection onto B(F) raises u ⊕ v to a K, and the c-transform raises u and v to K.

        The bound never falls. Rounds go on while they close a good part of what is missing to
        ``ceiling``, the best value known. Each sorts all edges.
        """
        F, pools = self.true_layer, self._projection
        everywhere = np.ones(F.start.size - 1, bool)
        for _ in range(rounds):
            check_time()
            u, v, bound = proof
            kernels.shift_point(
                *(0, everywhere.size, F.edges, np.zeros_like(F.w), everywhere, self.C, u, v, 1.0),
                *(F.last_slopes, self._scratch, everywhere),
            )
            F.prox_edges(self._scratch, 1.0, -np.inf, pools)
            u, v = kernels.bound_potentials(F.edges, everywhere, _EMPTY, pools.X, u, v, 1.0)
            raised = self._proved(u, v, potential_size(self.problem, proof[0], proof[1]))
            proof = max(proof, raised, key=lambda x: x[2])
            if raised[2] - bound < _POLISHING_PAYS * (ceiling - raised[2]):
                break
        return proof

    def _proved(self, u: Array, v: Array, made_of: float) -> Proof:
        u, v = self.problem.marginals.proved(u, v)
        return u, v, transport_bound(self.problem, u, v, made_of)

    def value_of(self, P: Array) -> float:
        """The objective at P as in `Problem.objective`; the order of the last call is a help."""
        F = self.true_layer
        value = F.extension_edges(F.gather(P, out=self._scratch), self._projection)
        value += self.problem.marginals.penalty(P)[0]
        linear = self.problem.linear
        return value if linear is None else value + inner_product(P, linear)
