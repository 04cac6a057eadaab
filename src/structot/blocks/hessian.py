"""The Hessian of a Newton method whose pools lie in blocks, assembled and solved by groups.

Notation. The unknowns are the multipliers of rows and columns. A pool lies in one block, so that it
joins rows of one group and columns of one group only: the part of H of either side is block
diagonal. With D the part of one side, E that of the other and C their coupling,

    H = [[D, C], [Cᵀ, E]],     S = E - Cᵀ D⁻¹ C,

D is eliminated group by group, and only S is factorised as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numba import njit
from scipy.linalg.blas import dsyrk, dtrsm

from structot._typing import Array
from structot.blocks.function import Blocks


class Parts(NamedTuple):
    """What the kernels fill: where an unknown stands, and the three parts of H."""

    flipped: bool
    place: Array
    group: Array
    bounds: Array
    corner: Array
    D: Array
    C: Array
    E: Array


class GroupedHessian:
    """Memory for H, and its solver. ``flipped``: the columns are eliminated, not the rows."""

    def __init__(self, layer: Blocks) -> None:
        n, m = layer.shape
        row_group, col_group = (
            np.zeros(size, np.int64) if group is None or group.min() < 0 else group
            for group, size in ((layer.row_group, n), (layer.col_group, m))
        )
        # Eliminating a group costs the cube of its size; what is left, the cube of the other side.
        cost = [
            float((np.bincount(g) ** 2.0).sum()) * k + k**3 / 3 + g.size * k**2.0
            for g, k in ((row_group, m), (col_group, n))
        ]
        self.flipped = cost[1] < cost[0]
        group, kept = (col_group, n) if self.flipped else (row_group, m)
        self.n, self.m = n, m
        sizes = np.bincount(group)
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.corner = np.concatenate([[0], np.cumsum(sizes**2)])
        self.order = np.argsort(group, kind="stable")  # the eliminated side, group after group
        self.place = np.empty(group.size, np.int64)
        self.place[self.order] = np.arange(group.size)
        self.group = group[self.order]
        within = np.arange(group.size) - self.bounds[self.group]
        self._diagonal = self.corner[self.group] + within * (sizes[self.group] + 1)
        self.D = np.empty(self.corner[-1])
        self.C = np.empty((group.size, kept))
        self.E = np.empty((kept, kept))

    def clear(self) -> None:
        self.D.fill(0.0)
        self.C.fill(0.0)
        self.E.fill(0.0)

    def saved(self) -> tuple[Array, ...]:
        """H as it is now: `solve` overwrites it."""
        return self.D.copy(), self.C.copy(), self.E.copy()

    def restore(self, saved: tuple[Array, ...]) -> None:
        for own, then in zip((self.D, self.C, self.E), saved, strict=True):
            np.copyto(own, then)

    @property
    def parts(self) -> Parts:
        where = self.flipped, self.place, self.group, self.bounds, self.corner
        return Parts(*where, self.D, self.C, self.E)

    def couple(self, theta: Array) -> None:
        """C += theta, shape (n, m): the coupling of edges that move alone, without its diagonal."""
        self.C += (theta.T if self.flipped else theta)[self.order]

    def add_diagonal(self, x: Array) -> None:
        out, kept = self._split(x)
        self.D[self._diagonal] += out
        self.E.ravel()[:: self.E.shape[0] + 1] += kept

    def solve(self, x: Array) -> Array:
        """H⁻¹ x; overwrites H. LAPACK sees the transposes, which need no copy."""
        out, kept = self._split(x)
        C = self.C
        single = self.corner[-1] == C.shape[0]
        if single:
            root = np.sqrt(self.D)
            C /= root[:, None]
            out = out / root
        else:
            factors = []
            for k in range(self.bounds.size - 1):
                i, j = self.bounds[k], self.bounds[k + 1]
                D = self.D[self.corner[k] : self.corner[k + 1]].reshape(j - i, j - i)
                L = scipy.linalg.cholesky(D.T, lower=True, overwrite_a=True, check_finite=False)
                dtrsm(1.0, L, C[i:j].T, side=1, lower=1, trans_a=1, overwrite_b=1)
                out[i:j] = scipy.linalg.solve_triangular(
                    L, out[i:j], lower=True, check_finite=False
                )
                factors.append(L)
        S = dsyrk(-1.0, C.T, beta=1.0, c=self.E.T, trans=0, lower=1, overwrite_c=1)
        factor = scipy.linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        kept = scipy.linalg.cho_solve(factor, kept - out @ C, check_finite=False)
        out -= C @ kept
        if single:
            out /= root
        else:
            for k, L in enumerate(factors):
                i, j = self.bounds[k], self.bounds[k + 1]
                out[i:j] = scipy.linalg.solve_triangular(
                    L, out[i:j], lower=True, trans=1, check_finite=False
                )
        back = np.empty_like(out)
        back[self.order] = out
        return np.concatenate([kept, back] if self.flipped else [back, kept])

    def _split(self, x: Array) -> tuple[Array, Array]:
        rows, cols = x[: self.n], x[self.n :]
        out, kept = (cols, rows) if self.flipped else (rows, cols)
        return out[self.order], kept


@njit(cache=True, nogil=True)
def add_pools(turn, turns, matrix, theta, n, parts):
    """H += Σ_B theta_B c_B c_Bᵀ.

    Each of several threads fills the lines of H whose number leaves the rest ``turn``.
    """
    indptr, indices, data, _ = matrix
    flipped, place, group, bounds, corner, D, C, E = parts
    # The entries of one pool, those of the eliminated side first: loops without a decision.
    where = np.empty(place.size + E.shape[0], np.int64)
    count = np.empty(place.size + E.shape[0])
    for t in range(theta.size):
        size = indptr[t + 1] - indptr[t]
        out, kept = 0, size
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k]
            is_column = i >= n
            i = i - n if is_column else i
            if is_column != flipped:
                kept -= 1
                where[kept], count[kept] = i, data[k]
            else:
                where[out], count[out] = place[i], data[k]
                out += 1
        for k in range(out, size):
            i = where[k]
            if i % turns == turn:
                x = theta[t] * count[k]
                line = E[i]
                for r in range(out, size):
                    line[where[r]] += x * count[r]
        if out > 0:
            g = group[where[0]]
            first, width = bounds[g], bounds[g + 1] - bounds[g]
            for k in range(out):
                i = where[k]
                if i % turns == turn:
                    x = theta[t] * count[k]
                    line = C[i]
                    for r in range(out, size):
                        line[where[r]] += x * count[r]
                    begin = corner[g] + (i - first) * width - first
                    for r in range(out):
                        D[begin + where[r]] += x * count[r]
