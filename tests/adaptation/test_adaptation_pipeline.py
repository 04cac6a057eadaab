"""The step of a Pipeline: what it does, and what it says when it is used the wrong way."""

from __future__ import annotations

import warnings

import numpy as np
import ot
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import structot as sot
from structot.adaptation import AdaptTo, StructuredTransport
from structot.datasets import clusters

DATA = clusters(60, rotation=0.2, shift=6.0, seed=1)
XS, YS, XT, YT = DATA.X, DATA.source_labels, DATA.Y, DATA.target_labels


def test_the_pipeline_trains_on_moved_points_and_leaves_test_points_alone():
    model = make_pipeline(AdaptTo(XT), KNeighborsClassifier(1)).fit(XS, YS)
    by_hand = KNeighborsClassifier(1).fit(StructuredTransport().fit(XS, YS, XT).transform(XS), YS)
    assert np.array_equal(model.predict(XT), by_hand.predict(XT))
    without = KNeighborsClassifier(1).fit(XS, YS)
    assert model.score(XT, YT) > without.score(XT, YT) + 0.2


def test_the_step_has_its_name_at_the_front_door():
    assert sot.AdaptTo is AdaptTo


def test_the_transport_itself_in_a_pipeline_says_what_to_use_instead():
    """Its transform would carry the target points, which are where they belong."""
    model = make_pipeline(StructuredTransport(), KNeighborsClassifier(1))
    model.fit(XS, YS, structuredtransport__Xt=XT)
    with pytest.warns(UserWarning, match=r"AdaptTo\(Xt\) in its Pipeline"):
        model.score(XT, YT)
    with pytest.raises(ValueError, match=r"In a Pipeline put AdaptTo\(Xt\)"):
        model.fit(XS, YS)


def test_a_scaler_that_saw_only_the_source_is_noticed():
    for step in (StructuredTransport(), AdaptTo()):
        model = make_pipeline(StandardScaler(), step, KNeighborsClassifier(1))
        with pytest.warns(UserWarning, match=r"AdaptTo\(Xt, preprocess=StandardScaler\(\)\)"):
            model.fit(XS, YS, **{f"{type(step).__name__.lower()}__Xt": XT})


def test_a_target_that_passed_through_the_scaler_raises_no_alarm_however_far_it_is():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(2, 40, 6))
    source[:, 0] *= 1e-3  # hardly varies in the source, as a pixel at the margin
    labels = np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaler = StandardScaler().fit(source)
        StructuredTransport().fit(scaler.transform(source), labels, scaler.transform(target))
        AdaptTo(9.0 * target, preprocess=StandardScaler()).fit(source, labels)
    single = StandardScaler().fit_transform(source.astype(np.float32))
    with pytest.warns(UserWarning, match="in quite other units"):
        StructuredTransport().fit(single, labels, 9.0 * target)


def test_preprocessing_is_for_source_and_target_alike():
    scaler = StandardScaler().fit(XS)
    by_hand = AdaptTo(scaler.transform(XT)).fit_transform(scaler.transform(XS), YS)
    step = AdaptTo(XT, preprocess=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(step.fit_transform(XS, YS), by_hand)
        np.testing.assert_allclose(step.transform(XT), scaler.transform(XT))
    model = make_pipeline(step, KNeighborsClassifier(1)).fit(XS, YS)
    assert model.score(XT, YT) > 0.95


def test_metadata_routing_carries_the_target_through_the_earlier_steps():
    by_hand = AdaptTo(XT, preprocess=StandardScaler()).fit_transform(XS, YS)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            AdaptTo().set_fit_request(Xt=True, sample_weight=True),
            KNeighborsClassifier(1),
            transform_input=["Xt"],
        ).fit(XS, YS, Xt=XT, sample_weight=np.ones(60))
        assert model.score(XT, YT) > 0.95
    moved = model[1].transport_.transform(StandardScaler().fit_transform(XS))
    np.testing.assert_allclose(moved, by_hand)


