"""The maps of a fitted transport, there and back, by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from structot._labels import Labels
from structot._typing import Array
from structot.adaptation._model import is_precomputed
from structot.adaptation.class_affine import class_affine
from structot.adaptation.mapping import PointMap, is_euclidean, metric_options

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
        # Shapes are compared in the units in which the metric compares points.
        variance = metric_options(metric, source, target).get("V", np.ones(source.shape[1]))
        return class_affine(P, source, labels.number, target, np.sqrt(variance))
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
