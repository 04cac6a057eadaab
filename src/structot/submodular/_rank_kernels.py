"""Compiled greedy passes of rank and volume: one sweep over the edges, nothing is recomputed.

Notation. φ_e = [x_i; y_j] in R^d is the feature of edge e = (i, j); ``row`` and ``col`` its end
points; ``order`` the edges from first to last. ``gain[k]`` is what edge order[k] adds to F of the
edges before it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from structot._typing import Array


@njit(cache=True, nogil=True)
def _load(X: Array, Y: Array, i: int, j: int, phi: Array) -> float:
    """φ = [X_i; Y_j]; returns its norm."""
    cut = X.shape[1]
    total = 0.0
    for k in range(phi.size):
        phi[k] = X[i, k] if k < cut else Y[j, k - cut]
        total += phi[k] * phi[k]
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def rank_gains(
    X: Array, Y: Array, row: Array, col: Array, order: Array, full: int, tol: float
) -> Array:
    """1 where the feature is independent of those before, else 0; stops at rank ``full``.

    Gram-Schmidt with a second pass, without which cancellation spoils nearly dependent features.
    """
    d = X.shape[1] + Y.shape[1]
    gain = np.zeros(order.size)
    basis = np.empty((full, d))
    phi = np.empty(d)
    rank = 0
    for k in range(order.size):
        if rank == full:
            break
        norm = _load(X, Y, row[order[k]], col[order[k]], phi)
        for _ in range(2):
            for r in range(rank):
                dot = 0.0
                for t in range(d):
                    dot += basis[r, t] * phi[t]
                for t in range(d):
                    phi[t] -= dot * basis[r, t]
        square = 0.0
        for t in range(d):
            square += phi[t] * phi[t]
        rest = np.sqrt(square)
        if rest > tol * norm:
            for t in range(d):
                basis[rank, t] = phi[t] / rest
            rank += 1
            gain[k] = 1.0
    return gain


@njit(cache=True, nogil=True)
def volume_gains(X: Array, Y: Array, row: Array, col: Array, order: Array) -> Array:
    """log(1 + φᵀ A⁻¹ φ) with A = I + Σ φφᵀ over the edges before, A = L D Lᵀ updated in place.

    The rank-one update of the factors solves L w = φ on its way, so that the gain comes with it;
    every number added is positive, which keeps the factors accurate however ill A becomes.
    """
    d = X.shape[1] + Y.shape[1]
    gain = np.zeros(order.size)
    L = np.eye(d)  # column j of the factor is kept in row j, where it lies in one piece
    D = np.ones(d)
    w = np.empty(d)
    for k in range(order.size):
        _load(X, Y, row[order[k]], col[order[k]], w)
        grown = 0.0  # Σ w_j² / D_j so far
        for j in range(d):
            p = w[j]
            if p == 0.0:
                continue
            before = 1.0 + grown
            grown += p * p / D[j]
            after = 1.0 + grown
            step = p / (D[j] * after)
            D[j] *= after / before
            for t in range(j + 1, d):
                w[t] -= p * L[j, t]
                L[j, t] += step * w[t]
        gain[k] = np.log1p(grown)
    return gain
