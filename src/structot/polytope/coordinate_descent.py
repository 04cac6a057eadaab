"""Projection onto the base polytope of a sum, one layer after the other (RCDM).

Notation. F = C + Σ_r F_r, and B(F) = C + Σ_r B(F_r): a point K of it is C plus one K_r in every
B(F_r). The projection of Z minimises

    ½ Σ (C + Σ_r K_r - Z)²   over   K_r in B(F_r),

convex, and smooth with a separable feasible set: minimising over one K_r at a time, which is the
layer's own projection, converges linearly (Ene and Nguyen 2015).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structot.submodular.base import Submodular

Array = np.ndarray

# Sweeps between two looks at the criterion, which costs as much as a sweep.
_LOOK = 4
# Squared relative error of K at which nothing is left to gain.
_ROUNDING = 1e-19


def project_sum(
    layers: Sequence[Submodular],
    Z: Array,
    *,
    tol: float = 1e-10,
    max_sweeps: int = 2000,
    seed: int = 0,
) -> Array:
    """argmin_{K in B(Σ_r F_r)} Σ (K - Z)² by random coordinate descent over the layers.

    Any number of sweeps gives a point of the base polytope, so that a bound proved with it holds.

    Parameters
    ----------
    layers
        Functions with a Euclidean projection of their own, over the same edges.
    Z
        The point to project, shape (n, m).
    tol
        Stops when ⟨x, x - q⟩ <= tol · |x|² for x = K - Z and the best vertex q of B(F) - Z: then
        the squared distance is optimal to that relative accuracy.
    max_sweeps
        Limit of passes over all layers.
    seed
        Of the order in which the layers are visited.

    Examples
    --------
    >>> from structot.submodular import Oracle
    >>> once = Oracle(lambda S: min(S.sum(), 1), (1, 2))
    >>> project_sum([once, once], np.array([[0.5, 0.5]]))
    array([[1., 1.]])
    """
    rng = np.random.default_rng(seed)
    edges = np.logical_and.reduce([layer._allowed() for layer in layers])
    costs = [_on(edges, layer.greedy(Z)) for layer in layers]
    rest = np.where(edges, Z, 0.0) - np.add.reduce(costs)  # Z - K
    for sweep in range(max_sweeps):
        for r in rng.permutation(len(layers)):
            rest += costs[r]
            costs[r] = _on(edges, layers[r].project(rest, "euclidean"))
            rest -= costs[r]
        if sweep % _LOOK == 0 and _is_optimal(layers, edges, costs, rest, tol):
            break
    return np.where(edges, np.add.reduce(costs), np.inf)


def _on(edges: Array, K: Array) -> Array:
    return np.where(edges, K, 0.0)


def _is_optimal(
    layers: Sequence[Submodular], edges: Array, costs: list[Array], rest: Array, tol: float
) -> bool:
    """Wolfe's criterion: ⟨x, K - K'⟩ <= tol · |x|² for x = K - Z and every K' in B(F)."""
    best = sum(layer.extension(_on(edges, rest)) for layer in layers)
    slack = best - float(np.sum(rest * np.add.reduce(costs)))
    size = sum(float(np.sum(K**2)) for K in costs)
    # slack bounds the squared error of K: below the floor it is rounding, whatever |x| is.
    return slack <= max(tol * float(np.sum(rest**2)), _ROUNDING * size)
