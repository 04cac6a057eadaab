"""A map per class: classes keep their shape as far as their points say what it is.

Notation
--------
X, k(i)     fitted points (n, d) and the class of each, n_k of them
Y           the points they are carried to
P_k(j)      mass that class k sends to Y_j, and q_k(j) its share in all that Y_j receives
μ_k, ν_k    mean of class k in X, and of Y with the weights P_k q_k
Σ_k, S_k    covariances of class k and of the points of Y that receive most of their mass from it,
            shrunk towards a multiple of the identity (Ledoit and Wolf)
T, T_k      barycentric map of the plan, and the affine map of class k
r           effective dimension of the classes, tr(Σ)² / tr(Σ²) of their pooled covariance
κ_k         n_k / (n_k + r + 1), how far the shape of class k is to be trusted
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from structot._typing import Array
from structot.adaptation.mapping import PointMap, batches, neighbors

# Variance along a direction after T_k, in units of that before: the third that a class may lose or
# gain.
LEAST, MOST = 2.0 / 3.0, 4.0 / 3.0


@dataclass(frozen=True, eq=False)
class ClassMap:
    """x ↦ ν + A (x − μ),   A = s I + Q (core − s I) Qᵀ, Q an orthonormal basis (d, r).

    A is the linear part of the optimal map between the normal distributions N(μ, Σ) and N(ν, S),

        A = Σ^(−1/2) (Σ^(1/2) S Σ^(1/2))^(1/2) Σ^(−1/2),

    with its eigenvalues cut so that no direction gains or loses more than a third of its variance.
    What `ClassAffine` takes by drawing points together counts as lost.
    """

    center: Array  # μ
    image: Array  # ν
    basis: Array  # Q
    core: Array  # (r, r)
    scale: float  # s, outside the basis

    @classmethod
    def between(cls, X: Array, Y: Array, image: Array, trust: float = 1.0) -> ClassMap:
        """The map of a class from its points to those it was given, with its mean at ``image``."""
        center = X.mean(axis=0)
        if len(X) < 2 or len(Y) < 2:
            return cls(center, image, np.zeros((X.shape[1], 0)), np.zeros((0, 0)), 1.0)
        # Beyond the span of all points both covariances are multiples of the identity.
        both = np.vstack([X - center, Y - Y.mean(axis=0)])
        basis = np.linalg.qr(both.T)[0]  # (d, r), r = min(d, points)
        (C, c), (S, s) = _shrunk(X, basis), _shrunk(Y, basis)
        least = min(1.0, LEAST**0.5 / trust) if trust > 0 else 1.0  # of a standard deviation
        core = _cut(_optimal(C, S), least) if c > 0 and s > 0 else np.eye(basis.shape[1])
        outside = np.clip(np.sqrt(s / c), least, MOST**0.5) if c > 0 and s > 0 else 1.0
        return cls(center, image, basis, core, float(outside))

    def __call__(self, X: Array) -> Array:
        """T at the rows of X."""
        moved = X - self.center
        inside = moved @ self.basis
        bent = inside @ (self.core - self.scale * np.eye(len(self.core)))
        return np.asarray(self.image + self.scale * moved + bent @ self.basis.T)

    def inverse(self) -> ClassMap:
        """The way back, exactly."""
        core = np.linalg.inv(self.core)
        return ClassMap(self.image, self.center, self.basis, core, 1.0 / self.scale)


@dataclass(frozen=True, eq=False)
class ClassAffine:
    """x ↦ κ_k T_k(x) + (1 − κ_k) T(x), k the class of the nearest fitted point(s).

    The weights of several are those of `PointMap`. A point of no class goes to T(x).
    """

    points: Array  # (n, d), in units of the features
    number: Array  # (n,), class of each, -1 where it has none
    maps: tuple[ClassMap, ...]  # between points in units of the features
    trust: Array  # κ, (classes,)
    barycentric: PointMap  # T
    unit: Array  # (d,), of the features

    def __call__(self, X: Array, how: str, batch_size: int | None = None) -> Array:
        """The map at the rows of X."""
        result = self.barycentric(X, how, batch_size)
        for part in batches(len(X), len(self.points), batch_size):
            scaled = X[part] / self.unit
            near, weight = neighbors(scaled, self.points, how)
            share = np.zeros((len(near), len(self.maps) + 1))  # the last: of no class
            np.add.at(share, (np.arange(len(near))[:, None], self.number[near]), weight)
            share = share[:, :-1] * self.trust
            moved = result[part] * (1.0 - share.sum(axis=1, keepdims=True))
            for k, move in enumerate(self.maps):
                used = share[:, k] > 0
                if used.any():
                    moved[used] += share[used, k, None] * move(scaled[used]) * self.unit
            result[part] = moved
        return result


def class_affine(
    P: Array, X: Array, number: Array, Y: Array, unit: Array
) -> tuple[ClassAffine, ClassAffine]:
    """The map and a way back.

    Parameters
    ----------
    P
        The plan (n, m).
    X, number
        Source points and the number of the class of each, -1 where it has none.
    Y
        Target points.
    unit
        What each feature is divided by before shapes are compared, shape (d,).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> move, back = class_affine(np.eye(40) / 40, X, np.zeros(40, int), X + 5.0, np.ones(2))
    >>> bool(np.allclose(move(X, "nearest"), X + 5.0))
    True
    """
    x, y = X / unit, Y / unit
    classes = int(number.max()) + 1
    mass = np.zeros((classes, len(Y)))  # P_k
    np.add.at(mass, number[number >= 0], P[number >= 0])
    arrived = mass.sum(axis=0)
    sure = mass * np.divide(mass, arrived, out=np.zeros_like(mass), where=arrived > 0)
    total = sure.sum(axis=1)
    images = np.divide(
        sure @ y, total[:, None], out=np.zeros((classes, y.shape[1])), where=total[:, None] > 0
    )  # ν, (classes, d)
    given = np.where(arrived > 0, mass.argmax(axis=0), -1)
    kappa = np.where(total > 0, trust(x, number), 0.0)
    maps = tuple(
        ClassMap.between(x[number == k], y[given == k], images[k], kappa[k]) for k in range(classes)
    )
    back = tuple(move.inverse() for move in maps)
    return (
        ClassAffine(x, number, maps, kappa, PointMap.of(P, X, Y), unit),
        ClassAffine(y, given, back, kappa, PointMap.of(P.T, Y, X), unit),
    )


def trust(X: Array, number: Array) -> Array:
    """κ_k = n_k / (n_k + r + 1); 0 for a class of one point, which has no shape.

    Of all multiples of the sample covariance of n_k normal points, that by κ_k is nearest to the
    true covariance in expected squared Frobenius norm (n_k − 1 degrees of freedom taken as n_k).
    Few points in many directions know little of a shape, and then T(x) is the better answer.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> bool(trust(X, np.zeros(60, int))[0] > 0.9), trust(X[:1], np.zeros(1, int)).tolist()
    (True, [0.0])
    """
    count = np.bincount(number[number >= 0])
    residuals = np.vstack(
        [X[number == k] - X[number == k].mean(axis=0) for k in np.flatnonzero(count)]
    )
    # ‖R Rᵀ‖ = ‖Rᵀ R‖: the smaller of the two products.
    tall = len(residuals) > residuals.shape[1]
    inner = residuals.T @ residuals if tall else residuals @ residuals.T
    squared = np.sum(inner**2)
    r = np.trace(inner) ** 2 / squared if squared > 0 else 0.0
    return np.asarray(np.where(count > 1, count / (count + r + 1.0), 0.0))


def _shrunk(X: Array, basis: Array) -> tuple[Array, float]:
    """The shrunk covariance inside a basis that holds all points, and its variance outside."""
    moved = (X - X.mean(axis=0)) @ basis
    S = moved.T @ moved / len(X)
    shrinkage = float(ledoit_wolf_shrinkage(X))
    variance = shrinkage * np.trace(S) / X.shape[1]
    return (1.0 - shrinkage) * S + variance * np.eye(len(S)), float(variance)


def _optimal(C: Array, S: Array) -> Array:
    """The linear part of the optimal map from N(0, C) to N(0, S)."""
    root = _power(C, 0.5)
    inverse = _power(C, -0.5)
    return np.asarray(inverse @ _power(root @ S @ root, 0.5) @ inverse)


def _power(A: Array, p: float) -> Array:
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    values = np.maximum(values, np.finfo(float).eps * max(values[-1], 0.0))
    return np.asarray((vectors * values**p) @ vectors.T)


def _cut(A: Array, least: float) -> Array:
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    return np.asarray((vectors * np.clip(values, least, MOST**0.5)) @ vectors.T)
