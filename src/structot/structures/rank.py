"""Rank and LogDet: how many directions, or how much volume, the chosen pairs span.

Notation. Edge (i, j) has the feature φ_ij = [x_i; y_j]; Φ_S stacks those of the edges in S.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from structot._checks import as_array, positive
from structot._typing import Array
from structot.structures.base import Structure
from structot.submodular.base import Submodular
from structot.submodular.bound import BoundCost
from structot.submodular.rank import FeatureRank, FeatureVolume


class _Featured(Structure):
    """Features of both sides, checked."""

    uses_cost = False

    def __init__(self, source_features: object | None, target_features: object | None) -> None:
        if source_features is None and target_features is None:
            raise ValueError(
                "source_features and target_features are both None; pass an array "
                "(points, features) for at least one side."
            )
        self.source = _features("source_features", source_features)
        self.target = _features("target_features", target_features)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        sides = []
        for name, side, size in zip(
            ("source_features", "target_features"), (self.source, self.target), M.shape, strict=True
        ):
            if side is not None and len(side) != size:
                raise ValueError(
                    f"{name} has {len(side)} rows, but there are {size} points on that side; "
                    "pass one row of features per point."
                )
            sides.append(np.zeros((size, 0)) if side is None else side)
        finite = np.isfinite(M)
        layer = self._function(sides[0], sides[1], None if finite.all() else finite)
        return BoundCost.of(None, [layer])

    @abstractmethod
    def _function(self, X: Array, Y: Array, allowed: Array | None) -> Submodular:
        """The function over the edges."""

    def _sides(self) -> str:
        sides = (self.source, self.target)
        return ", ".join("None" if x is None else f"<{x.shape}>" for x in sides)


class Rank(_Featured):
    """F(S) = rank of the features [x_i; y_j] of the pairs (i, j) in S.

    A pair is free once its feature depends on those of pairs in use: plans are drawn to few
    directions. With indicator features of groups on one side alone this is `Coverage` of these
    groups, one unit each. With features from both sides stacked the rank is smaller than the sum
    of both coverages: for indicators it is the number of groups touched less the number of
    connected components that the pairs form between them.

    One evaluation takes O(E d²) for E pairs with d features. The prox is the generic one
    (min-norm point): comfortable up to some hundred pairs; beyond that a solve may take long or
    end with a gap of about 1e-3.

    Parameters
    ----------
    source_features, target_features
        Arrays (points, features), or None for a side without features.
    tol
        A feature counts as dependent when less than this share of its length is new. Features
        that are neither clearly dependent nor clearly independent make the rank of a set depend
        on the order in which it is found; raise ``tol`` above their noise.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> from structot.structures import Rank
    >>> F = Rank([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None).bind(np.ones((3, 2)))
    >>> F.value(np.array([[True, True], [False, False], [True, False]]))
    2.0
    """

    def __init__(
        self,
        source_features: object | None,
        target_features: object | None = None,
        *,
        tol: float = 1e-9,
    ) -> None:
        super().__init__(source_features, target_features)
        self.tol = positive("tol", tol)
        if self.tol >= 1:
            raise ValueError(f"tol must be below 1, it is a share of a length; got {tol!r}.")

    def _function(self, X: Array, Y: Array, allowed: Array | None) -> Submodular:
        return FeatureRank(X, Y, allowed, self.tol)

    def __repr__(self) -> str:
        return f"Rank({self._sides()})"


class LogDet(_Featured):
    """F(S) = log det(I + Φ_S Φ_Sᵀ / σ²), Φ_S the features [x_i; y_j] of the pairs in S.

    A smooth `Rank`: a pair costs the less, the better its feature is explained by those of pairs
    in use. F(∅) = 0, and F grows with S. One evaluation takes O(E d²) for E pairs with d features
    (at most as many as there are points). The prox is the generic one (min-norm point):
    comfortable up to some hundred pairs; beyond that a solve may take long or end with a gap of
    about 1e-3.

    Parameters
    ----------
    source_features, target_features
        Arrays (points, features), or None for a side without features.
    sigma
        σ, the length below which a direction hardly counts, in units of the features.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> from structot.structures import LogDet
    >>> F = LogDet([[1.0], [1.0]], None).bind(np.ones((2, 1)))
    >>> bool(np.isclose(F.value(np.ones((2, 1), bool)), np.log(3)))
    True
    """

    def __init__(
        self,
        source_features: object | None,
        target_features: object | None = None,
        sigma: float = 1.0,
    ) -> None:
        super().__init__(source_features, target_features)
        self.sigma = positive("sigma", sigma)

    def _function(self, X: Array, Y: Array, allowed: Array | None) -> Submodular:
        return FeatureVolume(X, Y, allowed, self.sigma)

    def __repr__(self) -> str:
        return f"LogDet({self._sides()}, sigma={self.sigma:g})"


def _features(name: str, value: object | None) -> Array | None:
    if value is None:
        return None
    X = as_array(name, value, 2)
    if X.shape[1] == 0:
        raise ValueError(f"{name} has no columns; pass None for a side without features.")
    if not np.isfinite(X).all():
        raise ValueError(f"{name} must be finite; remove or fill NaN and infinite features.")
    return X
