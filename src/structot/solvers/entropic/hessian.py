"""The negative Hessian of the smooth dual, and Newton's directions."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from structot._deadline import check_time
from structot._parallel import in_turns
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.hessian import GroupedHessian, add_pools
from structot.blocks.pools import PoolMatrix
from structot.solvers.entropic import kernels
from structot.solvers.entropic.elimination import solve_free

# Curvature that lets a multiplier stay where it is, in units of the largest.
_HOLDS = 1e12
# From this share of all on it pays to leave out what stays: a copy of the rest is small then.
_MANY = 0.25


class Hessian:
    """H = [diag(Θ1), Θ; Θᵀ, diag(Θᵀ1)] + Σ_B θ_B c_B c_Bᵀ: edges that move alone, then pools.

    Parameters
    ----------
    single
        Θ, shape (n, m).
    pools, weight
        The rows c_B of pools of several edges, and θ_B; None if there is no such pool.
    """

    def __init__(
        self, single: Array, pools: PoolMatrix | None = None, weight: Array | None = None
    ) -> None:
        self.single, self.pools = single, pools
        self.weight = np.empty(0) if weight is None else weight
        self.own = np.concatenate([single.sum(axis=1), single.sum(axis=0)])
        self.diagonal = self.own.copy()
        if pools is not None:
            squares = np.repeat(self.weight, np.diff(pools.indptr)) * pools.data**2
            self.diagonal += np.bincount(pools.indices, squares, self.own.size)

    @property
    def softness(self) -> Array:
        """1 / diag(H), large where that is 0."""
        return 1.0 / np.maximum(self.diagonal, np.finfo(float).tiny)

    def times(self, x: Array) -> Array:
        """H x."""
        n = self.single.shape[0]
        y = self.own * x
        rows, cols = kernels.bipartite_times(self.single, x[:n], x[n:])
        y[:n] += rows
        y[n:] += cols
        if self.pools is not None:
            indptr, indices, data, _ = self.pools
            kernels.pool_times(indptr, indices, data, self.weight, x, y)
        return y

    def matrix(self) -> Array:
        """H as a dense array (n+m, n+m)."""
        n = self.single.shape[0]
        H = np.diag(self.own)
        H[:n, n:] = self.single
        H[n:, :n] = self.single.T
        if self.pools is not None:
            counts = self.pools.sparse(self.own.size)
            H += (counts.T @ (counts * self.weight[:, None])).toarray()
        return H


class Directions:
    """Newton's directions: s with (H + diag(D)) s = g.

    Parameters
    ----------
    layer
        The blocks in which pools lie; None for plain transport.
    stiff
        Whether conjugate gradients are known to fail.
    dense
        Unknowns up to which H is factorised at once.
    dense_last
        Unknowns up to which it is factorised where conjugate gradients have failed.
    steps
        The most steps of conjugate gradients.
    """

    def __init__(
        self, layer: Blocks | None, stiff: bool, dense: int, dense_last: int, steps: int
    ) -> None:
        self.layer, self.dense, self.dense_last, self.steps = layer, dense, dense_last, steps
        self._stiff = stiff  # where conjugate gradients fail once they would fail again
        self._grouped: GroupedHessian | None = None
        # Pools whose part of H is known: what changes between two solves may be the edges alone.
        self._assembled: PoolMatrix | None = None
        self._saved: tuple[Array, Array] | None = None
        self._whole: Array | None = None  # D of the sum that the groups hold, if they hold one

    def solve(self, H: Hessian, g: Array, D: Array, tol: float) -> Array:
        """s, to the tolerance or better; ``g`` may hold several right sides as columns."""
        size = D.size
        if self._iterates(size):
            columns = g[:, None] if g.ndim == 1 else g
            found = [_conjugate_gradients(H, x, D, tol, self.steps) for x in columns.T]
            if size > self.dense_last or all(reached for _, reached in found):
                return np.column_stack([s for s, _ in found]).reshape(g.shape)
            self._stiff = True
        scale = 1.0 / np.sqrt(H.diagonal + D)
        try:
            return self._by_groups(H, g, D) if self.layer is not None else _cholesky(H, g, scale)
        except LinAlgError:
            # Rounding made H indefinite: a scaled gradient is a direction of ascent all the same.
            return (scale * scale * g.T).T

    def _iterates(self, size: int) -> bool:
        """Whether so many unknowns are left to conjugate gradients, at least at first."""
        return size > self.dense_last or (size > self.dense and not self._stiff)

    def forget(self) -> None:
        """Give back the memory of what is kept from one solve to the next."""
        self._assembled = self._saved = None

    def solve_free(self, H: Hessian, g: Array, D: Array, still: Array, tol: float) -> Array:
        """The same of the columns of ``g`` for the multipliers that do not stay; 0 where they do.

        Several calls in a row with the same H and D cost less: they are assembled once.
        """
        size = D.size
        if self.layer is None or self._iterates(size) or np.count_nonzero(still) < _MANY * size:
            firm = np.where(still, _HOLDS * float((H.diagonal + D).max()), D)
            some = np.where(still[:, None], 0.0, g)
            return np.where(still[:, None], 0.0, self.solve(H, some, firm, tol))
        if self._whole is not D:
            self._assemble(H, D)
            self._whole = D
        assert self._grouped is not None
        try:
            return solve_free(self._grouped, ~still, g)
        except LinAlgError:
            return np.where(still[:, None], 0.0, g / (H.diagonal + D)[:, None])

    def _by_groups(self, H: Hessian, g: Array, D: Array) -> Array:
        self._assemble(H, D)
        assert self._grouped is not None
        return self._grouped.solve(g)

    def _assemble(self, H: Hessian, D: Array) -> None:
        """H + diag(D) in groups."""
        self._whole = None
        assert self.layer is not None
        if self._grouped is None:
            self._grouped = GroupedHessian(self.layer)
        G = self._grouped
        if H.pools is None:
            G.clear()
        elif self._saved is not None and H.pools is self._assembled:
            G.restore(self._saved)
        else:
            G.clear()
            pools, weight = H.pools, H.weight
            in_turns(
                pools.data.size,
                lambda turn, turns: add_pools(turn, turns, pools, weight, G.parts),
            )
            self._assembled, self._saved = pools, G.saved()
        G.couple(H.single)
        G.add_diagonal(H.own + D)


def _cholesky(H: Hessian, g: Array, scale: Array) -> Array:
    A = H.matrix()
    A *= scale[:, None]
    A *= scale
    A[np.diag_indices_from(A)] = 1.0
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return (scale * cho_solve(factor, (scale * g.T).T, check_finite=False).T).T


def _conjugate_gradients(
    H: Hessian, g: Array, D: Array, tol: float, steps: int
) -> tuple[Array, bool]:
    """The same by preconditioned conjugate gradients, and whether they reached the tolerance."""
    diagonal = H.diagonal + D
    s, r = np.zeros_like(g), g.copy()
    z = r / diagonal
    d = z
    square = float(r @ z)
    goal = tol * tol * square
    for _ in range(steps):
        check_time()
        Hd = H.times(d) + D * d
        curvature = float(d @ Hd)
        if not curvature > 0.0:
            break
        s += square / curvature * d
        r -= square / curvature * Hd
        z = r / diagonal
        last, square = square, float(r @ z)
        if square <= goal:
            return s, True
        d = z + square / last * d
    return s, square <= goal
