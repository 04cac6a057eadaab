"""Projection onto the base polytope of a sum, one layer after the other (RCDM).

Notation. F = C + Σ_r F_r, and B(F) = C + Σ_r B(F_r): a point K of it is C plus one K_r in every
B(F_r). The projection of Z minimises

    ½ Σ (C + Σ_r K_r - Z)²   over   K_r in B(F_r),

convex, and smooth with a separable feasible set: minimising over one K_r at a time, which is the
layer's own projection, converges linearly (Ene and Nguyen 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from structot._deadline import check_time
from structot._typing import Array
from structot.submodular.base import Submodular
from structot.submodular.min_norm_point import Corral, min_norm_point

# Sweeps between two looks at the criterion, which costs as much as a sweep.
_LOOK = 4
# Squared relative error of K at which nothing is left to gain.
_ROUNDING = 1e-19
# The slack that one min-norm point may leave, relative to that of all layers, its largest value,
# and the limit of cycles in one visit of its layer.
_INEXACT, _COARSEST, _CYCLES = 1e-2, 1e-3, 50


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
    nearest = [_projection(layer) for layer in layers]
    inexact = _COARSEST
    for sweep in range(max_sweeps):
        for r in rng.permutation(len(layers)):
            check_time()
            rest += costs[r]
            costs[r] = _on(edges, nearest[r](rest, inexact))
            rest -= costs[r]
        if sweep % _LOOK == 0:
            slack, error = _accuracy(layers, edges, costs, rest)
            if slack <= tol or error <= _ROUNDING:
                break
            inexact = min(max(_INEXACT * slack, _INEXACT * tol), _COARSEST)
    return np.where(edges, np.add.reduce(costs), np.inf)


def _projection(layer: Submodular) -> Callable[[Array, float], Array]:
    """The layer's projection; a min-norm point begins where the last one of the layer ended.

    That one never moves away again, so that a few cycles to a coarse tolerance are a step as good.
    """
    if layer.kind != "generic":
        return lambda Z, tol: layer.project(Z, "euclidean")
    corral = Corral()
    return lambda Z, tol: min_norm_point(layer, Z, tol=tol, max_iter=_CYCLES, corral=corral)


def _on(edges: Array, K: Array) -> Array:
    return np.where(edges, K, 0.0)


def _accuracy(
    layers: Sequence[Submodular], edges: Array, costs: list[Array], rest: Array
) -> tuple[float, float]:
    """Wolfe's slack max ⟨x, K - K'⟩ over K' in B(F), relative to |x|² for x = K - Z; and a bound
    of the squared error of K relative to its size: of slack and |x|² the smaller one, since the
    answer is no farther from K than Z is.
    """
    best = sum(layer.extension(_on(edges, rest)) for layer in layers)
    slack = best - float(np.sum(rest * np.add.reduce(costs)))
    distance = float(np.sum(rest**2))
    size = sum(float(np.sum(K**2)) for K in costs)
    if distance == 0.0 or size == 0.0:
        return (0.0 if slack <= 0.0 else np.inf), distance
    return slack / distance, min(slack, distance) / size
