"""The adapter inside skada's pipelines, searches and scorers; where skada is installed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("skada")

from skada import make_da_pipeline
from skada.datasets import make_shifted_datasets
from skada.metrics import PredictionEntropyScorer
from skada.model_selection import SourceTargetShuffleSplit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from structot.adaptation import StructuredTransport
from structot.adaptation.skada import StructuredTransportAdapter

X, Y, DOMAIN = make_shifted_datasets(10, 10, "conditional_shift", noise=0.2, random_state=0)
TARGET = DOMAIN < 0


def test_target_points_pass_through_the_same_preprocessing_and_source_points_are_carried():
    model = make_da_pipeline(StandardScaler(), StructuredTransportAdapter(), LogisticRegression())
    model.fit(X, Y.copy(), sample_domain=DOMAIN)
    scaled = StandardScaler().fit_transform(X)  # skada's scaler sees both domains
    adapt = StructuredTransport().fit(scaled[~TARGET], Y[~TARGET], scaled[TARGET])
    by_hand = LogisticRegression().fit(adapt.transform(scaled[~TARGET]), Y[~TARGET])
    assert np.array_equal(model.predict(X[TARGET]), by_hand.predict(scaled[TARGET]))


def test_searches_with_skadas_scorers_reach_the_transport():
    model = make_da_pipeline(StructuredTransportAdapter(), LogisticRegression())
    search = GridSearchCV(
        model,
        {"structuredtransportadapter__transport__charge": [0.0, 1.0]},
        scoring=PredictionEntropyScorer(),
        cv=SourceTargetShuffleSplit(n_splits=2, random_state=0),
    ).fit(X, Y.copy(), sample_domain=DOMAIN)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] != scores[1]
