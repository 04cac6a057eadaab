"""The Fujishige–Wolfe min-norm point, for any submodular function with a greedy vertex.

Notation. B(F) the base polytope, Z the point to project, c > 0 the weights of the metric Σ c K².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import qr_delete, qr_insert, solve_triangular

from structot._deadline import check_time
from structot._typing import Array

# What is rounding in a length, a share this small is none, and a vertex that adds less than this
# part of its length to the affine hull lies in it.
_ROUNDING, _NOTHING, _DEPENDENT = 1e-15, 1e-14, 1e-13
# Cycles without a shorter x after which the best point so far is the answer.
_PATIENCE = 10


@dataclass
class Corral:
    """The vertices of B(F) that span the last answer: where a similar projection begins.

    The active set depends little on the point projected, so that a sequence of nearby points costs
    a few major cycles each.
    """

    vertices: Array | None = None  # (k, E)
    share: Array | None = None  # (k,)


class HasVertices(Protocol):
    """A set function by the vertices of its base polytope."""

    shape: tuple[int, int]

    def greedy(self, P: Array) -> Array: ...
    def _edges(self) -> Array: ...
    def _blank_cost(self) -> Array: ...


def min_norm_point(
    function: HasVertices,
    Z: Array | None = None,
    *,
    weights: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 10_000,
    corral: Corral | None = None,
) -> Array:
    """argmin_{K in B(F)} Σ c (K - Z)²: Wolfe's active set method with Edmonds' vertices.

    The size of the answer's active set grows with the number of edges, and each step solves a
    dense system of that size: meant for up to a few hundred edges.

    Parameters
    ----------
    function
        A submodular function over edges.
    Z
        The point to project; 0 by default.
    weights
        The weights c of the metric; 1 by default.
    tol
        Stops when Wolfe's criterion ⟨x, x - q⟩ <= tol · |x|² holds for the best vertex q: then
        the squared distance is optimal to that relative accuracy.
    max_iter
        Limit of major cycles.
    corral
        Memory between projections onto the same base polytope; it is read and replaced.

    Returns
    -------
    Array
        The projection, shape (n, m), +inf on forbidden pairs.

    Examples
    --------
    >>> from structot.submodular import Oracle, min_norm_point
    >>> F = Oracle(lambda S: min(S.sum(), 1), (1, 2))
    >>> min_norm_point(F)
    array([[0.5, 0.5]])
    """
    edges = function._edges()
    root = np.ones(function.shape) if weights is None else np.sqrt(weights)
    root = root[edges]
    target = np.zeros(root.size) if Z is None else np.asarray(Z, float)[edges]

    def vertex(direction: Array) -> Array:
        # The vertex farthest along -direction, moved so that Z is the origin, in metric units.
        P = np.zeros(function.shape)
        P[edges] = -root * direction
        return root * (function.greedy(P)[edges] - target)

    if corral is None or corral.vertices is None or corral.share is None:
        hull = _Hull(vertex(np.zeros(root.size))[None, :], np.ones(1))
    else:
        hull = _Hull(root * (corral.vertices - target), corral.share)
        hull.descend()
    least = best = np.inf
    stalled = 0
    for _ in range(max_iter):
        check_time()
        x = hull.share @ hull.points
        q = vertex(x)
        norm = float(x @ x)
        gap = norm - float(x @ q)
        # Near the end |x|² falls by about gap², less than its rounding error: progress shows in
        # the gap alone, which goes up and down, so that the best point is kept.
        falls = norm < (1 - _ROUNDING) * least
        stalled = 0 if falls else stalled + 1
        if falls or gap < best:
            least, best, points, share, answer = min(norm, least), gap, hull.points, hull.share, x
        if gap <= tol * norm or norm <= (_ROUNDING * hull.size) ** 2:
            break
        if stalled > _PATIENCE or not hull.add(q):
            break
        hull.descend()
    else:
        points, share, answer = hull.points, hull.share, hull.share @ hull.points
    if corral is not None:
        corral.vertices, corral.share = points / root + target, share
    K = function._blank_cost()
    K[edges] = answer / root + target
    return K


class _Hull:
    """Affinely independent vertices p with shares, and the factors of what finds their nearest.

    B has the columns [s; p] with s a typical length of p. The weights of the point of least norm in
    the affine hull are proportional to the least-squares solution of B v = e_1 (Wolfe), R v = Q_1
    with B = QR: updates of Q and R cost as little as those of BᵀB, without squaring its condition.
    """

    def __init__(self, points: Array, share: Array) -> None:
        most = points.shape[1] + 1  # no more are independent, whatever rounding says
        if len(points) > most:
            kept = np.sort(np.argsort(-share, kind="stable")[:most])
            points, share = points[kept], share[kept] / share[kept].sum()
        self.points, self.share = points, share
        self.size = float(np.sqrt(np.max(np.sum(points**2, axis=1)))) or 1.0
        self._Q, self._R = np.linalg.qr(self._columns(points))
        pivot = np.abs(np.diag(self._R))
        self._drop(pivot <= _DEPENDENT * pivot.max())

    def _columns(self, points: Array) -> Array:
        return np.vstack([np.full(len(points), self.size), points.T])  # (E + 1, k)

    def add(self, q: Array) -> bool:
        """Take in a vertex, with share 0; False if it lies in the affine hull already."""
        column = self._columns(q[None, :])[:, 0]
        last = len(self.points)
        if last == column.size:  # as many as can be independent; rounding alone sees another one
            return False
        try:
            self._Q, self._R = qr_insert(
                self._Q, self._R, column, last, "col", rcond=_DEPENDENT, check_finite=False
            )
        except np.linalg.LinAlgError:
            return False
        self.points, self.share = np.vstack([self.points, q]), np.append(self.share, 0.0)
        return True

    def descend(self) -> None:
        """Move to the nearest point of the affine hull, dropping corners until it lies inside."""
        while True:
            check_time()
            v = solve_triangular(self._R, self._Q[0], check_finite=False)
            affine = v / v.sum()
            if (affine > _NOTHING).all():
                self.share = affine
                return
            falling = affine <= _NOTHING
            drop = self.share - affine
            shrinks = falling & (drop > 0)
            ratio = np.where(shrinks, self.share / np.where(drop > 0, drop, 1.0), np.inf)
            step = min(1.0, float(ratio.min()))
            self.share = (1 - step) * self.share + step * affine
            gone = self.share <= _NOTHING
            gone[np.argmin(np.where(falling, self.share, np.inf))] = True
            self._drop(gone)

    def _drop(self, gone: Array) -> None:
        if not gone.any():
            return
        for k in np.flatnonzero(gone)[::-1]:
            self._Q, self._R = qr_delete(self._Q, self._R, k, 1, "col", check_finite=False)
            # A square Q is taken for that of a full factorisation, and keeps its columns.
            kept = self._R.shape[1]
            self._Q, self._R = self._Q[:, :kept], self._R[:kept]
        self.points, self.share = self.points[~gone], self.share[~gone]
        self.share = self.share / self.share.sum()
