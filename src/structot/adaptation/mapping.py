"""From a plan to a map of points: images of the fitted points, and what happens to others.

Notation
--------
P       plan (n, m); a its row sums
X, Y    fitted points (n, d) and the points they are carried to (m, d)
T(x)    the map; T(X_i) is the image of a fitted point
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from structot._typing import Array

# Those under which averages of points make sense: Euclidean, after a linear change of the features.
EUCLIDEAN = ("euclidean", "sqeuclidean", "seuclidean", "mahalanobis")
AUTO = "auto"
# Share of the features that vary: where fewer are seen (see `chosen_metric`), few carry nearly all
# the variance. What other values do: docs/experiments/adaptation.md, "Constants".
_FEW_OF_ALL = 0.2
OUT_OF_SAMPLE = ("nearest", "smooth")
NEIGHBORS = 10  # points that share in a smooth displacement
_ENTRIES_AT_A_TIME = 1 << 22  # entries of a temporary array: 32 MB of float64
_NOTHING = 1e-290  # mass with too few digits left to have a direction
_ALIASES = {  # the short names that `cdist` knows too
    **dict.fromkeys(("euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqeuclid", "sqe"), "sqeuclidean"),
    **dict.fromkeys(("se", "s"), "seuclidean"),
    **dict.fromkeys(("mahal", "mi"), "mahalanobis"),
}


def is_euclidean(metric: Any) -> bool:
    """Whether averages of points make sense under this metric."""
    return _full_name(metric) in EUCLIDEAN


def metric_options(metric: Any, X: Array, Y: Array) -> dict[str, Array]:
    """The scales of the metrics that have some, from all points of both samples."""
    name, points = _full_name(metric), np.vstack([X, Y])
    if name == "seuclidean":
        variance = points.var(axis=0, ddof=1)
        return {"V": np.where(variance > 0, variance, 1.0)}  # a constant feature tells nothing
    if name == "mahalanobis":
        return {"VI": np.linalg.pinv(np.atleast_2d(np.cov(points.T)), hermitian=True)}
    return {}


def chosen_metric(metric: Any, X: Array, Y: Array | None) -> Any:
    """What ``"auto"`` stands for: Euclidean distances, of scaled features if a few carry it all.

    (Σ_f v_f)² / Σ_f v_f², v_f the variance of a feature over both samples, is the number of
    features that a Euclidean distance sees: all of them where variances are equal, one where
    one is in much smaller units than the rest. Where it is below a fifth of the features that vary,
    each is divided by its standard deviation. Images, where features that hardly vary should
    hardly count, stay as they are.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> chosen_metric("auto", X, X), chosen_metric("auto", X * [1e3, 1, 1, 1, 1, 1, 1, 1], X)
    ('euclidean', 'seuclidean')
    """
    if not (isinstance(metric, str) and metric == AUTO) or Y is None:
        return metric
    variance = np.vstack([X, Y]).var(axis=0)
    largest = variance.max()
    if not largest > 0:
        return "euclidean"
    relative = variance / largest
    seen = relative.sum() ** 2 / np.sum(relative**2)
    few = seen < _FEW_OF_ALL * np.count_nonzero(relative)
    return "seuclidean" if few else "euclidean"


def _full_name(metric: Any) -> str | None:
    if not isinstance(metric, str):
        return None
    return _ALIASES.get(metric.lower(), metric.lower())


def barycenters(P: Array, Y: Array) -> Array:
    """T(X_i) = Σ_j P_ij Y_j / a_i = argmin_y Σ_j P_ij ‖y − Y_j‖², for rows with mass.

    Examples
    --------
    >>> barycenters(np.array([[0.25, 0.25]]), np.array([[0.0], [2.0]])).tolist()
    [[1.0]]
    """
    return np.asarray(P @ Y / P.sum(axis=1, keepdims=True))


def medoids(P: Array, Y: Array, metric: Any) -> Array:
    """T(X_i) = argmin over y among the Y_k of Σ_j P_ij metric(y, Y_j); the first of equals.

    Examples
    --------
    >>> medoids(np.array([[0.3, 0.1, 0.1]]), np.array([[0.0], [1.0], [5.0]]), "cityblock").tolist()
    [[0.0]]
    """
    n, m = P.shape
    best, where = np.full(n, np.inf), np.zeros(n, np.int64)
    for part in batches(m, n + m):
        cost = P @ cdist(Y, Y[part], metric)  # (n, batch)
        nearest = cost.argmin(axis=1)
        value = cost[np.arange(n), nearest]
        better = value < best
        best[better], where[better] = value[better], part.start + nearest[better]
    return Y[where]


@dataclass(frozen=True, eq=False)
class PointMap:
    """T(x) = x + Σ_i w_i(x) (T(X_i) − X_i): fitted points go to their images, others along.

    ``"nearest"``: w is 1 at the nearest fitted point. ``"smooth"``: the ten nearest with
    w_i ∝ ((R − d_i) / (R d_i))², d_i their distances and R that of the next one (infinite if there
    is none), so that T is continuous and still T(X_i) at X_i. Distances are Euclidean, since
    displacements are: under others, such as the cosine, distinct points may be at distance 0.

    Examples
    --------
    >>> move = PointMap.of(np.array([[0.5]]), np.array([[1.0]]), np.array([[3.0]]))
    >>> move(np.array([[1.5]]), "nearest").tolist()
    [[3.5]]
    """

    points: Array  # (n, d), distinct
    images: Array  # (n, d)
    displace: bool = True  # whether others go along; if not, they go to the same images

    @classmethod
    def of(
        cls,
        P: Array,
        X: Array,
        Y: Array,
        metric: Any = "euclidean",
        displace: bool = True,
    ) -> PointMap:
        """The map of a plan. Points that coincide are one point, with the plan rows added.

        Otherwise T would not be a function: two equal points would have two images. Rows without
        mass have no image and are left out.
        """
        mass = P.sum(axis=1)
        used = mass > _NOTHING
        if not used.any():
            raise ValueError(
                "the plan moves no mass, so that there is nothing to map by; pass a larger "
                "unbalanced, or None."
            )
        points, number = np.unique(X[used], axis=0, return_inverse=True)
        rows = P[used]
        if len(points) < len(rows):
            order = np.argsort(number.ravel(), kind="stable")
            starts = np.flatnonzero(np.diff(number.ravel()[order], prepend=-1))
            rows = np.add.reduceat(rows[order], starts, axis=0)
        else:
            points = X[used]
        if is_euclidean(metric):
            return cls(points, barycenters(rows, Y), displace)
        return cls(points, medoids(rows, Y, metric), displace)

    def __call__(self, X: Array, how: str, batch_size: int | None = None) -> Array:
        """T at the rows of X, in batches: memory does not grow with their number."""
        result = np.empty((len(X), self.images.shape[1]))
        for part in batches(len(X), len(self.points) + NEIGHBORS * X.shape[1], batch_size):
            near, weight = neighbors(X[part], self.points, how)
            # Written so that a fitted point reaches its image without rounding.
            moved = self.images[near]
            if self.displace:
                moved = moved + (X[part][:, None, :] - self.points[near])
            result[part] = np.einsum("qk,qkd->qd", weight, moved)
        return result


def neighbors(X: Array, points: Array, how: str) -> tuple[Array, Array]:
    """The fitted points that say where the rows of X go, and their weights; shapes (rows, k)."""
    distance = cdist(X, points)
    if how == "nearest":
        near = distance.argmin(axis=1)[:, None]
        return near, np.ones(near.shape)
    return _shepard(distance)


def _shepard(distance: Array) -> tuple[Array, Array]:
    """The nearest points of each row and their weights, which sum to 1 and end at 0."""
    k = min(NEIGHBORS, distance.shape[1] - 1)
    near = np.argpartition(distance, k, axis=1)[:, : k + 1]
    d = np.take_along_axis(distance, near, axis=1)
    radius = d.max(axis=1, keepdims=True) if k == NEIGHBORS else np.inf
    exact = d == 0
    least = d.min(axis=1, keepdims=True)  # a common factor, so that nothing overflows
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = ((1.0 - d / radius) * (least / d)) ** 2
    weight = np.where(exact.any(axis=1, keepdims=True), exact, weight)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, weight, 1.0)  # all equally far: all count the same
    return near, weight / weight.sum(axis=1, keepdims=True)


def batches(total: int, width: int, size: int | None = None) -> Iterator[slice]:
    """Slices of 0 … total whose temporary arrays of ``width`` columns stay small."""
    step = max(1, min(_ENTRIES_AT_A_TIME // max(width, 1), size or total or 1))
    for start in range(0, total, step):
        yield slice(start, min(start + step, total))
