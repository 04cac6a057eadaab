"""Rank and volume of edge features, bound to the edges of one problem.

Notation. φ_e = [x_i; y_j] the feature of edge e = (i, j), Φ_S the rows φ_e of the edges in S.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from structot._checks import as_mask, as_matrix
from structot._typing import Array
from structot.submodular import _rank_kernels
from structot.submodular.base import Submodular


class FeatureFunction(Submodular):
    """F(S) as a sum of gains along any order of S: what rank and volume share.

    Parameters
    ----------
    X, Y
        Features of the rows (n, d₁) and columns (m, d₂); either may have no columns.
    allowed
        Pairs that are edges, (n, m); None for all.
    """

    monotone = True

    def __init__(self, X: Array, Y: Array, allowed: Array | None) -> None:
        self.shape = (len(X), len(Y))
        self.allowed = allowed
        self._X, self._Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        self._row, self._col = np.nonzero(self._allowed())

    @abstractmethod
    def _gains(self, order: Array) -> Array:
        """F(first k + 1 edges) - F(first k edges) for every k, edges numbered as allowed pairs."""

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        return float(self._gains(np.flatnonzero(mask[self._row, self._col])).sum())

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        order = np.argsort(-P[self._row, self._col], kind="stable")
        K = self._blank_cost()
        K[self._row[order], self._col[order]] = self._gains(order)
        return K


class FeatureRank(FeatureFunction):
    """F(S) = rank Φ_S, decided with the relative tolerance ``tol``."""

    def __init__(self, X: Array, Y: Array, allowed: Array | None, tol: float) -> None:
        # Scaling a feature leaves the rank as it is, and makes one tolerance fit all of them.
        super().__init__(_scaled(X), _scaled(Y), allowed)
        self._tol = tol
        self._full = X.shape[1] + Y.shape[1]
        self._full = int(self._gains(np.arange(self._row.size)).sum())

    def _gains(self, order: Array) -> Array:
        return _rank_kernels.rank_gains(
            self._X, self._Y, self._row, self._col, order, self._full, self._tol
        )


class FeatureVolume(FeatureFunction):
    """F(S) = log det(I + Φ_S Φ_Sᵀ / σ²)."""

    def __init__(self, X: Array, Y: Array, allowed: Array | None, sigma: float) -> None:
        super().__init__(_compressed(X) / sigma, _compressed(Y) / sigma, allowed)

    def _gains(self, order: Array) -> Array:
        return _rank_kernels.volume_gains(self._X, self._Y, self._row, self._col, order)


def _scaled(X: Array) -> Array:
    """Every feature divided by its largest absolute value."""
    size = np.abs(X).max(axis=0, initial=0.0)
    return X / np.where(size > 0, size, 1.0)


def _compressed(X: Array) -> Array:
    """At most as many features as points, with the same inner products, all that F depends on."""
    if X.shape[1] <= X.shape[0]:
        return X
    _, triangle = np.linalg.qr(X.T)
    return triangle.T
