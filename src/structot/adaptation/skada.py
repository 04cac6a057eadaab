"""StructuredTransport inside skada's pipelines, with its searches and scorers.

    from skada import make_da_pipeline
    from structot.adaptation.skada import StructuredTransportAdapter

    model = make_da_pipeline(StandardScaler(), StructuredTransportAdapter(), SVC())
    model.fit(X, y, sample_domain=sample_domain)

Needs skada: ``pip install "structot[skada]"``.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from structot.adaptation.estimator import StructuredTransport

try:
    from skada.base import BaseAdapter
    from skada.utils import check_X_domain, source_target_merge, source_target_split
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "structot.adaptation.skada needs skada: pip install 'structot[skada]'", name="skada"
    ) from None

__all__ = ["StructuredTransportAdapter"]


class StructuredTransportAdapter(BaseAdapter):
    """Source points are carried to the target, target points stay: an adapter of skada.

    skada marks the domain of each point and masks the labels of the target, so that one X passes
    through all steps, and its cross-validation and scorers see adapted folds.

    Parameters
    ----------
    transport
        The estimator that does the work; ``StructuredTransport()`` by default. Its parameters are
        reached by a search as ``structuredtransportadapter__transport__charge``.

    Attributes
    ----------
    transport_
        The fitted estimator.

    Examples
    --------
    >>> from skada import make_da_pipeline
    >>> from skada.datasets import make_shifted_datasets
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y, domain = make_shifted_datasets(10, 10, "covariate_shift", random_state=0)
    >>> model = make_da_pipeline(StructuredTransportAdapter(), KNeighborsClassifier(1))
    >>> _ = model.fit(X, y.copy(), sample_domain=domain)  # skada masks the labels it is given
    >>> bool(model.score(X[domain < 0], y[domain < 0]) > 0.5)
    True
    """

    def __init__(self, transport: Any = None) -> None:
        super().__init__()
        self.transport = transport

    def fit(self, X: Any, y: Any = None, *, sample_domain: Any = None) -> Any:
        """Find the plan between the points of the source and those of the target."""
        X, sample_domain = check_X_domain(X, sample_domain)
        source, target, labels, _ = source_target_split(X, y, sample_domain=sample_domain)
        transport = StructuredTransport() if self.transport is None else clone(self.transport)
        self.transport_ = transport.fit(Xs=source, ys=labels, Xt=target)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, **params: Any
    ) -> Any:
        """All points as the classifier is to see them."""
        self.fit(X, y, sample_domain=sample_domain)
        return self.transform(X, sample_domain=sample_domain, allow_source=True)

    def transform(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_domain: Any = None,
        allow_source: bool = False,
        **params: Any,
    ) -> Any:
        """Source points carried over, target points as they are."""
        X, sample_domain = check_X_domain(
            X,
            sample_domain,
            allow_source=allow_source,
            allow_auto_sample_domain=True,
            allow_multi_source=True,
            allow_multi_target=True,
        )
        source, target = source_target_split(X, sample_domain=sample_domain)
        if len(source):
            source = self.transport_.transform(Xs=source)
        moved, _ = source_target_merge(source, target, sample_domain=sample_domain)
        return moved

    def set_params(self, **params: Any) -> Any:
        """As in scikit-learn; ``transport__charge`` also where ``transport`` is the default."""
        if self.transport is None and any(key.startswith("transport__") for key in params):
            params = {"transport": StructuredTransport(), **params}
        return super().set_params(**params)
