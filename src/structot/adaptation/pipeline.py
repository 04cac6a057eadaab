"""AdaptTo: a step of a scikit-learn Pipeline that moves the training data to a target sample."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from structot import _checks
from structot.adaptation import _output
from structot.adaptation.domains import UNLIKE_UNITS, warn_about_domain
from structot.adaptation.estimator import StructuredTransport

DOMAINS = ("target", "source")
_WRONG_DOMAIN = (
    "most of the points given to AdaptTo lie nearer to the source sample than to the target "
    "sample, as target points do not, and they were left where they are. To predict or score "
    'source points, e.g. in a search over folds of the source, set domain="source": they are then '
    "carried to the target first."
)


class AdaptTo(TransformerMixin, BaseEstimator):
    """Train where the test points are: source points move to the target, target points stay.

        make_pipeline(AdaptTo(Xt, preprocess=StandardScaler()), KNeighborsClassifier(1))

    ``pipeline.fit(Xs, ys)`` trains the classifier on source points carried onto ``Xt``;
    ``pipeline.predict(X)`` takes X, points of the target domain, as they are. So `fit_transform`
    differs from `fit` followed by `transform`, and that is the purpose.

    Parameters
    ----------
    Xt
        The target sample. It may be given to `fit` instead.
    transport
        The estimator that does the work; ``StructuredTransport()`` by default. Its parameters are
        reached by a search as ``adaptto__transport__charge``.
    yt
        Target labels as far as known, as in `StructuredTransport.fit`.
    preprocess
        A transformer (a scaler, a Pipeline of them) fitted to the source points and applied to
        source and target alike, before the transport. A scaler in front of `AdaptTo` would not see
        Xt; put it here.
    domain
        Where the points come from that `transform`, and with it ``pipeline.predict``, is given.
        "target": they stay as they are. "source": they are carried to the target first; with this
        ``cross_val_predict`` and the folds of a search, which are made of source points, are
        adapted like the training points. Turn it back with
        ``pipeline.set_params(adaptto__domain="target")`` to predict in the target domain.

    Attributes
    ----------
    transport_, preprocess_
        The fitted estimators; ``transport_.predict_target()`` labels the target sample itself.

    Notes
    -----
    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``) the target can
    travel through the earlier steps of a Pipeline:
    ``make_pipeline(StandardScaler(), AdaptTo().set_fit_request(Xt=True), KNeighborsClassifier(1),
    transform_input=["Xt"]).fit(Xs, ys, Xt=Xt)``. In a search give Xt here: scikit-learn
    cuts metadata as long as X into folds.

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

    # scikit-learn takes parameters of these names for data and makes no requests for them unasked.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"Xt": None, "yt": None}

    def __init__(
        self,
        Xt: Any = None,
        transport: Any = None,
        yt: Any = None,
        preprocess: Any = None,
        domain: str = "target",
    ) -> None:
        self.Xt = Xt
        self.transport = transport
        self.yt = yt
        self.preprocess = preprocess
        self.domain = domain

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        Xt: Any = None,
        yt: Any = None,
        sample_weight: Any = None,
        sample_weight_target: Any = None,
    ) -> AdaptTo:
        """Find the plan from (X, y) to the target sample.

        Parameters
        ----------
        X, y
            Source points and their labels.
        Xt, yt
            The target, in place of what the constructor was given.
        sample_weight, sample_weight_target
            Weights of source and target points, where the transport takes them.
        """
        _checks.one_of("domain", self.domain, DOMAINS)
        target = self.Xt if Xt is None else Xt
        if target is None:
            raise ValueError("AdaptTo needs the target sample: AdaptTo(Xt), or fit(X, y, Xt=...).")
        width = _output.points("X", X).shape[1]
        preprocess = None if self.preprocess is None else clone(self.preprocess).fit(X, y)
        source, target = (_passed(preprocess, points) for points in (X, target))
        weights = {"source": sample_weight, "target": sample_weight_target}
        options = {f"sample_weight_{k}": w for k, w in weights.items() if w is not None}
        transport = StructuredTransport() if self.transport is None else clone(self.transport)
        known = self.yt if yt is None else yt
        with warnings.catch_warnings():
            if preprocess is not None:  # the remedy that the warning names is in use
                warnings.filterwarnings("ignore", UNLIKE_UNITS, UserWarning)
            self.transport_ = transport.fit(Xs=source, ys=y, Xt=target, yt=known, **options)
        self.preprocess_ = preprocess
        self._samples = tuple(_output.points("X", points) for points in (source, target))
        _output.remember(self, X, width)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """The source points, carried to the target domain."""
        self.fit(X, y, **fit_params)
        return self._carried(_passed(self.preprocess_, X))

    def transform(self, X: Any) -> Any:
        """Points as the classifier sees them: those of the target domain as they are.

        With ``domain="source"`` the points are taken for source points and carried over. A frame
        becomes an array, like the moved points, unless `set_output` says otherwise.
        """
        check_is_fitted(self, "transport_")
        _checks.one_of("domain", self.domain, DOMAINS)
        _output.check_features(self, "X", X, _output.points("X", X).shape[1])
        points = _passed(self.preprocess_, X)
        if self.domain == "source":
            return self._carried(points)
        values = _output.points("X", points)
        source, target = self._samples
        warn_about_domain(values, target, source, _WRONG_DOMAIN, stacklevel=3)
        return np.asarray(points)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the features: those of the input, as ``preprocess`` passes them on."""
        check_is_fitted(self, "transport_")
        names = _output.names(self, input_features)
        if self.preprocess_ is None:
            return names
        return self.preprocess_.get_feature_names_out(names)

    def set_params(self, **params: Any) -> AdaptTo:
        """As in scikit-learn; ``transport__charge`` also where ``transport`` is the default."""
        if self.transport is None and any(key.startswith("transport__") for key in params):
            params = {"transport": StructuredTransport(), **params}
        return super().set_params(**params)

    def _carried(self, points: Any) -> Any:
        """Source points, fitted or new, where the transport carries them."""
        return np.asarray(self.transport_.transform(Xs=points))


def _passed(preprocess: Any, X: Any) -> Any:
    return X if preprocess is None else preprocess.transform(X)
