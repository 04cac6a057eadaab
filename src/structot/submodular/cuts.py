"""Cut functions whose prox has a closed form or takes one pass: lines and matchings.

Notation. F(S) = Σ c_ee' over pairs of neighbouring edges e, e' of which exactly one is in S,
f(P) = Σ c_ee' |P_e - P_e'|. B(F) are the sums of s_ee' (1_e - 1_e') with |s_ee'| <= c_ee': the
entries of K may be negative, their sum is F(all) = 0. The metric is the plain one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from structot._checks import as_mask, as_matrix, one_of, positive
from structot._typing import Array
from structot.submodular import _cut_kernels
from structot.submodular.base import METRICS, Kind, Submodular


class CutLayer(Submodular):
    """What cuts share: everything follows from the list of neighbours and one projection."""

    kind: ClassVar[Kind] = "simple"

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        return self.extension(mask.astype(float))

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        return self._variation(P)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        if metric == "entropy":
            return super().project(Z, metric)
        edges = self._edges()
        Z = np.where(edges, as_matrix("Z", Z, self.shape), 0.0)
        if not np.isfinite(Z).all():
            raise ValueError("Z must be finite on every allowed pair.")
        return self._blank_cost() + self._nearest(Z)

    def prox(self, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
        V, rho = as_matrix("V", V, self.shape), positive("rho", rho)
        K = self._nearest(np.where(self._edges(), rho * V, 0.0))
        X = V - K / rho
        X = X if self.allowed is None else np.where(self.allowed, X, 0.0)
        return np.maximum(X, 0.0) if nonnegative else X

    def magnitude(self, P: Array) -> float:
        return self._size(as_matrix("P", P, self.shape))

    @property
    @abstractmethod
    def neighbors(self) -> tuple[Array, Array, Array]:
        """The pairs of neighbouring edges e, e' as flat indices, and their weights c."""

    @abstractmethod
    def _size(self, P: Array) -> float:
        """Σ c (|P_e| + |P_e'|): what the variation would be if nothing cancelled."""

    @abstractmethod
    def _variation(self, P: Array) -> float:
        """Σ c |P_e - P_e'|; what P holds outside the edges does not matter."""

    @abstractmethod
    def _nearest(self, Z: Array) -> Array:
        """The projection of Z, given as 0 outside the edges, and 0 there."""


class Lines(CutLayer):
    """Total variation along every row (``axis=1``) or column (``axis=0``) of the plan.

    A forbidden pair breaks its line in two.
    """

    def __init__(
        self, shape: tuple[int, int], axis: int, weight: float, allowed: Array | None
    ) -> None:
        self.shape, self.allowed = shape, allowed
        self._axis, self._scale = axis, weight
        inside = self._turn(self._allowed())
        self._weight = np.where(inside[:, 1:] & inside[:, :-1], weight, 0.0)  # (lines, n - 1)

    def _turn(self, P: Array) -> Array:
        """Lines along the rows of the array; and back."""
        return P if self._axis == 1 else P.T

    @property
    def neighbors(self) -> tuple[Array, Array, Array]:
        number = self._turn(np.arange(self._allowed().size).reshape(self.shape))
        some = self._weight > 0
        return number[:, :-1][some], number[:, 1:][some], self._weight[some]

    def _variation(self, P: Array) -> float:
        return float(np.sum(self._weight * np.abs(np.diff(self._turn(P), axis=1))))

    def _size(self, P: Array) -> float:
        P = np.abs(self._turn(P))
        return float(np.sum(self._weight * (P[:, 1:] + P[:, :-1])))

    def greedy(self, P: Array) -> Array:
        P = self._turn(as_matrix("P", P, self.shape))
        # Of two neighbours the larger comes first and pays; of equal ones the earlier.
        rising = np.where(P[:, 1:] > P[:, :-1], self._weight, -self._weight)
        K = np.zeros(P.shape)
        K[:, 1:] += rising
        K[:, :-1] -= rising
        return self._blank_cost() + self._turn(K)

    def _nearest(self, Z: Array) -> Array:
        lines = np.ascontiguousarray(self._turn(Z))
        K = np.empty(lines.shape)
        _cut_kernels.project_lines(lines, self._weight, K)
        return self._turn(K)

    def scaled(self, factor: float) -> Lines:
        return Lines(self.shape, self._axis, factor * self._scale, self.allowed)


class Matching(CutLayer):
    """Cuts between disjoint pairs of edges: F(S) = Σ_t c_t · 1[exactly one of e_t, e'_t in S].

    Parameters
    ----------
    first, second
        The edges e and e' as flat indices; none occurs twice.
    weight
        c > 0, one per pair.
    allowed
        Pairs (i, j) that are edges; what has a forbidden partner has none.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        first: Array,
        second: Array,
        weight: Array,
        allowed: Array | None,
    ) -> None:
        self.shape, self.allowed = shape, allowed
        if allowed is not None:
            keep = allowed.ravel()[first] & allowed.ravel()[second]
            first, second, weight = first[keep], second[keep], weight[keep]
        self._first, self._second, self._weight = first, second, weight
        self.support = np.zeros(shape, bool)
        self.support.ravel()[first] = self.support.ravel()[second] = True

    @property
    def neighbors(self) -> tuple[Array, Array, Array]:
        return self._first, self._second, self._weight

    def _difference(self, P: Array) -> Array:
        return P.ravel()[self._first] - P.ravel()[self._second]

    def _spread(self, s: Array) -> Array:
        """The array with s on the first and -s on the second edge of every pair."""
        K = np.zeros(self.shape)
        K.ravel()[self._first] = s
        K.ravel()[self._second] = -s
        return K

    def _variation(self, P: Array) -> float:
        return float(self._weight @ np.abs(self._difference(P)))

    def _size(self, P: Array) -> float:
        P = np.abs(P.ravel())
        return float(self._weight @ (P[self._first] + P[self._second]))

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        s = np.where(self._difference(P) >= 0, self._weight, -self._weight)
        return self._blank_cost() + self._spread(s)

    def _nearest(self, Z: Array) -> Array:
        # min (s - z)² + (s + z')² over |s| <= c.
        return self._spread(np.clip(0.5 * self._difference(Z), -self._weight, self._weight))

    def scaled(self, factor: float) -> Matching:
        weight = factor * self._weight
        return Matching(self.shape, self._first, self._second, weight, self.allowed)
