"""Projection onto the affine hull of the transport polytope in a weighted metric.

Notation: ``w`` weights of the metric, ``B = 1/w`` (0 on forbidden pairs), ``p, q`` multipliers of
the row and column sums, ``S`` the Schur complement: the Laplacian of a graph on the smaller side.
Marginals that may give way, ``x = a - y_a p`` and ``b - y_b q``, add to its diagonal.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from structot._checks import as_array

from . import kernels
from ._flow import InfeasibleError
from .kernels import BoolArray, FloatArray

# Share of the total mass by which the parts of a disconnected problem may be out of balance.
_BALANCE = 1e-9
# Added to the diagonal, relatively, when rounding makes the Laplacian lose definiteness.
_RIDGE = 1e-13


class MarginalProjection:
    """argmin over X, X1 = a, X'1 = b, of sum w_ij (X_ij - V_ij)^2, factorised once for many V.

    The answer is X = V + (p_i + q_j) / w_ij, where (p, q) solves a linear system in n + m unknowns.
    The larger side is eliminated, one unknown per connected part of the allowed pairs is pinned
    (there (1, -1) changes nothing), and the rest is factorised by Cholesky. X may be negative.

    Parameters
    ----------
    weights
        w > 0, n x m. Values on forbidden pairs are not read.
    allowed
        Boolean n x m; X = 0 where it is False. All pairs by default.
    yielding
        (y_a, y_b) >= 0, with weights 1/y: the marginals x move as well, and the sum to minimise has
        Σ (x - a)² / y_a and Σ (x' - b)² / y_b in addition. 0, the default, holds them.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> MarginalProjection(np.ones((2, 2))).project(np.array([[1.0, 0.0], [0.0, 0.0]]), half, half)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    def __init__(
        self,
        weights: FloatArray,
        allowed: BoolArray | None = None,
        yielding: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        weights = as_array("weights", weights, 2)
        open_pairs = np.ones(weights.shape, dtype=bool) if allowed is None else np.asarray(allowed)
        if open_pairs.shape != weights.shape:
            raise ValueError(f"allowed has shape {open_pairs.shape}, weights {weights.shape}.")
        if not open_pairs.any():
            raise InfeasibleError("allowed must leave at least one pair, but all are forbidden.")
        # A common factor of the weights does not move X: the largest 1/w becomes 1.
        self._unit = float(np.min(weights, initial=np.inf, where=open_pairs))
        inverse = np.zeros(weights.shape)
        np.divide(self._unit, weights, out=inverse, where=open_pairs)
        self._inverse = inverse  # (n, m)
        self._closed = None if open_pairs.all() else ~open_pairs
        self._transposed = weights.shape[0] > weights.shape[1]
        self._parts = _connected_parts(inverse, self._closed is None)
        given = (np.zeros(size) for size in weights.shape) if yielding is None else yielding
        self._yielding = tuple(self._unit * y for y in given)
        small, large = self._yielding[:: -1 if self._transposed else 1]
        B = inverse.T if self._transposed else inverse  # (small, large)
        # A point without any pair gets the multiplier 0 = c / inf.
        self._large_sums = np.where(B.any(axis=0), B.sum(axis=0) + large, np.inf)
        scaled = B / self._large_sums
        S = -(scaled @ B.T)
        # The diagonal from the other entries: exact zero row sums, no cancellation.
        np.fill_diagonal(S, 0.0)
        np.fill_diagonal(S, small + B @ (large / self._large_sums) - S.sum(axis=1))
        small_parts = self._parts[1] if self._transposed else self._parts[0]
        self._loose = _loose_parts(self._parts, self._yielding)
        self._free = _unpinned(S.diagonal(), small_parts, self._loose)
        self._factor = _factorize(S[np.ix_(self._free, self._free)])

    def multipliers(
        self, V: FloatArray, a: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(p, q) with V + (p_i + q_j) / w_ij in {X1 = a, X'1 = b}."""
        _, p, q = self._corrections(V, a, b)
        return p * self._unit, q * self._unit

    def project(self, V: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
        """X = V + (p_i + q_j) / w_ij, a new array; InfeasibleError if a part is out of balance."""
        return self._corrections(V, a, b)[0]

    def _corrections(
        self, V: FloatArray, a: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """X and its multipliers: one solve, and one more for the rounding errors of the first."""
        self._check_balance(a, b)
        X = np.array(V, dtype=np.float64, order="C")
        if self._closed is not None:
            X[self._closed] = 0.0
        p, q = np.zeros(a.shape[0]), np.zeros(b.shape[0])
        rows, columns = X.sum(axis=1), X.sum(axis=0)
        y_a, y_b = self._yielding
        for _ in range(2):
            p_step, q_step = self._solve(a - rows - y_a * p, b - columns - y_b * q)
            rows, columns = kernels.shift_sums(X, self._inverse, p_step, q_step)
            p += p_step
            q += q_step
        if not np.isfinite(rows.sum()):
            raise ValueError(
                "V must be finite to be projected, but the result has NaN or infinite entries; "
                "project the last finite iterate instead."
            )
        return X, p, q

    def _solve(self, r: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """diag(B1 + y_a) p + B q = r, B' p + diag(B'1 + y_b) q = c."""
        B, small, large = self._inverse, r, c
        if self._transposed:
            B, small, large = self._inverse.T, c, r
        x = np.zeros(small.shape[0])
        right = small - B @ (large / self._large_sums)
        if self._free.size:
            x[self._free] = cho_solve(self._factor, right[self._free], check_finite=False)
        y = (large - B.T @ x) / self._large_sums
        return (y, x) if self._transposed else (x, y)

    def _check_balance(self, a: FloatArray, b: FloatArray) -> None:
        rows, columns, count = self._parts
        if count == 1 or self._loose.all():
            return
        supply = np.bincount(rows, weights=a, minlength=count)
        demand = np.bincount(columns, weights=b, minlength=count)
        worst = float(np.abs(supply - demand)[~self._loose].max(initial=0.0))
        if worst > _BALANCE * float(a.sum()):
            raise InfeasibleError(
                f"allowed separates the points into {count} parts, and a and b differ by "
                f"{worst:.3g} in one of them; allow a pair between the parts or change the weights."
            )


def _connected_parts(inverse: FloatArray, full: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """The part of each row and of each column in the graph of allowed pairs, and their number."""
    n, m = inverse.shape
    if full:
        return np.zeros(n, dtype=np.intp), np.zeros(m, dtype=np.intp), 1
    sources, targets = np.nonzero(inverse)
    graph = csr_array((np.ones(sources.size), (sources, targets + n)), shape=(n + m, n + m))
    count, labels = connected_components(graph, directed=False)
    return labels[:n], labels[n:], int(count)


def _loose_parts(
    parts: tuple[np.ndarray, np.ndarray, int], yielding: tuple[FloatArray, ...]
) -> np.ndarray:
    """Which of the parts hold a marginal that gives way, so that nothing need be pinned there."""
    found = [np.bincount(at, y > 0, parts[2]) for at, y in zip(parts[:2], yielding, strict=True)]
    return found[0] + found[1] > 0


def _unpinned(diagonal: FloatArray, parts: np.ndarray, loose: np.ndarray) -> np.ndarray:
    """All indices but one per part that is not loose, the one with the largest diagonal entry."""
    order = np.lexsort((-diagonal, parts))
    first = np.ones(order.size, dtype=bool)
    first[1:] = parts[order][1:] != parts[order][:-1]
    return np.sort(order[~first | (loose[parts[order]] & (diagonal[order] > 0))])


def _factorize(S: FloatArray) -> tuple[FloatArray, bool]:
    """Cholesky factor of a positive definite matrix, with a tiny ridge if rounding spoiled it."""
    try:
        factor = cho_factor(S, lower=True, check_finite=False)
    except LinAlgError:
        ridge = np.diag(_RIDGE * (S.diagonal() + S.diagonal().max()))
        factor = cho_factor(S + ridge, lower=True, check_finite=False)
    return factor
