"""A map per class: classes move as wholes and keep their shape.

Notation
--------
X, k(i)     fitted points (n, d) and the class of each; Y the points they are carried to
μ_k, ν_k    mean of class k in X, and of the points of Y that the plan gives to it
Σ_k, S_k    their covariances, shrunk towards a multiple of the identity (Ledoit and Wolf)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from structot._typing import Array
from structot.adaptation.mapping import batches, neighbors

# A class keeps its variance within a third, in every direction.
LEAST, MOST = 2.0 / 3.0, 4.0 / 3.0


@dataclass(frozen=True, eq=False)
class ClassMap:
    """x ↦ ν + A (x − μ),   A = s I + Q (core − s I) Qᵀ, Q an orthonormal basis (d, r).

    A is the linear part of the optimal map between the normal distributions N(μ, Σ) and N(ν, S),

        A = Σ^(−1/2) (Σ^(1/2) S Σ^(1/2))^(1/2) Σ^(−1/2),

    with its eigenvalues cut so that no direction gains or loses more than a third of its variance.
    """

    center: Array  # μ
    image: Array  # ν
    basis: Array  # Q
    core: Array  # (r, r)
    scale: float  # s, outside the basis

    @classmethod
    def between(cls, X: Array, Y: Array, image: Array) -> ClassMap:
        """The map of a class from its points to those it was given, with its mean at ``image``."""
        center = X.mean(axis=0)
        if len(X) < 2 or len(Y) < 2:
            return cls(center, image, np.zeros((X.shape[1], 0)), np.zeros((0, 0)), 1.0)
        # Beyond the span of all points both covariances are multiples of the identity.
        both = np.vstack([X - center, Y - Y.mean(axis=0)])
        basis = np.linalg.qr(both.T)[0]  # (d, r), r = min(d, points)
        (C, c), (S, s) = _shrunk(X, basis), _shrunk(Y, basis)
        core = _cut(_optimal(C, S)) if c > 0 and s > 0 else np.eye(basis.shape[1])
        outside = np.sqrt(np.clip(s / c, LEAST, MOST)) if c > 0 and s > 0 else 1.0
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
    """T(x) = Σ_i w_i(x) T_{k(i)}(x): the map of the class of the nearest fitted point(s).

    The weights are those of `PointMap`: 1 at the nearest fitted point, or smooth ones of the ten
    nearest. A point of a class of its own goes to its barycentric image.
    """

    points: Array  # (n, d)
    number: Array  # (n,), class of each, counting the maps
    maps: tuple[ClassMap, ...]

    def __call__(self, X: Array, how: str, batch_size: int | None = None) -> Array:
        """T at the rows of X."""
        result = np.zeros(X.shape)
        for part in batches(len(X), len(self.points), batch_size):
            near, weight = neighbors(X[part], self.points, how)
            share = np.zeros((len(near), len(self.maps)))
            np.add.at(share, (np.arange(len(near))[:, None], self.number[near]), weight)
            for k, move in enumerate(self.maps):
                used = share[:, k] > 0
                if used.any():
                    result[part][used] += share[used, k, None] * move(X[part][used])
        return result


def class_affine(
    X: Array, groups: Array, Y: Array, given: Array, images: Array
) -> tuple[ClassAffine, ClassAffine]:
    """The map and the way back.

    Parameters
    ----------
    X, groups
        Source points and the number of the group of each, a point without label its own.
    Y, given
        Target points and the number of the group that each belongs to by the plan.
    images
        Where the mean of each group goes, shape (groups, d).
    """
    maps = tuple(
        ClassMap.between(X[groups == k], Y[given == k], images[k]) for k in range(len(images))
    )
    back = tuple(move.inverse() for move in maps)
    return ClassAffine(X, groups, maps), ClassAffine(Y, given, back)


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


def _cut(A: Array) -> Array:
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    return np.asarray((vectors * np.clip(values, LEAST**0.5, MOST**0.5)) @ vectors.T)
