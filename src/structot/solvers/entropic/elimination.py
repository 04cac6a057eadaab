"""Newton's system of some of the multipliers, from a Hessian that lies in groups.

Notation as in `blocks/hessian.py`: H = [[D, C], [Cᵀ, E]], D the side that is eliminated, block
diagonal by groups; here only the lines and columns of H that belong to free multipliers. Where
domains end most of the others stand, and what is left is small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs

from structot._typing import Array
from structot.blocks.hessian import GroupedHessian


def solve_free(G: GroupedHessian, free: Array, x: Array) -> Array:
    """The solution of H on the free multipliers, 0 elsewhere; H is left as it is.

    x (n+m, k) has several right sides as columns. Raises LinAlgError where rounding made H
    indefinite.
    """
    parts = G.parts
    eliminated = parts.run < parts.groups
    out, kept = (_placed(G, free & side) for side in (eliminated, ~eliminated))
    # As Cᵀ, since BLAS wants columns that lie one after the other.
    CT = parts.C[np.ix_(parts.place[out], parts.place[kept])].T
    y, z = x[out], x[kept]
    factors = _eliminate(G, out, CT, y)
    if kept.size:
        S = np.zeros((kept.size, kept.size), order="F")
        for i, j in _stretches(parts.run[kept]):
            S[i:j, i:j] = _square(G, kept[i:j])
        if out.size:
            S = dsyrk(-1.0, CT, beta=1.0, c=S, lower=1, overwrite_c=1)
        z = dpotrs(_cholesky(S), z - CT @ y, lower=1)[0]
        y -= CT.T @ z
    for i, j, L in factors:
        y[i:j] = y[i:j] / L if L.shape[1] == 1 else dtrsm(1.0, L, y[i:j], lower=1, trans_a=1)
    answer = np.zeros_like(x)
    answer[out], answer[kept] = y, z
    return answer


def _eliminate(G: GroupedHessian, out: Array, CT: Array, y: Array) -> list[tuple[int, int, Array]]:
    """C ← L⁻¹C and y ← L⁻¹y with D = LLᵀ; returns L by groups, as one column if it is diagonal."""
    parts = G.parts
    if parts.groups == G.groups[-1]:
        D = parts.squares[parts.line[out] + parts.place[out]]
        if not (D > 0.0).all():
            raise np.linalg.LinAlgError("a diagonal entry is not positive")
        root = np.sqrt(D)[:, None]
        CT /= root.T
        y /= root
        return [(0, out.size, root)]
    factors = []
    for i, j in _stretches(parts.run[out]):
        L = _cholesky(_square(G, out[i:j]))
        CT[:, i:j] = dtrsm(1.0, L, CT[:, i:j], side=1, lower=1, trans_a=1, overwrite_b=1)
        y[i:j] = dtrsm(1.0, L, y[i:j], lower=1)
        factors.append((i, j, L))
    return factors


def _placed(G: GroupedHessian, some: Array) -> Array:
    """Some unknowns of one side, in the order of their places."""
    found = np.flatnonzero(some)
    return found[np.argsort(G.parts.place[found])]


def _stretches(run: Array) -> Iterator[tuple[int, int]]:
    """Where each stretch of equal numbers begins and ends."""
    ends = np.flatnonzero(np.diff(run)) + 1
    return itertools.pairwise([0, *ends.tolist(), run.size]) if run.size else iter(())


def _square(G: GroupedHessian, some: Array) -> Array:
    """The part of H between unknowns of one square."""
    lines = G.parts.squares[G.parts.line[some][:, None] + G.parts.place[some]]
    return np.asfortranarray(lines)


def _cholesky(A: Array) -> Array:
    """The lower factor of A in its memory; the other triangle is neither read nor written.

    Unlike the function of this name in `blocks/hessian.py` it takes doubles in columns (Fortran's
    order) only, and so needs no transposed view and no choice of the triangle.
    """
    factor, failed = dpotrf(A, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return factor
