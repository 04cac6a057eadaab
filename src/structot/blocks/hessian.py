"""The Hessian of a Newton method whose pools lie in blocks: assembled and solved by groups.

Notation. The unknowns are the multipliers of rows and columns. A pool lies in one block, so that it
joins rows of one group and columns of one group only: the part of H of either side is block
diagonal. With D the part of one side, E that of the other and C their coupling,

    H = [[D, C], [Cᵀ, E]],     S = E - Cᵀ D⁻¹ C,

D is eliminated group by group. The side that is kept is divided into *chunks*, runs of whole
groups. C vanishes where no block between a group and a chunk is in use, and so do the parts of
S between chunks that share no group: near an answer few blocks are in use, and what vanishes costs
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg.blas import dsyrk, dtrsm, ssyrk, strsm
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.layout import Edges

# Fewest unknowns of a chunk, and of a side that is worth dividing into groups: below this size a
# call costs more than it computes.
_CHUNK = 64
# Where more than this part of the kept unknowns is coupled all are treated as if they were.
_NEARLY_ALL = 0.8


class Parts(NamedTuple):
    """What the kernels fill: where an unknown stands, and the parts of H.

    D and E are squares that lie one after the other in ``squares``: unknowns i and j of one square
    meet at ``line[i] + place[j]``.
    """

    groups: int
    run: Array  # (n+m,) the group of an eliminated unknown; groups + the chunk of a kept one
    place: Array  # (n+m,) where it stands on its side, group after group
    line: Array  # (n+m,)
    squares: Array
    C: Array  # (eliminated, kept), by place


class Factors(NamedTuple):
    """What becomes of H, beside C ← L⁻¹C."""

    eliminated: list[tuple[int, int, Array]]  # D = LLᵀ, group by group
    root: Array | None  # instead of these where D is diagonal
    S: Array


class GroupedHessian:
    """Memory for H, and its solver. ``flipped``: the columns are eliminated, not the rows."""

    def __init__(self, layer: Blocks) -> None:
        n, m = layer.shape
        small = n + m <= 2 * _CHUNK
        rows, cols = (
            np.zeros(size, np.int64) if group is None or group.min() < 0 or small else group
            for group, size in ((layer.row_group, n), (layer.col_group, m))
        )
        # Eliminating a group costs the cube of its size; what is left, the cube of the other side.
        cost = [
            float((np.bincount(g) ** 2.0).sum()) * k + k**3 / 3 + g.size * k**2.0
            for g, k in ((rows, m), (cols, n))
        ]
        self.flipped = cost[1] < cost[0]
        self.n, self.m = n, m
        out, kept = (cols, rows) if self.flipped else (rows, cols)
        self.groups, out_place = _runs(out, 1)
        self.chunks, kept_place = _runs(kept, _CHUNK)
        places = [kept_place, out_place] if self.flipped else [out_place, kept_place]
        self._out, self._kept = (np.argsort(x) for x in (out_place, kept_place))
        place = np.concatenate(places)
        is_kept = np.arange(n + m) >= n
        is_kept = ~is_kept if self.flipped else is_kept
        run, line = np.empty((2, n + m), np.int64)
        self._corners, size, runs = [], 0, 0
        for side, bounds in ((~is_kept, self.groups), (is_kept, self.chunks)):
            widths = np.diff(bounds)
            corner = size + np.concatenate([[0], np.cumsum(widths**2)])
            own = np.searchsorted(bounds, place[side], side="right") - 1
            line[side] = corner[own] + (place[side] - bounds[own]) * widths[own] - bounds[own]
            run[side] = runs + own
            self._corners.append(corner)
            size, runs = int(corner[-1]), runs + widths.size
        nothing = np.empty((0, 0))
        self.parts = Parts(self.groups.size - 1, run, place, line, np.zeros(size), nothing)
        self._coupled = np.ones((self.groups.size - 1, self.chunks.size - 1), bool)

    def clear(self, used: Array | None = None, edges: Edges | None = None) -> None:
        """H = 0; with ``used`` (blocks,), only between the points of these blocks will C be filled.

        Blocks of any form may be marked; those of one pair of groups cost one look each.
        """
        self.parts.squares.fill(0.0)
        if self.parts.C.size:
            self.parts.C.fill(0.0)
        else:
            self.parts = self.parts._replace(C=np.zeros((self._out.size, self._kept.size)))
        if used is None or edges is None:
            self._coupled.fill(True)
        else:
            self._coupled.fill(False)
            mark_coupled(edges, used, self.n, self.parts, self._coupled)

    def release(self) -> None:
        """Give back the memory of C, as large as the problem, until H is cleared again."""
        self.parts = self.parts._replace(C=np.empty((0, 0)))

    def saved(self) -> tuple[Array, Array]:
        """H as it is now: `solve` overwrites it."""
        return self.parts.squares.copy(), self.parts.C.copy()

    def restore(self, saved: tuple[Array, Array]) -> None:
        """H as it was when it was `saved`, with C filled anywhere."""
        np.copyto(self.parts.squares, saved[0])
        np.copyto(self.parts.C, saved[1])

    def couple(self, theta: Array) -> None:
        """C += theta, shape (n, m): the coupling of edges that move alone, without its diagonal."""
        self.parts.C[...] += (theta.T if self.flipped else theta)[np.ix_(self._out, self._kept)]

    def add_diagonal(self, x: Array) -> None:
        self.parts.squares[self.parts.line + self.parts.place] += x

    def solve(self, x: Array, single: bool = False) -> Array:
        """H⁻¹ x; overwrites H. Raises LinAlgError where rounding made H indefinite.

        x is one right side (n+m,), or several as columns. In ``single`` precision what is as large
        as H is half as large, and done in half the time.
        """
        if single:
            C = self.parts.C.astype(np.float32)
            self.release()
        else:
            C = self.parts.C
        eliminated, root, S = self._factored(C)
        columns = x.reshape(len(x), -1)
        rows, cols = columns[: self.n], columns[self.n :]
        out, kept = (cols, rows) if self.flipped else (rows, cols)
        out, kept = out[self._out], kept[self._kept]
        if root is not None:
            out /= root
        for i, j, L in eliminated:
            out[i:j] = dtrsm(1.0, L, out[i:j], lower=1)
        kept -= C.T @ out.astype(C.dtype)
        solved = (dpotrs if S.dtype == np.float64 else spotrs)(S, kept)[0]
        kept = solved.astype(np.float64)
        out -= C @ solved
        if root is not None:
            out /= root
        for i, j, L in eliminated:
            out[i:j] = dtrsm(1.0, L, out[i:j], lower=1, trans_a=1)
        answer = np.empty_like(columns)
        first, second = (answer[self.n :], answer[: self.n])
        if not self.flipped:
            first, second = second, first
        first[self._out], second[self._kept] = out, kept
        return answer.reshape(x.shape)

    def _factored(self, C: Array) -> Factors:
        """D = LLᵀ, C ← L⁻¹C in place, and the factor of S."""
        squares, corner = self.parts.squares, self._corners[0]
        if self.groups.size - 1 == self._out.size:
            D = squares[: self._out.size]
            if not (D > 0).all():
                raise np.linalg.LinAlgError("a diagonal entry is not positive")
            root = np.sqrt(D)[:, None]
            C /= root
            return Factors([], root, self._factor_kept(C))
        factors = []
        trsm = dtrsm if C.dtype == np.float64 else strsm
        for k, (i, j) in enumerate(zip(self.groups[:-1], self.groups[1:], strict=True)):
            D = squares[corner[k] : corner[k + 1]].reshape(j - i, j - i)
            L = _cholesky(D.T)
            same = L.astype(C.dtype, order="F", copy=False)
            for first, last in _spans(self._coupled[k], self.chunks):
                # As Cᵀ L⁻ᵀ, since BLAS wants columns that lie one after the other.
                part = C[i:j, first:last]
                part[...] = trsm(1.0, same, part.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
            factors.append((int(i), int(j), L))
        return Factors(factors, None, self._factor_kept(C))

    def _factor_kept(self, C: Array) -> Array:
        """The factor of S; what vanishes of S is left out."""
        corner, chunks = self._corners[1], self.chunks
        S = np.zeros((self._kept.size, self._kept.size), C.dtype)  # its lower triangle
        for k, (i, j) in enumerate(itertools.pairwise(chunks)):
            S[i:j, i:j] = self.parts.squares[corner[k] : corner[k + 1]].reshape(j - i, j - i).T
        syrk = dsyrk if C.dtype == np.float64 else ssyrk
        for rows, shared in self._alike():
            used = [
                first + np.flatnonzero(C[rows, first:last].any(axis=0))
                for first, last in _spans(shared, chunks)
            ]
            columns = np.concatenate([np.empty(0, np.int64), *used])
            if columns.size > _NEARLY_ALL * len(S):
                syrk(-1.0, C[rows].T, beta=1.0, c=S.T, overwrite_c=1)
            elif columns.size:
                part = C[rows][:, columns]
                subtract_square(syrk(1.0, part.T).T, columns, S)
        # S is symmetric: its lower triangle by rows is the upper one by columns.
        return _cholesky(S.T, lower=0)

    def _alike(self) -> Iterator[tuple[slice | Array, Array]]:
        """The eliminated unknowns that are coupled to the same chunks, and to which, (chunks,).

        Large groups come one at a time: what they are coupled to differs inside the chunks.
        """
        if self.groups[-1] >= _CHUNK * (self.groups.size - 1):
            for k, (i, j) in enumerate(itertools.pairwise(self.groups.tolist())):
                yield slice(i, j), self._coupled[k]
            return
        if self._coupled.all():
            yield slice(0, int(self.groups[-1])), self._coupled[0]
            return
        bits = np.packbits(self._coupled, axis=1)
        # As strings of bytes, which NumPy sorts faster than rows.
        _, first, kind = np.unique(
            bits.view(f"S{bits.shape[1]}").ravel(), return_index=True, return_inverse=True
        )
        kind = np.repeat(kind, np.diff(self.groups))
        for k, group in enumerate(first):
            rows = np.flatnonzero(kind == k)
            together = rows[-1] - rows[0] == rows.size - 1
            yield slice(rows[0], rows[-1] + 1) if together else rows, self._coupled[group]


def _cholesky(A: Array, lower: int = 1) -> Array:
    """The factor of A in its memory; the other triangle is neither read nor written."""
    potrf = dpotrf if A.dtype == np.float64 else spotrf
    factor, failed = potrf(A, lower=lower, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return factor


def _runs(group: Array, least: int) -> tuple[Array, Array]:
    """Points in the order of their groups, cut into runs of whole groups of ``least`` points.

    Returns the bounds of the runs, and the place of every point.
    """
    place = np.empty(group.size, np.int64)
    place[np.argsort(group, kind="stable")] = np.arange(group.size)
    bounds = [0]
    for end in np.cumsum(np.bincount(group)).tolist():
        if end - bounds[-1] >= least:
            bounds.append(end)
    if bounds[-1] < group.size:
        bounds.append(group.size)
    return np.array(bounds), place


def _spans(chosen: Array, bounds: Array) -> list[tuple[int, int]]:
    """The chosen runs, those that touch each other as one."""
    if chosen.all():
        return [(0, int(bounds[-1]))]
    steps = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    return [(int(bounds[i]), int(bounds[j])) for i, j in steps.reshape(-1, 2)]


@njit(cache=True, nogil=True)
def subtract_square(square, where, S):
    """S -= a symmetric matrix between some of its unknowns, in rising order; lower triangles."""
    for x in range(where.size):
        line, own = S[where[x]], square[x]
        for y in range(x + 1):
            line[where[y]] -= own[y]


@njit(cache=True, nogil=True)
def mark_coupled(edges, used, n, parts, coupled):
    """Mark the pairs (group of an eliminated point, chunk of a kept one) that have used blocks."""
    start, row, col, _ = edges
    for b in range(used.size):
        if used[b]:
            for e in range(start[b], start[b + 1]):
                i, j = parts.run[row[e]], parts.run[n + col[e]]
                coupled[min(i, j), max(i, j) - parts.groups] = True


@njit(cache=True, nogil=True)
def add_pools(turn, turns, matrix, theta, parts):
    """H += Σ_B theta_B c_B c_Bᵀ.

    Each of several threads fills the lines of H whose number leaves the rest ``turn``.
    """
    indptr, indices, data, _ = matrix
    groups, run, place, line, squares, C = parts
    # Of one pool, the eliminated unknowns first: a pool lies in one block, whose unknowns of a side
    # are all in one square. Loops over places are without a look at anything else.
    where, lines = np.empty((2, place.size), np.int64)
    count = np.empty(place.size)
    for t in range(theta.size):
        size = indptr[t + 1] - indptr[t]
        out, kept = 0, size
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k]
            if run[i] < groups:
                at = out
                out += 1
            else:
                kept -= 1
                at = kept
            where[at], lines[at], count[at] = place[i], line[i], data[k]
        for k in range(size):
            i = where[k]
            if i % turns != turn:
                continue
            x, corner = theta[t] * count[k], lines[k]
            first, last = (0, out) if k < out else (out, size)
            for r in range(first, last):
                squares[corner + where[r]] += x * count[r]
            if k < out:
                coupling = C[i]
                for r in range(out, size):
                    coupling[where[r]] += x * count[r]
