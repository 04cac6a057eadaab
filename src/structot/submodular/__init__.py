"""Submodular functions over edges and their base polytopes: extension, greedy vertices,
minimisation, projections, prox, min-norm point.

Each function takes F in one of two forms: a structure bound to a cost, ``Groups(...).bind(M)``,
or any Python function of a Boolean mask.
"""

from __future__ import annotations

import numpy as np

from structot._typing import Array
from structot.submodular.base import (
    Layer,
    Minimizer,
    Oracle,
    SetFunctionLike,
    Submodular,
    as_function,
)
from structot.submodular.bound import BoundCost
from structot.submodular.checking import Violation, check_submodular
from structot.submodular.decomposition import divide_and_conquer
from structot.submodular.min_norm_point import Corral
from structot.submodular.min_norm_point import min_norm_point as _wolfe

__all__ = [
    "BoundCost",
    "Layer",
    "Minimizer",
    "Oracle",
    "Submodular",
    "Violation",
    "as_function",
    "check_submodular",
    "contains",
    "divide_and_conquer",
    "excess",
    "extension",
    "greedy",
    "min_norm_point",
    "minimize",
    "project",
    "prox",
]


def extension(F: SetFunctionLike, P: Array) -> float:
    """f(P) = max_{K in B(F)} <K, P>, the Lovász extension.

    Examples
    --------
    >>> extension(lambda S: min(S.sum(), 1), np.array([[0.2, 0.5]]))
    0.5
    """
    P = np.asarray(P, float)
    return as_function(F, P).extension(P)


def greedy(F: SetFunctionLike, P: Array) -> Array:
    """argmax_{K in B(F)} <K, P> by Edmonds' greedy algorithm: a vertex of the base polytope.

    Examples
    --------
    >>> greedy(lambda S: min(S.sum(), 1), np.array([[0.2, 0.5]]))
    array([[0., 1.]])
    """
    P = np.asarray(P, float)
    return as_function(F, P).greedy(P)


def min_norm_point(
    F: SetFunctionLike,
    Z: Array | None = None,
    *,
    weights: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 10_000,
    corral: Corral | None = None,
) -> Array:
    """argmin_{K in B(F)} Σ c (K - Z)² by Fujishige and Wolfe's active set method.

    Z is 0 and the weights c are 1 by default; ``tol`` is Wolfe's relative criterion, ``corral``
    memory between projections onto the same polytope. Meant for up to a few hundred edges.

    Examples
    --------
    >>> min_norm_point(lambda S: min(S.sum(), 1), np.zeros((1, 2)))
    array([[0.5, 0.5]])
    """
    F = as_function(F, Z)
    return _wolfe(F, Z, weights=weights, tol=tol, max_iter=max_iter, corral=corral)


def minimize(F: SetFunctionLike, shift: Array) -> Minimizer:
    """argmin_S F(S) + shift(S): submodular minimisation.

    Examples
    --------
    >>> minimize(lambda S: min(S.sum(), 1), np.array([[-0.8, -0.5, 0.1]]))
    Minimizer(mask=array([[ True,  True, False]]), value=-0.30000000000000004)
    """
    shift = np.asarray(shift, float)
    return as_function(F, shift).minimize(shift)


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
