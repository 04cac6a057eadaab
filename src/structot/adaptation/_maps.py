"""The maps of a fitted transport, there and back, by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from structot._labels import Labels
from structot._typing import Array
from structot.adaptation._model import is_precomputed
from structot.adaptation.class_affine import class_affine
from structot.adaptation.mapping import PointMap, is_euclidean

MAPS = ("barycentric", "class-affine")


def maps(
    name: str,
    metric: Any,
    P: Array,
    source: Array,
    target: Array | None,
    labels: Labels | None,
) -> tuple[Any, Any]:
    """From source to target and back; None for what costs alone do not say."""
    if target is None:
        return None, None
    if is_precomputed(metric):
        return PointMap.of(P, source, target, displace=False), None
    if name == "class-affine" and labels is not None:
        return _class_maps(P, source, target, labels.groups)
    forward = PointMap.of(P, source, target, metric)
    return forward, PointMap.of(P.T, target, source, metric)


def warn_about_medoids(name: str, metric: Any, stacklevel: int) -> None:
    """Say that averages of points make no sense under this metric, where they are asked for."""
    if name == "barycentric" and not is_euclidean(metric):
        warnings.warn(
            f"metric={metric!r} has no barycentric map: points are mapped to weighted medoids, "
            "which are target points.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _class_maps(P: Array, source: Array, target: Array, groups: Array) -> tuple[Any, Any]:
    """One affine map per class; a target point belongs to the class that sends it most mass.

    Entropy lets every class send a little everywhere; the mean of a class's own target points is
    free of that. A class that is nowhere first goes to the mean of where its mass goes.
    """
    mass = np.zeros((int(groups.max()) + 1, len(target)))
    np.add.at(mass, groups, P)
    given = mass.argmax(axis=0)
    own = np.where(np.equal.outer(np.arange(len(mass)), given), mass, 0.0)
    own = np.where(own.any(axis=1, keepdims=True), own, mass)
    total = own.sum(axis=1, keepdims=True)
    images = np.divide(
        own @ target, total, out=np.zeros((len(mass), target.shape[1])), where=total > 0
    )
    for k in np.flatnonzero(total[:, 0] == 0):  # nothing was sent: the class stays where it is
        images[k] = source[groups == k].mean(axis=0)
    return class_affine(source, groups, target, given, images)
