"""The Fujishige–Wolfe min-norm point, for any submodular function with a greedy vertex.

Notation. B(F) the base polytope, Z the point to project, c > 0 the weights of the metric Σ c K².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from structot.submodular.base import Oracle, Submodular

Array = np.ndarray


@dataclass
class Corral:
    """The vertices of B(F) that span the last answer: where a similar projection begins.

    The active set depends little on the point projected, so that a sequence of nearby points costs
    a few major cycles each.
    """

    vertices: Array | None = None  # (k, E)
    share: Array | None = None  # (k,)


def min_norm_point(
    function: Submodular | Callable[[Array], float],
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
        A submodular function over edges, or any Python function of a mask of the shape of Z.
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
    if not isinstance(function, Submodular):
        if Z is None:
            raise ValueError(
                "Z must be given with a Python function, to tell the shape of its mask."
            )
        function = Oracle(function, np.asarray(Z).shape)
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
        points, share = vertex(np.zeros(root.size))[None, :], np.ones(1)
    else:
        points, share = _minor_cycles(root * (corral.vertices - target), corral.share)
    x = share @ points
    best = np.inf
    for _ in range(max_iter):
        q = vertex(x)
        norm = float(x @ x)
        scale = max(norm, float(np.max(np.sum(points**2, axis=1))) * 1e-16)
        repeated = bool((np.abs(points - q).max(axis=1) == 0).any())
        if norm - float(x @ q) <= tol * scale or repeated or norm >= best:
            break
        best = norm
        points, share = _minor_cycles(np.vstack([points, q]), np.append(share, 0.0))
        x = share @ points
    if corral is not None:
        corral.vertices, corral.share = points / root + target, share
    K = function._blank_cost()
    K[edges] = x / root + target
    return K


def _minor_cycles(points: Array, share: Array) -> tuple[Array, Array]:
    """Move to the nearest point of the affine hull, dropping corners until it lies inside."""
    while True:
        affine = _affine_minimizer(points)
        if (affine > 1e-14).all():
            return points, affine
        falling = affine <= 1e-14
        drop = share - affine
        ratio = np.where(falling & (drop > 0), share / np.where(drop > 0, drop, 1.0), np.inf)
        step = min(1.0, float(ratio.min()))
        share = (1 - step) * share + step * affine
        keep = share > 1e-14
        keep[np.argmin(np.where(falling, share, np.inf))] = False
        points, share = points[keep], share[keep]
        share /= share.sum()


def _affine_minimizer(points: Array) -> Array:
    """Weights with sum one of the point of least norm in the affine hull of the rows."""
    base, rest = points[0], points[1:] - points[0]
    if len(rest) == 0:
        return np.ones(1)
    inside, *_ = lstsq(rest.T, -base, lapack_driver="gelsy", check_finite=False)
    return np.concatenate([[1.0 - inside.sum()], inside])
