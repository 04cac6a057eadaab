"""The negative Hessian of the smooth dual, and Newton's directions."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, vstack

from structot._deadline import check_time
from structot.solvers.entropic import kernels

Array = np.ndarray


class Hessian:
    """H = [diag(Θ1), Θ; Θᵀ, diag(Θᵀ1)] + Aᵀ diag(θ) A: pools of one edge, then the others.

    Parameters
    ----------
    single
        Θ, shape (n, m).
    counts, weight
        A, one row c_B per pool of several edges, and θ_B; None if there is no such pool.
    """

    def __init__(
        self, single: Array, counts: csr_array | None = None, weight: Array | None = None
    ) -> None:
        self.single, self.counts = single, counts
        self.weight = np.empty(0) if weight is None else weight
        self._own = np.concatenate([single.sum(axis=1), single.sum(axis=0)])
        self.diagonal = self._own.copy()
        if counts is not None:
            self._columns = counts.T.tocsr()
            self.diagonal += self._columns.multiply(self._columns) @ self.weight

    def times(self, x: Array) -> Array:
        """H x."""
        n = self.single.shape[0]
        y = self._own * x
        rows, cols = kernels.bipartite_times(self.single, x[:n], x[n:])
        y[:n] += rows
        y[n:] += cols
        if self.counts is not None:
            y += self._columns @ (self.weight * (self.counts @ x))
        return y

    def plus(self, other: Hessian, factor: float) -> Hessian:
        """self + factor · other."""
        single = self.single + factor * other.single
        terms = [
            (H.counts, x * H.weight)
            for H, x in ((self, 1.0), (other, factor))
            if H.counts is not None
        ]
        if not terms:
            return Hessian(single)
        counts, weight = zip(*terms, strict=True)
        return Hessian(single, vstack(counts, format="csr"), np.concatenate(weight))

    def matrix(self) -> Array:
        """H as a dense array (n+m, n+m)."""
        n = self.single.shape[0]
        H = np.diag(self._own)
        H[:n, n:] = self.single
        H[n:, :n] = self.single.T
        if self.counts is not None:
            C = self.counts
            kernels.add_pools(C.indptr, C.indices, C.data, self.weight, H)
        return H


class Directions:
    """Newton's directions: s with (H + diag(D)) s = g.

    Parameters
    ----------
    dense
        Unknowns up to which H is factorised at once.
    dense_last
        Unknowns up to which it is factorised where conjugate gradients have failed.
    steps
        The most steps of conjugate gradients.
    """

    def __init__(self, dense: int, dense_last: int, steps: int) -> None:
        self.dense, self.dense_last, self.steps = dense, dense_last, steps
        self._stiff = False  # where conjugate gradients fail once they would fail again

    def solve(self, H: Hessian, g: Array, D: Array, tol: float) -> Array:
        """s, to the tolerance or better."""
        if g.size > self.dense and not self._stiff:
            s, reached = _conjugate_gradients(H, g, D, tol, self.steps)
            if reached or g.size > self.dense_last:
                return s
            self._stiff = True
        return _cholesky(H, g, D)


def _cholesky(H: Hessian, g: Array, D: Array) -> Array:
    scale = 1.0 / np.sqrt(H.diagonal + D)
    A = H.matrix()
    A *= scale[:, None]
    A *= scale
    A[np.diag_indices_from(A)] = 1.0
    for _ in range(4):
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
            return scale * cho_solve(factor, scale * g, check_finite=False)
        except LinAlgError:
            A[np.diag_indices_from(A)] *= 1.0 + 1e-8
    return scale * scale * g


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
