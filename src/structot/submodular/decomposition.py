"""Divide and conquer: projection onto B(F) by submodular minimisation, piece by piece.

Notation. B(F) the base polytope, Z the point to project, c > 0 the weights of the metric Σ c K².
A piece is a set of edges V with a set of edges A0 settled before it; F is read on it as the minor
F(S | A0) = F(S ∪ A0) - F(A0) for S in V.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structot._deadline import check_time
from structot._typing import Array
from structot.submodular.base import Minimizer, Submodular, as_function
from structot.submodular.min_norm_point import min_norm_point


def divide_and_conquer(
    function: Submodular | Callable[[Array], float],
    Z: Array | None = None,
    *,
    weights: Array | None = None,
    minimizer: Callable[[Minor, Array], Minimizer] | None = None,
    tol: float = 1e-10,
) -> Array:
    """argmin_{K in B(F)} Σ c (K - Z)² by at most as many minimisations as there are edges.

    Let t be the nearest point to Z with the right sum alone, t(V) = F(V). A set A that minimises
    F - t tells which: if the minimum is 0, t lies in B(F) and is the answer; otherwise K(A) = F(A)
    at the answer, so that A and the rest V \\ A, given A, are two problems of their own.

    Parameters
    ----------
    function
        A submodular function over edges, or any Python function of a mask of the shape of Z.
    Z
        The point to project; 0 by default.
    weights
        The weights c of the metric; 1 by default.
    minimizer
        Called with a minor G of F, on the edges ``G.edges``, and an array ``shift``; returns a set
        of these edges with the smallest G(S) + shift(S). By default the function's own way to
        minimise, if it has one, and else a level set of the min-norm point; then the min-norm
        point itself is the faster way to project, and this one only the more exact.
    tol
        A minimum above -tol · Σ |t| counts as 0.

    Returns
    -------
    Array
        The projection, shape (n, m), +inf on forbidden pairs.

    Examples
    --------
    >>> from structot.submodular import Oracle
    >>> F = Oracle(lambda S: min(S.sum(), 1), (1, 2))
    >>> divide_and_conquer(F, np.array([[0.2, 0.4]])).round(12)
    array([[0.4, 0.6]])
    """
    function = as_function(function, Z)
    Z = np.zeros(function.shape) if Z is None else np.asarray(Z, float)
    c = np.ones(function.shape) if weights is None else np.asarray(weights, float)
    K = function._blank_cost()
    # No edge changes F by more than its reach, so that twice as much forces edges in or out.
    own = minimizer is None and type(function).minimize is not Submodular.minimize
    force = 3.0 * _reach(function) or 1.0 if own else None
    pieces = [(np.zeros(function.shape, bool), function._edges())]
    while pieces:
        check_time()
        settled, V = pieces.pop()
        if not V.any():
            continue
        minor = Minor(function, settled, V, force)
        shift = (minor.value(V) - float(Z[V].sum())) / float(np.sum(1.0 / c[V]))
        t = np.where(V, Z + shift / c, 0.0)
        slack = tol * float(np.abs(t).sum())
        found = (minimizer or _minimum)(minor, -t)
        A = found.mask & V
        if found.value >= -slack or not A.any() or (A == V).all():
            K[V] = t[V]
        else:
            pieces += [(settled, A), (settled | A, V & ~A)]
    return K


def _minimum(minor: Minor, shift: Array) -> Minimizer:
    return minor.minimize(shift)


class Minor(Submodular):
    """F(S ∪ settled) - F(settled) for sets S of ``edges``."""

    def __init__(
        self, function: Submodular, settled: Array, edges: Array, force: float | None = None
    ) -> None:
        self.shape, self.allowed = function.shape, function.allowed
        self.edges = self.support = edges
        self._function, self.settled = function, settled
        self._start = function.value(settled)
        self._force = force

    def value(self, mask: Array) -> float:
        return self._function.value(self.settled | (mask & self.edges)) - self._start

    def greedy(self, P: Array) -> Array:
        if type(self._function).greedy is Submodular.greedy:
            return super().greedy(P)  # only the piece's own edges are valued
        # The settled edges first, then the piece in the order of P, then all others.
        rank = np.empty(int(self.edges.sum()))
        rank[np.argsort(-P[self.edges], kind="stable")] = np.linspace(1.0, 0.0, rank.size)
        ordered = np.where(self.settled, 2.0, -1.0)
        ordered[self.edges] = rank
        K = self._blank_cost()
        K[self.edges] = self._function.greedy(ordered)[self.edges]
        return K

    def minimize(self, shift: Array | None = None) -> Minimizer:
        shift = np.zeros(self.shape) if shift is None else shift
        F = self._function
        if self._force is not None:
            price = np.where(self.settled, -self._force, self._force)
            price = np.where(self.edges, shift, np.where(F._allowed(), price, 0.0))
            mask = F.minimize(price).mask & self.edges
            return Minimizer(mask, self.value(mask) + float(shift[mask].sum()))
        # The minimiser is a level set of the min-norm point; one pass along it values them all.
        K = min_norm_point(self, -shift, tol=1e-14)
        level = np.where(self.edges, K + shift, 0.0)
        order = np.flatnonzero(self.edges)[np.argsort(level[self.edges], kind="stable")]
        gains = self.greedy(-level).ravel()[order] + shift.ravel()[order]
        values = np.append(0.0, np.cumsum(gains))
        best = int(np.argmin(values))
        mask = np.zeros(self.shape, bool)
        mask.ravel()[order[:best]] = True
        return Minimizer(mask, float(values[best]))


def _reach(F: Submodular) -> float:
    """The largest |F(S + e) - F(S)|, which is met at the smallest or the largest S."""
    whole = F._edges()
    everything = F.value(whole)
    largest = 0.0
    for e in np.flatnonzero(whole):
        one = np.zeros(F.shape, bool)
        one.ravel()[e] = True
        last = everything - F.value(whole & ~one)
        largest = max(largest, abs(F.value(one)), abs(last))
    return largest