def test_weights_reach_the_plan():
    w = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    step = AdaptTo(XT).fit(XS, YS, sample_weight=w, sample_weight_target=w)
    for axis in (0, 1):
        np.testing.assert_allclose(step.transport_.coupling_.sum(axis=axis), w / w.sum())


def test_searches_reach_the_transport_and_score_adapted_folds():
    pipe = Pipeline([("adapt", AdaptTo(XT, domain="source")), ("knn", KNeighborsClassifier(1))])
    grid = {"adapt__transport__charge": [0.0, 0.2], "adapt__transport__reg": [0.05, 20.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(pipe, grid, cv=2).fit(XS, YS)
        guess = cross_val_predict(pipe, XS, YS, cv=2)
    assert search.best_params_.keys() == grid.keys()
    # So much entropy carries every point to nearly the same place.
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] > scores[1] + 0.1
    assert np.mean(guess == YS) > 0.9
    chosen = search.best_estimator_.set_params(adapt__domain="target")
    assert chosen.score(XT, YT) > 0.95


def test_scoring_source_points_as_if_they_were_target_points_is_noticed():
    pipe = make_pipeline(AdaptTo(XT), KNeighborsClassifier(1))
    with pytest.warns(UserWarning, match='set domain="source"'):
        GridSearchCV(pipe, {"adaptto__transport__charge": [0.0, 0.2]}, cv=2).fit(XS, YS)


def test_domains_that_lie_on_each_other_raise_no_alarm():
    rng = np.random.default_rng(0)
    source, target, new = rng.normal(size=(3, 60, 2))
    labels = (source[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = AdaptTo(target).fit(source, labels)
        step.transform(new)
        step.transport_.transform(new)
        step.set_params(domain="source").transform(source[:20] + 0.01)


def test_the_step_can_be_cloned_and_given_another_transport():
    copy = clone(AdaptTo(XT, StructuredTransport(charge=0.1)))
    assert copy.transport.get_params() == StructuredTransport(charge=0.1).get_params()
    other = AdaptTo(XT, ot.da.SinkhornTransport(reg_e=5.0))
    expected = ot.da.SinkhornTransport(reg_e=5.0).fit(Xs=XS, ys=YS, Xt=XT).transform(Xs=XS)
    np.testing.assert_allclose(other.fit_transform(XS, YS), expected)
    with pytest.raises(ValueError, match="AdaptTo needs the target sample"):
        AdaptTo().fit(XS, YS)
    with pytest.raises(ValueError, match="domain must be one of"):
        AdaptTo(XT, domain="both").fit(XS, YS)


def test_the_step_keeps_frames_and_refuses_other_features():
    pd = pytest.importorskip("pandas")
    source, target = (pd.DataFrame(x, columns=["u", "v"]) for x in (XS, XT))
    step = AdaptTo(target).set_output(transform="pandas")
    moved = step.fit_transform(source, YS)
    assert list(moved.columns) == ["u", "v"]
    assert step.transform(target).equals(target)
    assert step.get_feature_names_out().tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="3 features"):
        AdaptTo(XT).fit(XS, YS).transform(np.ones((2, 3)))


def test_a_pipeline_of_frames_trains_and_predicts_on_the_same_kind_of_array():
    pd = pytest.importorskip("pandas")
    source, target = (pd.DataFrame(x, columns=["u", "v"]) for x in (XS, XT))
    model = make_pipeline(AdaptTo(target), KNeighborsClassifier(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns where feature names come and go
        found = model.fit(source, YS).predict(target)
        framed = model.set_output(transform="pandas").fit(source, YS).predict(target)
    assert np.array_equal(found, framed)


def test_known_target_labels_reach_the_plan():
    hard = clusters(30, 30, rotation=0.45, seed=2)
    step = AdaptTo(hard.Y, yt=hard.target_labels).fit(hard.X, hard.source_labels)
    wrong = hard.source_labels[:, None] != hard.target_labels[None, :]
    assert step.transport_.coupling_[wrong].sum() == 0
