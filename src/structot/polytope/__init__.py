"""Base polytopes: projections, prox, and how far a point is outside.

Every function takes F bound to a cost (``Groups(...).bind(M)``) or any Python function of a mask.
"""

from __future__ import annotations

import numpy as np

from structot.submodular import SetFunctionLike, as_function

__all__ = ["contains", "excess", "project", "prox"]

Array = np.ndarray


def project(F: SetFunctionLike, Z: Array, metric: str = "euclidean") -> Array:
    """argmin_{K in B(F)} of the distance of K to Z.

    ``metric``: ``"euclidean"``, Σ (K - Z)²; ``"cost"``, Σ (K - Z)²/d in the function's own metric
    d (the ground cost for `Groups`); ``"entropy"``, Σ K log(K/Z) - K + Z for Z > 0.

    Examples
    --------
    >>> project(lambda S: min(S.sum(), 1), np.array([[0.2, 0.4]]))
    array([[0.4, 0.6]])
    """
    Z = np.asarray(Z, float)
    return as_function(F, Z).project(Z, metric)


def prox(F: SetFunctionLike, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
    """argmin_X f(X) + rho/2 Σ d (X - V)² in the function's own metric d, with X >= 0 if asked.

    Examples
    --------
    >>> prox(lambda S: min(S.sum(), 1), np.array([[3.0, 1.0]]))
    array([[2., 1.]])
    """
    V = np.asarray(V, float)
    return as_function(F, V).prox(V, rho, nonnegative=nonnegative)


def excess(F: SetFunctionLike, K: Array) -> float:
    """How far K is outside B(F): max of K(A) - F(A) over all sets A, and |K(all) - F(all)|.

    Examples
    --------
    >>> excess(lambda S: min(S.sum(), 1), np.array([[0.5, 0.75]]))
    0.25
    """
    K = np.asarray(K, float)
    return as_function(F, K).excess(K)


def contains(F: SetFunctionLike, K: Array, tol: float = 1e-9) -> bool:
    """Whether K lies in B(F), up to ``tol`` times the sum of |K|.

    Examples
    --------
    >>> contains(lambda S: min(S.sum(), 1), np.array([[0.25, 0.75]]))
    True
    """
    K = np.asarray(K, float)
    scale = float(np.abs(K[np.isfinite(K)]).sum())
    return excess(F, K) <= tol * max(scale, np.finfo(float).tiny)
