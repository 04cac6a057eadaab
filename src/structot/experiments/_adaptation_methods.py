"""The methods of the adaptation suite and the fixed settings that are tried of each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from structot._typing import Array
from structot.experiments._adaptation import (
    FirstDefaults,
    Identity,
    Method,
    Parameters,
    grid_of,
)
from structot.experiments._adaptation_suite import Draw

_METRICS = ("euclidean", "sqeuclidean", "seuclidean")


def _pot(kind: str, **fixed: Any) -> Any:
    def make(**parameters: Any) -> Any:
        import ot

        return getattr(ot.da, kind)(norm="max", **fixed, **parameters)

    return make


def _ours(**parameters: Any) -> Any:
    from structot.adaptation import StructuredTransport

    return StructuredTransport(**parameters)


DEFAULT = "default"
METHODS = (
    Method("none", "no adaptation", Identity),
    Method("emd", "EMD", _pot("EMDTransport"), grid_of(metric=_METRICS)),
    Method(
        "entropic",
        "entropic (POT)",
        _pot("SinkhornTransport", tol=1e-6),
        grid_of(metric=_METRICS, reg_e=(0.02, 0.05, 0.1, 0.2)),
    ),
    Method(
        "lasso",
        "group lasso ℓp-ℓ1 (POT)",
        _pot("SinkhornLpl1Transport"),
        grid_of(metric=_METRICS, reg_e=(0.05, 0.1, 0.2), reg_cl=(0.03, 0.1, 0.3)),
    ),
    Method(
        "lasso_l2",
        "group lasso ℓ1-ℓ2 (POT)",
        _pot("SinkhornL1l2Transport", max_iter=10, max_inner_iter=100),
        grid_of(metric=_METRICS, reg_e=(0.02, 0.05), reg_cl=(0.25, 1.0)),
    ),
    Method(
        "structured",
        "structured, fixed charge",
        _ours,
        grid_of(metric=("auto", "euclidean"), charge=(0.1, 0.2, 0.3), reg=(0.2, 0.4, 0.8)),
    ),
    Method(DEFAULT, "StructuredTransport()", _ours),
    Method("first", "StructuredTransport() of 0.1", FirstDefaults),
    Method("affine", 'StructuredTransport(map="class-affine")', _ours, ({"map": "class-affine"},)),
    Method(
        "estimate",
        'StructuredTransport(proportions="estimate")',
        _ours,
        ({"proportions": "estimate"},),
    ),
    Method(
        "unbalanced",
        "StructuredTransport(unbalanced=(1, None))",
        _ours,
        ({"unbalanced": (1.0, None)},),
    ),
    Method("routes", 'StructuredTransport("routes")', _ours, ({"structure": "routes"},)),
)
BY_KEY = {method.key: method for method in METHODS}


def nearest(draw: Draw) -> Any:
    """The classifier: 1-NN, of standardised features where features are in unlike units."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = KNeighborsClassifier(1)
    return make_pipeline(StandardScaler(), model) if draw.scaled else model


def accuracies(method: str, grid: list[Parameters], draw: Draw) -> list[float]:
    """Accuracy in percent on the queries for each setting; 0 for a map that is not finite."""
    found = []
    for parameters in grid:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = BY_KEY[method].make(**parameters)
            moved = estimator.fit(Xs=draw.Xs, ys=draw.ys, Xt=draw.Xt).transform(Xs=draw.Xs)
        found.append(accuracy(draw, np.asarray(moved)))
    return found


def accuracy(draw: Draw, moved: Array) -> float:
    """Of the classifier trained on the moved points, in percent."""
    if not np.isfinite(moved).all():
        return 0.0
    guess = nearest(draw).fit(moved, draw.ys).predict(draw.queries)
    return 100.0 * float(np.mean(guess == draw.truth))
