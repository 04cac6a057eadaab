"""AdaptTo: a step of a scikit-learn Pipeline that moves the training data to a target sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from structot.adaptation import _output
from structot.adaptation.estimator import StructuredTransport


class AdaptTo(TransformerMixin, BaseEstimator):
    """Train where the test points are: source points move to the target, target points stay.

        Pipeline([("adapt", AdaptTo(Xt)), ("classify", KNeighborsClassifier(1))])

    ``pipeline.fit(Xs, ys)`` trains the classifier on source points carried onto ``Xt``;
    ``pipeline.predict(X)`` leaves X, points of the target domain, as it is. So `fit_transform`
    differs from `fit` followed by `transform`, and that is the purpose.

    Parameters
    ----------
    Xt
        The target sample, in the features that reach this step: what earlier steps of the pipeline
        do, do to it first.
    transport
        The estimator that does the work; ``StructuredTransport()`` by default. Its parameters are
        reached by a grid search as ``adapt__transport__charge``.
    yt
        Target labels as far as known, as in `StructuredTransport.fit`.

    Attributes
    ----------
    transport_
        The fitted estimator; ``transport_.transform`` maps further source points.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from structot.datasets import clusters
    >>> data = clusters(60, rotation=0.2, seed=1)
    >>> model = make_pipeline(AdaptTo(data.Y), KNeighborsClassifier(1))
    >>> bool(model.fit(data.X, data.source_labels).score(data.Y, data.target_labels) > 0.8)
    True
    """

    def __init__(self, Xt: Any, transport: Any = None, yt: Any = None) -> None:
        self.Xt = Xt
        self.transport = transport
        self.yt = yt

    def fit(self, X: Any, y: Any = None) -> AdaptTo:
        """Find the plan from (X, y) to the target sample."""
        transport = StructuredTransport() if self.transport is None else clone(self.transport)
        self.transport_ = transport.fit(Xs=X, ys=y, Xt=self.Xt, yt=self.yt)
        _output.remember(self, X, np.shape(X)[1])
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The source points, carried to the target domain."""
        return self.fit(X, y).transport_.transform(X)

    def transform(self, X: Any) -> Any:
        """Points of the target domain, as they are; a frame as an array, like the moved points."""
        check_is_fitted(self, "transport_")
        _output.check_features(self, "X", X, _output.points("X", X).shape[1])
        return np.asarray(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the features: those of the input."""
        check_is_fitted(self, "transport_")
        return _output.names(self, input_features)
