"""scikit-learn's conventions on feature counts, feature names and output containers.

scikit-learn wraps ``transform(X)`` itself, but only if the first argument is called X; POT calls it
Xs. The choice is kept where `sklearn.base.clone` looks for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from structot import _checks
from structot._extras import as_array, like
from structot._typing import Array

CONTAINERS = ("default", "pandas", "polars")


def points(name: str, X: Any) -> Array:
    """Finite points (n, features) as float64, at least one; with scikit-learn's messages."""
    if issparse(X):
        raise ValueError(f"{name} is sparse, which is not supported; pass {name}.toarray().")
    X = as_array(X)
    if isinstance(X, np.ma.MaskedArray):
        return _checks.as_points(name, X)  # what lies under a mask is no number
    return np.asarray(check_array(X, dtype=np.float64, input_name=name))


def samples(Xs: Any, Xt: Any, precomputed: bool) -> tuple[Array, Array | None]:
    """Source and target points that fit together; the cost and perhaps points if precomputed."""
    for name, value in (("Xs", Xs), ("Xt", Xt)):
        if value is None and not (name == "Xt" and precomputed):
            raise ValueError(
                f"fit needs {name}: fit(Xs=..., ys=..., Xt=...). In a Pipeline put AdaptTo(Xt) in "
                "place of StructuredTransport()."
            )
    source = points("Xs", Xs)
    target = None if Xt is None else points("Xt", Xt)
    if target is not None and precomputed and len(target) != source.shape[1]:
        raise ValueError(
            "with metric='precomputed' Xs is the cost, one column per target point; it has "
            f"{source.shape[1]} columns for {len(target)} points in Xt."
        )
    if target is not None and not precomputed:
        if source.shape[1] != target.shape[1]:
            raise ValueError(
                "Xs and Xt must have equally many features; got "
                f"{source.shape[1]} and {target.shape[1]}."
            )
        check_columns("Xt", Xt, columns(Xs))
    return source, target


def remember(estimator: Any, X: Any, features: int) -> None:
    """Keep the number of features and, for frames with text columns, their names."""
    estimator.n_features_in_ = features
    names = columns(X)
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def check_features(estimator: Any, name: str, X: Any, features: int) -> None:
    """Refuse points with other features than those of fit."""
    if features != estimator.n_features_in_:
        raise ValueError(
            f"{name} has {features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input, as many as in fit."
        )
    check_columns(name, X, getattr(estimator, "feature_names_in_", None))


def check_columns(name: str, X: Any, fitted: Array | None) -> None:
    """Refuse a frame whose columns have other names, or the same in another order."""
    names = columns(X)
    if fitted is not None and names is not None and not np.array_equal(fitted, names):
        raise ValueError(
            f"{name} has the columns {names.tolist()[:5]}, but fit saw {fitted.tolist()[:5]}; "
            "pass the same columns in the same order."
        )


def choose(estimator: Any, transform: str | None) -> None:
    """Keep the container that transform is to return."""
    if transform is None:
        return
    choice = _checks.one_of("transform", transform, CONTAINERS)
    estimator._sklearn_output_config = {"transform": choice}


def names(estimator: Any, input_features: Any = None) -> Array:
    """The feature names: given, those of fit, or x0, x1, ..."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if input_features is not None:
        given = np.asarray(input_features, object)
        if given.shape != (estimator.n_features_in_,) or (
            fitted is not None and not np.array_equal(given, fitted)
        ):
            raise ValueError(
                f"input_features must be the {estimator.n_features_in_} names of fit; "
                f"got {given.tolist()[:5]}."
            )
        return given
    if fitted is not None:
        return np.asarray(fitted)
    return np.array([f"x{k}" for k in range(estimator.n_features_in_)], object)


def contain(estimator: Any, values: Array, original: Any) -> Any:
    """The values in the container that was chosen, with the row index of the input.

    Where none was chosen tensors come back as tensors, on their device.
    """
    from sklearn import get_config

    config = getattr(estimator, "_sklearn_output_config", {})
    choice = config.get("transform", get_config()["transform_output"])
    if choice == "pandas":
        import pandas as pd

        index = original.index if isinstance(original, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=estimator.get_feature_names_out())
    if choice == "polars":
        import polars as pl  # type: ignore[import-not-found]

        schema = estimator.get_feature_names_out().tolist()
        return pl.DataFrame(values, schema=schema, orient="row")
    return like(values, original)


def columns(X: Any) -> Array | None:
    """The names of a frame's columns, if it is one and they are text."""
    names = getattr(X, "columns", None)
    if names is None:
        return None
    found = np.asarray(names, object)
    return found if all(isinstance(name, str) for name in found) else None
